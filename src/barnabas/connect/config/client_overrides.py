"""Which settings of Kafka clients a connector's configuration may set.

librdkafka's settings can load a shared library (`ssl.engine.location`, `plugin.library.paths`), run
a command (`sasl.kerberos.kinit.cmd`, and the principal and key tab that it names) and read files
(`sasl.oauthbearer.assertion.file`). So a connector may set what is listed here, and what the worker
adds by `connector.client.config.override.allowlist`; the worker's own settings are not limited.

Policies: All (with this list, which Kafka's does not have), None, Principal and Allowlist (KIP-458,
KIP-1188). Sources: ProducerConfig, ConsumerConfig, AdminClientConfig, SslConfigs (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.schemas.data.errors import ConfigError

POLICY: Final = "connector.client.config.override.policy"
ALLOWLIST: Final = "connector.client.config.override.allowlist"
_POLICIES: Final = ("All", "Allowlist", "None", "Principal")
_SUFFIX: Final = "ConnectorClientConfigOverridePolicy"
_PRINCIPAL: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
_SAFE: Final = """
acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset
batch.num.messages batch.size bootstrap.controllers bootstrap.servers buffer.memory check.crcs
client.dns.lookup client.id client.rack compression.gzip.level compression.level
compression.lz4.level compression.type compression.zstd.level connections.max.idle.ms
default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence
enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
fetch.wait.max.ms group.id group.instance.id group.protocol group.remote.assignor
heartbeat.interval.ms isolation.level linger.ms max.block.ms max.in.flight.requests.per.connection
max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size message.max.bytes
metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metrics.num.samples metrics.recording.level metrics.sample.window.ms
partition.assignment.strategy partitioner partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
queue.buffering.max.kbytes queue.buffering.max.messages queued.max.messages.kbytes
receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries
retry.backoff.max.ms retry.backoff.ms sasl.jaas.config sasl.mechanism sasl.mechanisms
sasl.password sasl.username security.protocol send.buffer.bytes session.timeout.ms
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.keepalive.enable
socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.location ssl.ca.pem
ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.enabled.protocols
ssl.endpoint.identification.algorithm ssl.key.location ssl.key.password ssl.key.pem
ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
ssl.keystore.password ssl.keystore.type ssl.protocol ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type transaction.timeout.ms transactional.id
"""
SAFE: Final = frozenset(_SAFE.split())
"""Java's names and librdkafka's: none runs code. Some have no effect here."""
_added: set[str] = set()
"""By the worker's settings; of the process, as the plugins that it allows."""


def override_policy(settings: Mapping[str, str]) -> str:
    """Return All, Allowlist, None or Principal. Raises ConfigError."""
    name = settings.get(POLICY, "All").rpartition(".")[2].removesuffix(_SUFFIX)
    for policy in _POLICIES:
        if name.lower() == policy.lower():
            return policy
    raise ConfigError(
        f"Invalid value {settings[POLICY]} for configuration {POLICY}: it is one of "
        + ", ".join(_POLICIES)
    )


def allow_clients_of_worker(settings: Mapping[str, str]) -> None:
    """Let connectors set what the worker's allowlist names."""
    names = settings.get(ALLOWLIST, "").split(",")
    _added.update(name.strip() for name in names if name.strip())


def refusal(name: str, policy: str = "All") -> str | None:
    """Return why a connector may not set a client's setting; None if it may."""
    allowed = {
        "All": SAFE | _added,
        "Allowlist": _added,
        "None": frozenset[str](),
        "Principal": _PRINCIPAL,
    }[policy]
    if name in allowed:
        return None
    text = (
        f"The '{policy}' policy does not allow '{name}' to be overridden in the connector "
        "configuration."
    )
    if policy == "All":
        text += (
            " It is none of the settings that are known to run no code in the worker; "
            f"{ALLOWLIST} of the worker's settings can add it."
        )
    return text


def check_overrides(names: Iterable[str], policy: str = "All", prefix: str = "") -> None:
    """Raise ConfigError for the first setting that a connector may not set."""
    for name in names:
        text = refusal(name, policy)
        if text is not None:
            raise ConfigError(f"{prefix}{name}: {text}")


def unsafe(names: Iterable[str]) -> set[str]:
    """Return those that a worker has to allow."""
    return set(names) - SAFE
