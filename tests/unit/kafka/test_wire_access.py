"""The addresses that our own connections go to, and the certificates that they take."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.tls.contexts import PropertyKeys
from barnabas.kafka.security import Security
from barnabas.kafka.wire import Access, AccessError, Brokers, Connection, WireError
from support.certificates import Authority


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        ("[::1]:5", [("::1", 5)]),
        ("SSL://a:1", [("a", 1)]),
        ("a", [("a", 9092)]),
        ("[::1]", [("::1", 9092)]),
        ("a:1,", [("a", 1)]),
        ("", []),
    ],
)
def test_bootstrap_servers_are_read_as_librdkafka_reads_them(
    servers: str, addresses: list[tuple[str, int]]
) -> None:
    assert Access(servers).addresses() == addresses


def test_a_bootstrap_server_that_is_none_is_refused() -> None:
    with pytest.raises(AccessError, match="'a:x' is not host:port"):
        Brokers(Access("a:x")).any()


def test_a_bootstrap_server_that_did_not_answer_is_asked_after_the_others() -> None:
    """One that is frozen is waited for once, and not for each request."""
    asked: list[str] = []
    frozen = {"a"}

    class Some(Brokers):
        def at(self, host: str, port: int) -> Any:
            asked.append(host)
            if host in frozen:
                raise WireError("no answer")
            return host

    brokers = Some(Access("a:1,b:1,c:1"))
    assert [brokers.any(), brokers.any()] == ["b", "b"]
    assert asked == ["a", "b", "b"]
    frozen.update("bc")
    with pytest.raises(WireError, match="no answer"):
        brokers.any()
    frozen.remove("c")
    assert brokers.any() == "c"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextlib.contextmanager
def greeting(authority: Authority, host: str) -> Iterator[int]:
    """A port where a server shows a certificate for a host, and closes."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.issue("broker", [host]))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            plain, _ = server.accept()
            with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True):
                pass

        thread = threading.Thread(target=greet)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("host", "algorithm", "error"),
    [
        ("127.0.0.1", "https", WireError),
        ("127.0.0.2", "https", AccessError),
        ("127.0.0.2", None, AccessError),
        ("127.0.0.2", "none", WireError),
    ],
)
def test_a_certificate_for_another_host_is_refused(
    authority: Authority, host: str, algorithm: str | None, error: type[Exception]
) -> None:
    """If the certificate is accepted, the next failure is that the server closes."""
    settings = {"security.protocol": "SSL", "ssl.ca.location": authority.file}
    if algorithm is not None:
        settings["ssl.endpoint.identification.algorithm"] = algorithm
    with greeting(authority, host) as port, pytest.raises(error):
        Connection(Security(PropertyKeys(settings)).access(""), "127.0.0.1", port)
