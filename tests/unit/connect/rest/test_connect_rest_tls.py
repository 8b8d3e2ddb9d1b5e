"""TLS of a worker's listeners and of its requests to others, by shaking hands."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from barnabas.connect.rest.settings import ADMIN, REGULAR, advertised_url, client_tls, listener_tls
from barnabas.schemas.data.errors import ConfigError
from barnabas.web.listening import ListenAddress
from support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def stores(authority: Authority, name: str = "worker", prefix: str = REGULAR) -> dict[str, str]:
    """A worker's settings with its certificate and whom it trusts."""
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.location": authority.issue(name),
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.location": authority.file,
    }


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """Return the version that both speak. Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for side in sides * 4:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return sides[0].version()


def stranger(authority: Authority) -> ssl.SSLContext:
    """A client without a certificate."""
    return ssl.create_default_context(cadata=authority.text)


@pytest.mark.parametrize("prefix", [REGULAR, ADMIN, ""])
def test_who_must_show_a_certificate(authority: Authority, prefix: str) -> None:
    values = stores(authority, prefix=prefix)
    asked = REGULAR if prefix == "" else prefix
    assert shake_hands(listener_tls(values, asked), stranger(authority))
    values[f"{prefix}ssl.client.auth"] = "requested"
    assert shake_hands(listener_tls(values, asked), stranger(authority))
    values[f"{prefix}ssl.client.auth"] = "required"
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shake_hands(listener_tls(values, asked), stranger(authority))
    own = stores(authority, "other") if prefix else values
    assert shake_hands(listener_tls(values, asked), client_tls(own))


def test_whom_workers_trust(authority: Authority, tmp_path: Path) -> None:
    values = {**stores(authority), f"{REGULAR}ssl.client.auth": "required"}
    (tmp_path / "foreign").mkdir()
    foreign = stores(Authority(tmp_path / "foreign", "foreign"), "foreign")
    server = listener_tls(values, REGULAR)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(server, client_tls(foreign))
    elsewhere = {**values, f"{REGULAR}ssl.keystore.location": authority.issue("w", ["127.0.0.2"])}
    with pytest.raises(ssl.SSLCertVerificationError, match=r"127\.0\.0\.1"):
        shake_hands(listener_tls(elsewhere, REGULAR), client_tls(values))
    unchecked = {**values, f"{REGULAR}ssl.endpoint.identification.algorithm": ""}
    assert shake_hands(listener_tls(elsewhere, REGULAR), client_tls(unchecked))


def test_versions_and_suites(authority: Authority) -> None:
    values = {**stores(authority), f"{REGULAR}ssl.enabled.protocols": "TLSv1.2"}
    assert shake_hands(listener_tls(values, REGULAR), stranger(authority)) == "TLSv1.2"
    newer = {**values, f"{REGULAR}ssl.enabled.protocols": "TLSv1.3"}
    with pytest.raises(ssl.SSLError):
        shake_hands(listener_tls(values, REGULAR), client_tls(newer))
    suite = f"{REGULAR}ssl.cipher.suites"
    values[suite] = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    server = listener_tls(values, REGULAR)
    assert "ECDHE-ECDSA-AES256-GCM-SHA384" in {one["name"] for one in server.get_ciphers()}
    assert "ECDHE-ECDSA-AES128-GCM-SHA256" not in {one["name"] for one in server.get_ciphers()}
    with pytest.raises(ConfigError, match="OpenSSL has none of TLS_NOTHING"):
        listener_tls({**values, suite: "TLS_NOTHING"}, REGULAR)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("client.auth", "always", "Invalid value always for configuration ssl.client.auth: String"),
        ("enabled.protocols", "TLSv9", "'TLSv9' is not a version of TLS"),
        ("keystore.location", "", "must be set for a listener that speaks https"),
        ("truststore.location", "/nowhere", "/nowhere"),
    ],
)
def test_wrong_settings(authority: Authority, name: str, value: str, message: str) -> None:
    values = {**stores(authority), f"{REGULAR}ssl.{name}": value}
    with pytest.raises(ConfigError, match=message):
        listener_tls(values, REGULAR)


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_a_worker_that_listens_everywhere_is_advertised_by_its_name(everywhere: str) -> None:
    bound = [ListenAddress(everywhere, 8083)]
    assert advertised_url({}, bound) == f"http://{socket.gethostname()}:8083"
    assert advertised_url({"rest.advertised.host.name": "w"}, bound) == "http://w:8083"
