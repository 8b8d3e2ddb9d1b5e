"""A node retrieves tokens for its own logins: its requests, and its handling of answers."""

import base64
import contextlib
import json
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from barnabas.app.local_nodes import standalone_properties
from barnabas.base.errors import ConfigError
from barnabas.base.oauth.bearer import take_apart
from barnabas.base.oauth.fetch import FetchError, FetchSettings
from barnabas.base.oauth.retrieval import AssertionSettings, Grant, RetrievalSettings, retrieve
from barnabas.base.oauth.web import fetch
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.oauth import ALLOWED_URLS_VARIABLE, check_url
from barnabas.node.net.oauth.configured import Keys
from barnabas.node.net.oauth.unsecured_login import unsecured_token
from barnabas.node.security.sasl.oauthbearer import UnsecuredValidator
from support.certificates import Authority
from support.identity_provider import IdentityProvider
from support.patience import PATIENCE_S
from support.tokens import rsa_key

DROPS = 1000
"""So many bytes take longer than anybody waits."""


def now_ms() -> int:
    return int(time.time() * 1000)


@pytest.fixture
def provider() -> Any:
    with IdentityProvider().serving() as serving:
        yield serving


def key_file(directory: Path, key: Any, passphrase: bytes | None = None) -> Path:
    encryption = (
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption()
    )
    path = directory / "key.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )
    return path


def test_by_client_secret(provider: IdentityProvider) -> None:
    settings = RetrievalSettings(
        f"{provider.url}/token", client_id="me", client_secret="s3cret", scope=" a b "
    )
    assert take_apart(retrieve(settings, now_ms)).claims["sub"] == "broker"
    (asked,) = provider.asked
    assert asked.form == {"grant_type": "client_credentials", "scope": "a b"}
    assert asked.headers["Authorization"] == f"Basic {base64.b64encode(b'me:s3cret').decode()}"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize("grant", [Grant.CLIENT_ASSERTION, Grant.JWT_BEARER])
def test_by_a_file_of_an_assertion(
    provider: IdentityProvider, grant: Grant, tmp_path: Path
) -> None:
    file = tmp_path / "assertion"
    file.write_text("a.b.c\n")
    retrieve(
        RetrievalSettings(f"{provider.url}/token", grant, client_id="me", assertion=file), now_ms
    )
    form = provider.asked[0].form
    assert "Authorization" not in provider.asked[0].headers
    if grant is Grant.JWT_BEARER:
        assert form == {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": "a.b.c",
        }
    else:
        assert form == {
            "grant_type": "client_credentials",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": "a.b.c",
            "client_id": "me",
        }


@pytest.mark.parametrize(
    ("key", "algorithm", "passphrase"),
    [
        (rsa_key("first"), "RS256", None),
        (rsa_key("first"), "RS256", "open sesame"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256", None),
    ],
    ids=["RSA", "encrypted", "EC"],
)
def test_by_an_assertion_made_here(
    provider: IdentityProvider, tmp_path: Path, key: Any, algorithm: str, passphrase: str | None
) -> None:
    template = tmp_path / "template.json"
    template.write_text(
        json.dumps({"header": {"kid": "k"}, "payload": {"aud": "theirs", "x": 1, "exp": 1}})
    )
    made = AssertionSettings(
        key_file(tmp_path, key, passphrase.encode() if passphrase else None),
        passphrase,
        algorithm,
        {"iss": "me", "aud": "ours"},
        template,
        expires_after_seconds=100,
        valid_before_seconds=7,
        has_id=True,
    )
    retrieve(RetrievalSettings(f"{provider.url}/token", Grant.JWT_BEARER, assertion=made), now_ms)
    shown = provider.asked[0].form["assertion"]
    claims = jwt.decode(shown, key.public_key(), [algorithm], audience="theirs")
    assert jwt.get_unverified_header(shown) == {"alg": algorithm, "typ": "JWT", "kid": "k"}
    assert (claims["iss"], claims["x"]) == ("me", 1)
    assert (claims["exp"] - claims["iat"], claims["iat"] - claims["nbf"]) == (100, 7)
    assert len(claims["jti"]) == 36
    assert "sesame" not in repr(made)


def test_keys_that_sign_no_assertion(provider: IdentityProvider, tmp_path: Path) -> None:
    file = key_file(tmp_path, rsa_key("first"), b"open sesame")
    for settings in (
        AssertionSettings(file, "wrong"),
        AssertionSettings(file),
        AssertionSettings(file, "open sesame", "ES256"),
        AssertionSettings(tmp_path / "none"),
        AssertionSettings(file, "open sesame", template_file=file),
    ):
        with pytest.raises(FetchError) as raised:
            retrieve(
                RetrievalSettings(f"{provider.url}/token", Grant.JWT_BEARER, assertion=settings),
                now_ms,
            )
        assert "sesame" not in str(raised.value)
    assert not provider.asked


def test_a_file_of_a_token(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    file.write_text(" a.b.c \n")
    url = file.as_uri()
    assert retrieve(RetrievalSettings(url), now_ms) == "a.b.c"
    file.write_text("\n")
    with pytest.raises(FetchError, match="no token"):
        retrieve(RetrievalSettings(url), now_ms)
    file.unlink()
    with pytest.raises(FetchError, match="cannot be read"):
        retrieve(RetrievalSettings(url), now_ms)


@pytest.mark.parametrize(
    ("code", "is_final"), [(400, True), (401, True), (404, True), (429, False), (503, False)]
)
def test_a_provider_that_refuses(provider: IdentityProvider, code: int, is_final: bool) -> None:
    provider.failures = [code]
    settings = RetrievalSettings(f"{provider.url}/token", client_id="me", client_secret="s3cret")
    with pytest.raises(FetchError, match=f"answers {code}: .*invalid_client") as raised:
        retrieve(settings, now_ms)
    assert raised.value.is_final is is_final
    assert "s3cret" not in str(raised.value)


def test_a_redirect_is_not_followed(provider: IdentityProvider) -> None:
    provider.failures = [302]
    with pytest.raises(FetchError, match="answers 302"):
        fetch(f"{provider.url}/jwks", FetchSettings())
    assert provider.times("/elsewhere") == 0


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"{}", b'{"access_token": 5}', b'{"access_token": " "}', b"\xff", b"[" * 100_000],
)
def test_answers_without_a_token(provider: IdentityProvider, answer: bytes) -> None:
    provider.answer = lambda _: answer
    with pytest.raises(FetchError, match="without an access_token"):
        retrieve(RetrievalSettings(f"{provider.url}/token"), now_ms)


def test_an_answer_without_end(provider: IdentityProvider) -> None:
    provider.answer = lambda _: b"x" * ((1 << 20) + 1)
    with pytest.raises(FetchError, match="more than"):
        fetch(f"{provider.url}/jwks", FetchSettings())


@pytest.mark.parametrize(
    ("begin", "each"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"{"),
        (b"HTTP/1.1 500 Error\r\nContent-Length: 1000000\r\n\r\n", b"{"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["head", "body", "error", "continued"],
)
def test_an_answer_that_drips(begin: bytes, each: bytes) -> None:
    for timeout_ms in (100, 1_000, 10_000):  # a slow machine may not drip within the shorter ones
        error = failure_of_what_drips(begin, each, timeout_ms)
        if "takes more than" in error:
            break
    assert f"takes more than {timeout_ms / 500:g} s to answer" in error


def failure_of_what_drips(begin: bytes, each: bytes, timeout_ms: int) -> str:
    """The error for a server that sends some bytes within each part of the time-out."""
    drops = 0
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        nonlocal drops
        with contextlib.suppress(OSError), listener.accept()[0] as connection:
            connection.sendall(begin)
            while drops < DROPS and not ended.wait(timeout_ms / 20_000):
                connection.sendall(each)
                drops += 1

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/jwks"
        try:
            with pytest.raises(FetchError) as raised:
                fetch(url, FetchSettings(timeout_ms=timeout_ms))
        finally:
            ended.set()
            thread.join()
    assert drops < DROPS
    return str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 Error\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 503 Error\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["no body", "no size"],
)
def test_an_error_whose_text_does_not_come(answer: bytes) -> None:
    for timeout_ms in (200, 2_000, 20_000):  # a slow machine's 503 comes after the shorter ones
        error = failure_without_text(answer, timeout_ms)
        if "answers 503" in str(error):
            break
    assert "answers 503" in str(error)
    assert not error.is_final


def failure_without_text(answer: bytes, timeout_ms: int) -> FetchError:
    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as connection:
            connection.sendall(answer)
            while connection.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/token"
        with pytest.raises(FetchError) as raised:
            fetch(url, FetchSettings(timeout_ms=timeout_ms))
        thread.join()
    return raised.value


def test_nobody_answers() -> None:
    with pytest.raises(FetchError, match="cannot be asked"):
        fetch("http://127.0.0.1:1/token", FetchSettings(timeout_ms=500))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "//host/x",
        "file:relative",
        "file://host/x",
        "https:///x",
        "https://[/x",
        "https://user:secret@host/x",
        "",
    ],
)
def test_urls_that_are_not_read(url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_url("sasl.oauthbearer.jwks.endpoint.url", url, {})
    assert "secret" not in str(raised.value)


def test_urls_may_be_limited() -> None:
    environment = {ALLOWED_URLS_VARIABLE: "https://a/x, https://b/x"}
    assert check_url("k", "https://b/x", environment) == "https://b/x"
    with pytest.raises(ConfigError, match=ALLOWED_URLS_VARIABLE):
        check_url("k", "https://c/x", environment)


def test_a_token_made_up_is_what_the_unsecured_check_believes() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginNumberClaim_level": "7",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_traceId": "1",
    }
    token = unsecured_token(options, 1_000_000)
    assert take_apart(token).claims["level"] == 7
    believed = UnsecuredValidator()(token, 1_000_000)
    assert (believed.principal_name, believed.scope) == ("alice", {"a", "b"})
    assert believed.expires_at_ms == 1_060_000


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unsecuredLoginStringClaim_sub": " "},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_exp": "5"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_x": "five"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "long"},
    ],
)
def test_options_that_make_no_token(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        unsecured_token(options, 0)


@pytest.mark.parametrize("wrong", [None, "authority", "host", "expired"])
def test_the_certificate_of_a_provider_is_checked(tmp_path: Path, wrong: str | None) -> None:
    trusted, other = Authority(tmp_path), Authority(tmp_path, "other")
    hosts = ("127.0.0.9",) if wrong == "host" else ("127.0.0.1",)
    signer = other if wrong == "authority" else trusted
    own = signer.issue("provider", hosts, days=-1 if wrong == "expired" else 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    options = {"ssl.truststore.location": trusted.file, "ssl.truststore.type": "PEM"}
    config = NodeConfig.from_properties(standalone_properties("/data"))
    settings = Keys(config, "PLAINTEXT", options).fetching()
    with IdentityProvider().serving(context) as provider:
        if wrong is None:
            assert json.loads(fetch(f"{provider.url}/jwks", settings))["keys"]
            return
        with pytest.raises(FetchError, match="CERTIFICATE_VERIFY_FAILED"):
            fetch(f"{provider.url}/jwks", settings)
        assert not provider.asked


def test_authorities_that_have_gone_are_no_answer(tmp_path: Path) -> None:
    file = Path(Authority(tmp_path).file)
    config = NodeConfig.from_properties(standalone_properties("/data"))
    settings = Keys(config, "PLAINTEXT", {"ssl.truststore.location": str(file)}).fetching()
    file.unlink()
    with pytest.raises(FetchError, match=r"ssl\.truststore\.location"):
        fetch("https://127.0.0.1:1/jwks", settings)


def test_authorities_that_cannot_be_read_are_said_at_once(tmp_path: Path) -> None:
    options = {"ssl.truststore.location": str(tmp_path / "none.pem")}
    config = NodeConfig.from_properties(standalone_properties("/data"))
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.location"):
        Keys(config, "PLAINTEXT", options).fetching()
