"""The question that tells a broker that answers from a port that only accepts connections."""

from __future__ import annotations

import socket
import threading
import time

import pytest

import barnabas
from barnabas.kafka.bootstrap import UnreachableError, first_reachable

WAIT_S = 0.2


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_a_port_that_accepts_and_says_nothing_is_not_a_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        started_s = time.monotonic()
        with pytest.raises(UnreachableError) as raised:
            first_reachable(address_of(server), WAIT_S)
        assert time.monotonic() - started_s < 10 * WAIT_S
        assert str(raised.value) == (
            f"no broker answers at {address_of(server)} (connected, but no answer)"
        )


@pytest.mark.parametrize("answer", [b"", b"\x15\x03\x03\x00\x02\x02\x46"], ids=["closes", "alert"])
def test_a_listener_that_wants_tls_is_reachable(answer: bytes) -> None:
    """It sends an alert, or only closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            stream, _ = server.accept()
            with stream:
                stream.sendall(answer)

        thread = threading.Thread(target=refuse)
        thread.start()
        host, port = first_reachable(address_of(server))
        thread.join()
        assert f"{host}:{port}" == address_of(server)


@pytest.mark.parametrize(("prefix", "protocol"), [("SSL://", "PLAINTEXT"), ("", "SASL_SSL")])
def test_no_plain_text_is_sent_where_tls_is_known(prefix: str, protocol: str) -> None:
    """A node would log it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        first_reachable(prefix + address_of(server), protocol=protocol)
        stream, _ = server.accept()
        with stream:
            assert stream.recv(1) == b""


@pytest.mark.parametrize("security", [None, "tls", "scram"])
def test_a_node_is_reachable(security: str | None) -> None:
    with (
        barnabas.Cluster(security=security) as cluster,
        socket.create_server(("127.0.0.1", 0)) as mute,
    ):
        servers = f"{address_of(mute)},{cluster.bootstrap_servers}"
        host, port = first_reachable(servers, WAIT_S * 10)
        assert f"{host}:{port}" == cluster.bootstrap_servers
