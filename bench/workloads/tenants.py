"""What a tenant at ten times its quota takes from another."""

import subprocess
import sys
from dataclasses import replace
from statistics import median
from typing import cast

from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from bench.settings import MEGABYTE, ROOT
from bench.wire import WireClient
from bench.workloads.latency import measure_latency
from bench.workloads.session import Session

TOPIC_QUIET, TOPIC_NOISY = "bench-quiet", "bench-noisy"
NOISY = "noisy"
QUOTA_BYTES_S = MEGABYTE
TIMES = 10
ALTER_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS_VERSION = 49, 1


def noisy_tenant(session: Session) -> dict[str, float]:
    """Latency of one client alone, and beside one that sends ten times its quota, in ms."""
    settings = replace(session.settings, latency_seconds=10, latency_warm_up_seconds=2)
    server = session.server
    session.topic(TOPIC_NOISY)
    limit(server.port, NOISY, producer_byte_rate=QUOTA_BYTES_S)
    session.settle()
    alone, beside = [], []
    for number in range(settings.tenant_turns):
        topic = f"{TOPIC_QUIET}-{number}"
        session.topic(topic)
        session.topic(f"{topic}-beside")
        alone.append(measure_latency(server.bootstrap, topic, settings)["p99"])
        noisy = _noisy(server.bootstrap)
        try:
            beside.append(measure_latency(server.bootstrap, f"{topic}-beside", settings)["p99"])
        finally:
            noisy.kill()
            noisy.wait()
    before, after = median(alone), median(beside)
    return {
        "tenant_alone_p99_ms": before,
        "tenant_beside_p99_ms": after,
        "tenant_p99_ratio": after / before,
    }


def limit(port: int, client_id: str, **values: float) -> None:
    """Set quotas of a client id. Raises RuntimeError if they are refused."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[OpData(key=key, value=value) for key, value in values.items()],
    )
    with WireClient(port) as client:
        response = client.request(
            ALTER_CLIENT_QUOTAS,
            ALTER_CLIENT_QUOTAS_VERSION,
            AlterClientQuotasRequest(entries=[entry]),
        )
    (answer,) = cast("AlterClientQuotasResponse", response).entries
    if answer.error_code:
        raise RuntimeError(f"{values} for {client_id}: {answer.error_message}")


def _noisy(bootstrap: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.noisy_client", bootstrap, TOPIC_NOISY, NOISY]
    return subprocess.Popen([*command, str(TIMES * QUOTA_BYTES_S)], cwd=ROOT)
