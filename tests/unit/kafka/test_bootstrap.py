"""`first_reachable` finds a broker that answers, not just a port that accepts connections."""

from __future__ import annotations

import socket
import threading
from unittest import mock

import pytest

import barnabas
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.kafka.bootstrap import UnreachableError, first_reachable
from barnabas.kafka.security import Security

WAIT_S = 0.2
TLS_HANDSHAKE = b"\x16"
"""The type of a TLS record that begins a handshake (RFC 8446)."""


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_a_port_that_accepts_and_says_nothing_is_not_a_broker() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        mock.patch.object(socket, "create_connection", wraps=socket.create_connection) as connect,
    ):
        with pytest.raises(UnreachableError) as raised:
            first_reachable(address_of(server), WAIT_S)
        connect.assert_called_once_with(server.getsockname(), timeout=WAIT_S)
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
def test_where_tls_is_known_the_handshake_is_awaited(prefix: str, protocol: str) -> None:
    """And no plain text is sent: a node would log it."""
    security = Security(PropertyKeys({"security.protocol": protocol}))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = prefix + address_of(mute)
        with pytest.raises(UnreachableError) as raised:
            first_reachable(address, WAIT_S, security)
        reason = "connected, but no answer to the TLS handshake"
        assert str(raised.value) == f"no broker answers at {address} ({reason})"
        stream, _ = mute.accept()
        with stream:
            assert stream.recv(1) == TLS_HANDSHAKE


@pytest.mark.parametrize("kind", [None, "tls", "scram", "mtls"])
def test_a_node_is_reachable(kind: str | None) -> None:
    with (
        barnabas.Cluster(security=kind) as cluster,
        socket.create_server(("127.0.0.1", 0)) as mute,
    ):
        security = Security(PropertyKeys(cluster.client_config))
        servers = f"{address_of(mute)},{cluster.bootstrap_servers}"
        host, port = first_reachable(servers, WAIT_S * 10, security)
        assert f"{host}:{port}" == cluster.bootstrap_servers


def test_a_broker_that_our_settings_do_not_trust_is_reachable() -> None:
    """The client that connects later reports the distrust, with advice."""
    with barnabas.Cluster(security="mtls") as cluster:
        for settings in ({}, {"ssl.truststore.location": "/nowhere"}):
            security = Security(PropertyKeys({"security.protocol": "SSL", **settings}))
            host, port = first_reachable(cluster.bootstrap_servers, 10, security)
            assert f"{host}:{port}" == cluster.bootstrap_servers
