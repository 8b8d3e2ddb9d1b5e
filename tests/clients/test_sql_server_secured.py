"""`barnabas sql server` behind TLS and passwords: clients of HTTP/2, HTTP/1.1 and the shell."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.certificates import Authority
from support.patience import PATIENCE_S
from support.sql_server_process import LOCAL, SqlServer

USER = ("ann", "words")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(
    kafka_bootstrap_servers: str, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlServer]:
    passwords = tmp_path_factory.mktemp("passwords") / "passwords"
    passwords.write_text("ann: words,admin\n")
    settings = [
        *LOCAL,
        "listeners=https://127.0.0.1:0,http://127.0.0.1:0",
        f"ssl.keystore.location={authority.issue('server')}",
        f"ssl.truststore.location={authority.file}",
        "ssl.client.authentication=REQUIRED",
        "authentication.method=BASIC",
        f"barnabas.sql.password.file={passwords}",
    ]
    found = SqlServer(kafka_bootstrap_servers, settings)
    found.start()
    yield found
    found.stop()


def trusting(authority: Authority, own: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if own is not None:
        context.load_cert_chain(own)
    return context


def test_http_2_and_1_are_chosen_in_the_handshake(server: SqlServer, authority: Authority) -> None:
    secure, plain = server.urls
    assert secure.startswith("https://")
    verify = trusting(authority, authority.issue("client"))
    for is_http2, version in ((True, "HTTP/2"), (False, "HTTP/1.1")):
        with httpx.Client(
            verify=verify, http2=is_http2, auth=USER, trust_env=False, timeout=PATIENCE_S
        ) as client:
            answer = client.post(f"{secure}/ksql", json={"ksql": "SHOW PROPERTIES;"})
            assert (answer.status_code, answer.http_version) == (200, version)
            assert "words" not in answer.text
            refused = client.get(f"{secure}/info", auth=("ann", "word"))
            assert (refused.status_code, refused.json()["error_code"]) == (401, 40100)
    with httpx.Client(
        http1=False, http2=True, auth=USER, trust_env=False, timeout=PATIENCE_S
    ) as client:
        assert client.get(f"{plain}/info").http_version == "HTTP/2"


def test_clients_without_a_certificate_get_no_connection(
    server: SqlServer, authority: Authority
) -> None:
    with (
        httpx.Client(
            verify=trusting(authority, None), trust_env=False, timeout=PATIENCE_S
        ) as client,
        pytest.raises((httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError)),
    ):
        client.get(f"{server.urls[0]}/healthcheck")


def test_a_web_socket_is_refused_with_401(server: SqlServer) -> None:
    host, port = server.urls[1].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as own:
        own.sendall(
            b"GET /ws/query HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert own.recv(4096).startswith(b"HTTP/1.1 401")


def test_the_shell_logs_in(server: SqlServer, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "barnabas", "sql", "--server", server.urls[1], "--json"),
            *("--user", "ann", "-e", "SHOW STREAMS;"),
        ],
        env={"PYTHONPATH": ":".join(sys.path), "BARNABAS_SQL_PASSWORD": "words"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["@type"] == "streams"
