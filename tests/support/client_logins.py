"""The logins of clients, by the addresses of the clusters that ask for one.

A test names a cluster by its bootstrap servers alone. Here each kind of client finds the settings
that it needs beside them, in its own spelling; none for a cluster that anybody may use.
"""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.base.config.properties import format_properties
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.kafka.security import Security
from barnabas.kafka.wire import Access

_LOGINS: dict[str, tuple[Mapping[str, str], Path]] = {}
"""host:port → settings with librdkafka's names, and a directory for files."""
KCAT_MECHANISM = "PLAIN"
"""The SCRAM of kcat 1.7.1, with librdkafka 2.0.2, sends a wrong nonce; Kafka 4 refuses it too."""


@contextmanager
def known(bootstrap_servers: str, settings: Mapping[str, str], directory: Path) -> Iterator[None]:
    """Let clients of these servers log in with settings that librdkafka would take."""
    servers = bootstrap_servers.split(",")
    _LOGINS.update(dict.fromkeys(servers, (settings, directory)))
    try:
        yield
    finally:
        for server in servers:
            _LOGINS.pop(server, None)


def librdkafka(bootstrap_servers: str) -> dict[str, Any]:
    """For confluent-kafka."""
    security = _security(bootstrap_servers)
    more = {} if security is None else security.librdkafka()
    return {"bootstrap.servers": bootstrap_servers, **more}


def kcat(bootstrap_servers: str) -> list[str]:
    """Arguments of kcat."""
    settings = librdkafka(bootstrap_servers)
    if "sasl.mechanism" in settings:
        settings["sasl.mechanism"] = KCAT_MECHANISM
    return [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]


def python(bootstrap_servers: str) -> dict[str, Any]:
    """Keyword arguments of aiokafka and kafka-python."""
    security = _security(bootstrap_servers)
    more = {} if security is None else security.aiokafka()
    if "ssl_context" in more:
        more["ssl_context"].sslsocket_class = SelfClosingSocket
    return {"bootstrap_servers": bootstrap_servers, **more}


class SelfClosingSocket(ssl.SSLSocket):
    """A TLS socket that closes when it is dropped, without a warning.

    kafka-python 3.0.12 does not close the socket of a connection that ends before its TLS handshake
    does (`KafkaConnectionManager._build_transport`), as when a client closes early.
    """

    def __del__(self) -> None:
        self.close()


def java(bootstrap_servers: str) -> dict[str, str]:
    """For Java's clients, beside the servers."""
    security = _security(bootstrap_servers)
    return {} if security is None else security.java()


def java_file(bootstrap_servers: str, more: Mapping[str, str] | None = None) -> str | None:
    """The path of a properties file with the servers, the login and more; None without a login."""
    if _security(bootstrap_servers) is None:
        return None
    settings = {"bootstrap.servers": bootstrap_servers, **java(bootstrap_servers), **(more or {})}
    text = format_properties(settings)
    directory = _found(bootstrap_servers)[1]
    path = directory / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.java"
    if not path.exists():  # a client may be reading it
        with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as unfinished:
            unfinished.write(text)
        Path(unfinished.name).replace(path)
    return str(path)


def access(bootstrap_servers: str, timeout_s: float) -> Access | None:
    """For connections of our own; None without a login."""
    security = _security(bootstrap_servers)
    return None if security is None else security.access(bootstrap_servers, timeout_s)


def go(bootstrap_servers: str) -> dict[str, str]:
    """Of the programs in Go: a file of authorities, user, password, mechanism."""
    settings = librdkafka(bootstrap_servers)
    names = {
        "CA": "ssl.ca.location",
        "User": "sasl.username",
        "Password": "sasl.password",
        "Mechanism": "sasl.mechanism",
    }
    return {name: settings[given] for name, given in names.items() if given in settings}


def _found(bootstrap_servers: str) -> tuple[Mapping[str, str], Path]:
    return _LOGINS[bootstrap_servers.partition(",")[0]]


def _security(bootstrap_servers: str) -> Security | None:
    if bootstrap_servers.partition(",")[0] not in _LOGINS:
        return None
    return Security(PropertyKeys(_found(bootstrap_servers)[0]))
