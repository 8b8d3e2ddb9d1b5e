"""`barnabas cert`: files of the right modes, nothing overwritten, problems named."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path

import pytest

from barnabas.cli.errors import ExitCode
from support.cli import run_cli


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an authority."""
    monkeypatch.chdir(tmp_path)
    assert run_cli("cert", "ca").code == 0
    return tmp_path / "certificates"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_belong_to_their_owner_alone(directory: Path) -> None:
    assert run_cli("cert", "node", "node-1", "--host", "localhost").code == 0
    assert run_cli("cert", "client", "alice").code == 0
    found = {path.name: oct(mode(path)) for path in directory.iterdir()}
    private = dict.fromkeys(("ca-key.pem", "node-1.pem", "alice.pem"), "0o600")
    assert found == {**private, "ca.pem": "0o644"}
    ssl.create_default_context().load_cert_chain(directory / "node-1.pem")


def test_an_authority_is_never_overwritten_silently(directory: Path) -> None:
    before = (directory / "ca.pem").read_text()
    refused = run_cli("cert", "ca")
    assert refused.code == ExitCode.REFUSED
    assert "--replace" in refused.err
    os.unlink(directory / "ca.pem")
    assert run_cli("cert", "ca").code == ExitCode.REFUSED, "its key is there"
    assert run_cli("cert", "ca", "--replace").code == 0
    assert (directory / "ca.pem").read_text() != before


def test_a_certificate_is_kept_or_renewed(directory: Path) -> None:
    assert run_cli("cert", "node", "node-1", "--days", "3").code == 0
    path = str(directory / "node-1.pem")
    refused = run_cli("cert", "node", "node-1")
    assert refused.code == ExitCode.REFUSED
    assert "cert renew" in refused.err
    soon = run_cli("cert", "show", path, "--within", "10")
    assert soon.code == ExitCode.PROBLEMS
    assert "expires on" in soon.err
    assert run_cli("cert", "renew", path, "--days", "90").code == 0
    assert run_cli("cert", "show", path, "--within", "10").code == 0
    assert mode(directory / "node-1.pem") == 0o600
    assert run_cli("cert", "node", "node-1", "--replace").code == 0
    assert not [path for path in directory.iterdir() if "partial" in path.name]


def test_show_says_whether_it_fits(directory: Path) -> None:
    assert run_cli("cert", "node", "node-1", "--host", "kafka.example").code == 0
    path = str(directory / "node-1.pem")
    assert run_cli("cert", "show", path, "--host", "kafka.example").code == 0
    other = run_cli("cert", "show", path, "--host", "other.example", "--json")
    assert other.code == ExitCode.PROBLEMS
    assert other.json["problems"] == [
        "CN=node-1 does not fit other.example: its hosts are kafka.example"
    ]
    assert other.json["certificates"][0]["hosts"] == ["kafka.example"]
    assert b"PRIVATE" not in other.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["cert", "node", "n", "-d", "empty"], 4, "barnabas cert ca -d empty"),
        (["cert", "node", "../n"], 2, "name"),
        (["cert", "client", "ca"], 2, "name"),
        (["cert", "node", "n", "--host", "a b"], 2, "'a b' is not a host name"),
        (["cert", "show", "nothing.pem"], 4, "nothing.pem"),
        (["cert", "show", "localhost:1"], 3, "localhost:1: connection refused"),
        (["cert", "renew", "certificates/ca.pem"], 2, "no private key"),
        (["cert", "ca", "--days", "0"], 2, "--days"),
    ],
)
@pytest.mark.usefixtures("directory")
def test_refusals(arguments: list[str], code: int, words: str) -> None:
    refused = run_cli(*arguments)
    assert refused.code == code
    assert words in refused.err
    assert refused.err.count("\n") == 1
