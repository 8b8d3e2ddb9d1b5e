"""How converters reach a registry: TLS, logins, tokens, and tries."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.clock import now_ms
from barnabas.schemas import registry_access as access
from barnabas.schemas.data.builder import STRING
from barnabas.schemas.data.errors import ConfigError, DataError, RetriableError
from support.certificates import Authority
from support.connect.registry import registry_converter, registry_over_http
from support.identity_provider import IdentityProvider
from support.served import served

AVRO = "io.confluent.connect.avro.AvroConverter"
SSL = "schema.registry.ssl."


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry over TLS that asks for the certificates of its clients, and for a login."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.text)
    context.load_cert_chain(authority.issue("registry"))
    context.verify_mode = ssl.CERT_REQUIRED
    passwords = tmp_path_factory.mktemp("passwords") / "file"
    passwords.write_text("alice: secret,writer\n")
    with registry_over_http(
        context,
        authentication_method="BASIC",
        barnabas_registry_password_file=str(passwords),
    ) as url:
        yield url


def trip(url: str, settings: dict[str, str]) -> Any:
    made = registry_converter(AVRO, url, **settings)
    return made.to_connect("t", made.from_connect("t", STRING, "x"))


@pytest.fixture
def shown(authority: Authority) -> dict[str, str]:
    """Settings of TLS that such a registry takes."""
    return {
        f"{SSL}truststore.type": "PEM",
        f"{SSL}truststore.location": authority.file,
        f"{SSL}keystore.type": "PEM",
        f"{SSL}keystore.location": authority.issue("client", password="of the key"),
        f"{SSL}key.password": "of the key",
    }


USER_INFO = {"basic.auth.credentials.source": "USER_INFO"}
JAAS = 'org.x.PlainLoginModule required username="alice" password="secret";'


@pytest.mark.parametrize(
    "login",
    [
        USER_INFO | {"basic.auth.user.info": "alice:secret"},
        {
            "schema.registry.basic.auth.credentials.source": "USER_INFO",
            "schema.registry.basic.auth.user.info": "alice:secret",
        },
        USER_INFO
        | {
            "basic.auth.user.info": "alice:old",
            "schema.registry.basic.auth.user.info": "alice:secret",
        },
        {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.jaas.config": JAAS},
    ],
    ids=["user info", "with the prefix", "the prefix wins", "of a login for brokers"],
)
def test_a_registry_over_tls_knows_who_asks(
    secured: str, shown: dict[str, str], login: dict[str, str]
) -> None:
    assert trip(secured, shown | login)[1] == "x"


def test_a_login_may_stand_in_the_url(secured: str, shown: dict[str, str]) -> None:
    assert trip(secured.replace("//", "//alice:secret@"), shown)[1] == "x"


def test_a_wrong_login_is_refused_without_the_password(secured: str, shown: dict[str, str]) -> None:
    with pytest.raises(DataError, match=r"registry answers 401") as caught:
        trip(secured, shown | USER_INFO | {"basic.auth.user.info": "alice:wrong"})
    assert "wrong" not in str(caught.value)


def test_certificates_may_stand_in_the_settings(
    secured: str, authority: Authority, shown: dict[str, str]
) -> None:
    text = Path(authority.issue("other")).read_text()
    key, begin, chain = text.partition("-----BEGIN CERTIFICATE-----")
    settings = {
        f"{SSL}truststore.type": "PEM",
        f"{SSL}truststore.certificates": authority.text,
        f"{SSL}keystore.type": "PEM",
        f"{SSL}keystore.key": key,
        f"{SSL}keystore.certificate.chain": begin + chain,
    }
    login = USER_INFO | {"basic.auth.user.info": "alice:secret"}
    assert trip(secured, settings | login)[1] == "x"


def test_a_registry_of_another_authority_is_not_asked(secured: str, tmp_path: Path) -> None:
    other = {f"{SSL}truststore.location": Authority(tmp_path, "other").file}
    for settings in ({}, other):
        with pytest.raises(RetriableError, match=r"CERTIFICATE_VERIFY_FAILED"):
            trip(secured, settings)


@pytest.mark.parametrize("algorithm", [None, "none", ""])
def test_names_in_certificates_are_compared_unless_that_is_left_out(
    authority: Authority, algorithm: str | None
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.issue("elsewhere", ["127.0.0.9"]))
    settings = {f"{SSL}truststore.location": authority.file}
    with registry_over_http(context) as url:
        if algorithm is None:
            with pytest.raises(RetriableError, match=r"IP address mismatch"):
                trip(url, settings)
        else:
            settings[f"{SSL}endpoint.identification.algorithm"] = algorithm
            assert trip(url, settings)[1] == "x"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (USER_INFO, "UserInfo must be provided"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "can't be inherited"),
        ({"basic.auth.credentials.source": "FILE"}, "it must be URL, USER_INFO or SASL_INHERIT"),
        (
            USER_INFO | {"bearer.auth.credentials.source": "STATIC_TOKEN"},
            "Only one of 'basic.auth.credentials.source' and",
        ),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "Token must be provided"),
        ({"bearer.auth.credentials.source": "CUSTOM"}, "must be STATIC_TOKEN or OAUTHBEARER"),
        (
            {"bearer.auth.credentials.source": "OAUTHBEARER"},
            "bearer.auth.issuer.endpoint.url must be set",
        ),
        ({f"{SSL}truststore.location": "/nothing"}, "schema.registry.ssl.truststore.location"),
        ({"max.retries": "-1"}, "Value must be at least 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        registry_converter(AVRO, "http://127.0.0.1:1", **settings)


class Seen:
    """A server that records requests, and gives the same answer to each."""

    def __init__(self) -> None:
        self.headers: list[Message] = []
        self.statuses: list[int] = []
        """The status codes of the next answers; then 200."""
        self.url = ""


@pytest.fixture
def seen() -> Iterator[Seen]:
    state = Seen()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            state.headers.append(self.headers)
            self.send_response(state.statuses.pop(0) if state.statuses else 200)
            self.end_headers()
            self.wfile.write(b'{"id": 7}')

    with served(Handler) as state.url:
        yield state


def test_a_token_is_shown_with_what_a_proxy_wants_to_know(seen: Seen) -> None:
    made = registry_converter(
        AVRO,
        seen.url,
        bearer_auth_credentials_source="STATIC_TOKEN",
        bearer_auth_token="of-mine",
        bearer_auth_logical_cluster="lsrc-1",
        bearer_auth_identity_pool_id="pool-1",
    )
    made.from_connect("t", STRING, "x")
    [headers] = seen.headers
    assert headers["Authorization"] == "Bearer of-mine"
    assert headers["target-sr-cluster"] == "lsrc-1"
    assert headers["Confluent-Identity-Pool-Id"] == "pool-1"


def test_tokens_come_from_an_identity_provider_and_are_used_until_near_their_end(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    with IdentityProvider().serving() as provider:
        made = registry_converter(
            AVRO,
            seen.url,
            bearer_auth_credentials_source="OAUTHBEARER",
            bearer_auth_issuer_endpoint_url=f"{provider.url}/token",
            bearer_auth_client_id="me",
            bearer_auth_client_secret="hidden",
            bearer_auth_scope="registry",
        )
        for topic in ("a", "b"):
            made.from_connect(topic, STRING, "x")
        assert [asked.form for asked in provider.asked] == [
            {"grant_type": "client_credentials", "scope": "registry"}
        ]
        first, second = (headers["Authorization"] for headers in seen.headers)
        assert first == second
        assert first.startswith("Bearer ey")
        later_ms = now_ms() + 3_301_000
        monkeypatch.setattr(access, "now_ms", lambda: later_ms)
        made.from_connect("c", STRING, "x")
        assert len(provider.asked) == 2
        provider.failures = [401, 503]
        with pytest.raises(DataError, match=r"No token for the schema registry: .* answers 401"):
            made.from_connect("d", STRING, "x")
        with pytest.raises(RetriableError, match=r"No token .* answers 503") as caught:
            made.from_connect("e", STRING, "x")
        assert "hidden" not in str(caught.value)


def test_a_registry_that_is_away_for_a_while_is_asked_again(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses_s: list[float] = []
    monkeypatch.setattr(access, "time", SimpleNamespace(sleep=pauses_s.append))
    seen.statuses = [503, 429, 502]
    made = registry_converter(AVRO, seen.url, max_retries="3", retries_max_wait_ms="3000")
    assert made.from_connect("t", STRING, "x")[:5] == b"\0\0\0\0\7"
    assert len(seen.headers) == 4
    for pause_s, whole_s in zip(pauses_s, (1, 2, 3), strict=True):
        assert 0.8 * whole_s <= pause_s <= whole_s
    seen.statuses = [503] * 4
    with pytest.raises(RetriableError, match=r"registry answers 503"):
        made.from_connect("other", STRING, "x")
    seen.statuses = [422]
    with pytest.raises(DataError, match=r"registry answers 422"):
        made.from_connect("third", STRING, "x")
    assert len(pauses_s) == 6
