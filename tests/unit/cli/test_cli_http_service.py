"""`barnabas connect` and a worker that asks for certificates: the same client asks registries."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from barnabas.cli.errors import ExitCode
from support.certificates import Authority
from support.cli import run_cli


class _NoConnectors(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]" if self.path == "/connectors" else b"{}")

    def log_message(self, *_: object) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Handshakes that fail are what is tried here."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def url(authority: Authority) -> Iterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.file)
    context.load_cert_chain(authority.issue("worker"))
    context.verify_mode = ssl.CERT_REQUIRED
    server = _Quiet(("127.0.0.1", 0), _NoConnectors)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_certificate_of_the_user_is_shown(url: str, authority: Authority) -> None:
    known = ("connect", "list", "--json", "--url", url, "--ca-file", authority.file)
    user = authority.issue("user")
    assert run_cli(*known, "--cert-file", user).json == []
    key = Path(user).with_name("key.pem")
    text = Path(user).read_text()
    certificate_at = text.index("-----BEGIN CERTIFICATE")
    key.write_text(text[:certificate_at])
    Path(user).write_text(text[certificate_at:])
    assert run_cli(*known, "--cert-file", user, "--key-file", str(key)).json == []
    without = run_cli(*known)
    assert without.code == ExitCode.UNREACHABLE
    assert url in without.err


def test_files_that_are_no_certificates_are_named(tmp_path: Path, authority: Authority) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("this is none\n")
    known = ("connect", "list", "--url", "https://127.0.0.1:1")
    locked = authority.issue("locked", password="words")
    for options, said in (
        (("--ca-file", str(junk)), f"--ca-file: {junk}"),
        (("--cert-file", str(junk)), f"--cert-file: {junk}"),
        (("--cert-file", locked), f"--cert-file: {locked}"),
        (("--key-file", locked), "--key-file is that of a --cert-file"),
    ):
        found = run_cli(*known, *options)
        assert (found.code, said in found.err) == (ExitCode.USAGE, True), found.err
        assert "words" not in found.err
