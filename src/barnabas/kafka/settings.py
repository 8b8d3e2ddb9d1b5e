"""Settings of Kafka clients: one translator, from Java's names to each kind of client.

Users write settings with the names of Kafka's documentation, or with librdkafka's: both are
accepted everywhere. `security.py` translates the settings of TLS and logins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.base.errors import ConfigError
from barnabas.base.jaas import JaasError, jaas_options
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.security import Security
from barnabas.kafka.setting_names import (
    JAAS,
    JAVA_SECURITY,
    KEYSTORE,
    LIBRDKAFKA_FILES,
    OWN,
    SECURITY_PREFIXES,
    SYSTEM_STORE,
    TRUSTED,
)

JAVA_ONLY: Final = JAVA_SECURITY | {
    *("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
    *("auto.include.jmx.reporter", "config.providers", "default.api.timeout.ms"),
    *("enable.metrics.push", "exclude.internal.topics", "interceptor.classes", "max.block.ms"),
    *("max.poll.records", "metric.reporters", "metrics.num.samples", "metrics.recording.level"),
    *("metrics.sample.window.ms", "partitioner.adaptive.partitioning.enable"),
    *("partitioner.availability.timeout.ms", "partitioner.ignore.keys"),
    "socket.connection.setup.timeout.max.ms",
}
"""Settings of Java's clients that librdkafka has no counterpart of."""
RENAMED: Final = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "partitioner.class": "partitioner",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Settings of Java's clients that librdkafka has under another name."""
_ASSIGNORS: Final = {
    "CooperativeStickyAssignor": "cooperative-sticky",
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "cooperative-sticky",
}


_REPLACED: Final[Mapping[str, Sequence[str]]] = {
    "sasl.mechanism": ("sasl.mechanisms",),
    "sasl.mechanisms": ("sasl.mechanism",),
    "ssl.ca.location": ("ssl.ca.pem",),
    "ssl.ca.pem": ("ssl.ca.location",),
    "ssl.truststore.location": (*TRUSTED, "ssl.truststore.certificates"),
    "ssl.truststore.certificates": (*TRUSTED, "ssl.truststore.location"),
    "ssl.certificate.location": ("ssl.certificate.pem",),
    "ssl.certificate.pem": ("ssl.certificate.location",),
    "ssl.key.location": ("ssl.key.pem",),
    "ssl.key.pem": ("ssl.key.location",),
    KEYSTORE: (*OWN, "ssl.keystore.key", "ssl.keystore.certificate.chain"),
    "ssl.keystore.key": (*OWN, KEYSTORE),
    "ssl.keystore.certificate.chain": (*OWN, KEYSTORE),
}
"""Settings that say the same in another way and would win, by the setting that replaces them."""
_LOGIN: Final = {"username": "sasl.username", "password": "sasl.password"}


def overridden(values: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Settings with `more` on top, which wins whichever names it uses. Raises ConfigError."""
    left = dict(values)
    if JAAS in left and not {JAAS, *_LOGIN.values()}.isdisjoint(more):
        options = _options(left.pop(JAAS))
        if JAAS not in more:
            left |= {name: options[own] for own, name in _LOGIN.items() if options.get(own)}
    replaced = {other for name in more for other in _REPLACED.get(name, ())}
    return {name: value for name, value in left.items() if name not in replaced} | dict(more)


def _options(line: str) -> dict[str, str]:
    try:
        return jaas_options(line)
    except JaasError as error:
        raise ConfigError(JAAS, str(error)) from None


def librdkafka_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """A client's settings for librdkafka; those that only Java's clients have are left out.

    Raises ConfigError.
    """
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if not name.startswith(SECURITY_PREFIXES) and name not in JAVA_ONLY:
            own = RENAMED.get(name, name)
            settings[own] = librdkafka_value(name, value)
    return settings | Security(PropertyKeys(given)).librdkafka()


def java_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """A client's settings for Java's clients. Raises ConfigError."""
    others = {
        name: value for name, value in given.items() if not name.startswith(SECURITY_PREFIXES)
    }
    return others | Security(PropertyKeys(given)).java()


def librdkafka_value(name: str, value: Any) -> Any:
    """The value that a setting has for librdkafka. Raises ConfigError."""
    text = str(value)
    if name == "partition.assignment.strategy" and "Assignor" in text:
        kinds = [_ASSIGNORS.get(part.strip().rpartition(".")[2]) for part in text.split(",")]
        return next((kind for kind in kinds if kind), "cooperative-sticky")
    if name == "buffer.memory":
        if not text.isdecimal():
            raise ConfigError(name, f"{text!r} is not a size in bytes")
        return str(max(1, int(text) // 1024))
    if name in ("partitioner", "partitioner.class") and "." in text:
        return JAVA_PARTITIONER["partitioner"]
    if name == "auto.offset.reset" and text == "none":
        return "error"
    return value


def check_servers(text: str, name: str = "bootstrap.servers") -> None:
    """Raise ConfigError for an address that is not host:port."""
    for server in text.split(","):
        if not server.strip().rpartition(":")[2].isdigit():
            raise ConfigError(name, f"{server!r} is not host:port")


def check_files(given: Mapping[str, str]) -> None:
    """Raise ConfigError for a PEM file of librdkafka's that cannot be read.

    librdkafka itself does not say which one it was.
    """
    for name in LIBRDKAFKA_FILES:
        path = given.get(name)
        if not path or path == SYSTEM_STORE or os.path.isdir(path):
            continue
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError as error:
            raise ConfigError(name, f"{path}: {error.strerror}") from error
