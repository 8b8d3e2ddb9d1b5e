"""The same over TLS: producing, consuming what lies in the page cache, and opening connections.

And connections that log in by SCRAM, in plain text.
"""

import json
import subprocess
import sys

from bench.measure import cpu_seconds
from bench.settings import GIGABYTE, MEGABYTE, ROOT
from bench.workloads.produce import LARGE_BATCHES
from bench.workloads.session import Session

TOPIC_TLS = "bench-tls"
HANDSHAKE_CLIENTS = 2
SCRAM_CLIENTS = 4


def tls_produce(session: Session) -> dict[str, float]:
    """1000-byte records with the client's defaults, and in batches of 128 KB."""
    records = session.settings.produce_1000_records
    tls = session.server.tls_client()
    result, cpu = session.produce(TOPIC_TLS, records, 1000, bootstrap=session.server.tls, **tls)
    large, large_cpu = session.produce(
        f"{TOPIC_TLS}-large", records, 1000, bootstrap=session.server.tls, **tls, **LARGE_BATCHES
    )
    return {
        "tls_produce_mb_s": result.records_per_second * 1000 / MEGABYTE,
        "tls_produce_cpu_s_per_gb": cpu / (records * 1000 / GIGABYTE),
        "tls_produce_large_mb_s": large.records_per_second * 1000 / MEGABYTE,
        "tls_produce_large_cpu_s_per_gb": large_cpu / (records * 1000 / GIGABYTE),
    }


def tls_consume(session: Session) -> dict[str, float]:
    """A bare client that counts bytes reads what was produced."""
    records = session.fill(TOPIC_TLS, session.settings.produce_1000_records, 1000)
    session.settle()
    before = cpu_seconds(session.server.pid)
    found = _run(
        session, "bench.fetch_client",
        str(session.server.tls_port), TOPIC_TLS, str(session.settings.partitions), str(records),
        str(session.server.certificate),
    )[0]  # fmt: skip
    cpu = cpu_seconds(session.server.pid) - before
    return {
        "tls_consume_mb_s": found["mb_s"],
        "tls_consume_cpu_s_per_gb": cpu / (found["bytes"] / GIGABYTE),
    }


def tls_connections(session: Session) -> dict[str, float]:
    """Connections a second, each with a whole handshake and one request."""
    server, seconds = session.server, session.settings.handshake_seconds
    arguments = str(server.tls_port), str(server.certificate), str(seconds)
    _run(session, "bench.handshake_client", *arguments)  # warms the server up
    session.settle()
    before = cpu_seconds(server.pid)
    found = _run(session, "bench.handshake_client", *arguments, times=HANDSHAKE_CLIENTS)
    rate = sum(each["connections_s"] for each in found)
    cpu = cpu_seconds(server.pid) - before
    return {"tls_connections_s": rate, "tls_connection_cpu_ms": cpu / (rate * seconds) * 1000}


def scram_connections(session: Session) -> dict[str, float]:
    """Connections a second, each with a login by SCRAM-SHA-512."""
    server, seconds = session.server, session.settings.handshake_seconds
    arguments = str(server.sasl_port), str(seconds)
    _run(session, "bench.scram_client", *arguments, times=SCRAM_CLIENTS)  # warms the server up
    session.settle()
    before = cpu_seconds(server.pid)
    found = _run(session, "bench.scram_client", *arguments, times=SCRAM_CLIENTS)
    rate = sum(each["connections_s"] for each in found)
    cpu = cpu_seconds(server.pid) - before
    return {"scram_connections_s": rate, "scram_connection_cpu_ms": cpu / (rate * seconds) * 1000}


def _run(session: Session, module: str, *arguments: str, times: int = 1) -> list[dict[str, float]]:
    """What `times` processes of it print, at the same time."""
    command = [sys.executable, "-m", module, *arguments]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(times)
    ]
    try:
        outputs = [each.communicate(timeout=session.settings.timeout_seconds) for each in processes]
    except BaseException:
        for each in processes:
            each.kill()
            each.wait()
        raise
    if any(each.returncode for each in processes):
        raise RuntimeError(f"{module} failed")
    return [json.loads(output) for output, _ in outputs]
