"""The logins that tests hand to clients."""

from __future__ import annotations

import gc
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import client_logins
from support.certificates import Authority

SERVERS = "localhost:1,localhost:2"


@pytest.fixture
def login(tmp_path: Path) -> Iterator[Path]:
    """Makes a login known; returns the directory of its files."""
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": Authority(tmp_path).file,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "client",
        "sasl.password": "secret",
    }
    with client_logins.known(SERVERS, settings, tmp_path):
        yield tmp_path


def test_a_file_is_written_once_and_as_a_whole(login: Path) -> None:
    """Java clients read it while the next command asks for the same one."""
    path = client_logins.java_file(SERVERS)
    assert path is not None
    before = Path(path).stat()
    assert client_logins.java_file(SERVERS) == path
    after = Path(path).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert client_logins.java_file(SERVERS, {"client.id": "another"}) != path
    assert [each.suffix for each in login.glob("*.java")] == [".java"] * 2
    assert not list(login.glob("tmp*"))


@pytest.mark.usefixtures("login")
def test_a_socket_that_a_client_of_python_drops_is_closed() -> None:
    context = client_logins.python(SERVERS)["ssl_context"]
    here, there = socket.socketpair()
    with there, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        dropped = context.wrap_socket(
            here, server_hostname="localhost", do_handshake_on_connect=False
        )
        dropped.setblocking(False)
        del dropped
        gc.collect()
        there.settimeout(60)
        assert there.recv(1) == b""
    assert [each for each in warned if each.category is ResourceWarning] == []
