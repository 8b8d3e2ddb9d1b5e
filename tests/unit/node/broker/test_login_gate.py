"""The gate of a SASL listener, request by request."""

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.network import ListenerOptions, Part, TlsSession
from barnabas.base.scram import ScramClient, keys_of, salted_password
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.login.gate import (
    REQUESTS_BEFORE_LOGIN_MAX,
    ListenerLogins,
    session_lifetime_ms,
)
from barnabas.node.net.connection import Connection, Gate
from barnabas.node.security.principal import USER, Principal
from barnabas.node.security.sasl.mechanism import Exchange, Login, Mechanism
from barnabas.node.security.sasl.plain import PlainMechanism
from barnabas.node.security.sasl.scram import ScramMechanism
from barnabas.protocol.apis import API_OF, APIS, ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.connections import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.credentials import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.metadata_records import UserScramCredentialRecord
from barnabas.protocol.schema import Message
from sim.manual_clock import ManualClock

INSIDE = b"from inside"
DELAY_MS = 100
ALICE = b"\0alice\0alice-secret"
SALT = b"0123456789abcdefghijklmn"
KEYS = keys_of("sha256", salted_password("sha256", "carol-secret", SALT, 4096))
CAROL = UserScramCredentialRecord(
    name="carol",
    mechanism=1,
    salt=SALT,
    stored_key=KEYS.stored_key,
    server_key=KEYS.server_key,
    iterations=4096,
)


class FakeTransport:
    """Keeps what is sent."""

    peer_host = "10.0.0.1"
    peer_port = 1234
    tls: TlsSession | None = None

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False
        self.is_paused = False
        self.handler: Connection

    def send(self, parts: Sequence[Part]) -> None:
        if not self.is_closed:
            self.sent.append(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]

    def unsent_bytes(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.is_closed = True
        self.handler.closed(None)

    close_when_sent = close


class TokenMechanism:
    """Lets a token in whose text is its owner and its end, or a password that ends, too."""

    name = "TOKEN"
    login: Login | None = None

    def begin(self) -> Exchange:
        return TokenMechanism()

    def respond(self, message: bytes) -> bytes:
        owner, end, *kind = message.decode().split(":")
        self.login = Login(Principal(USER, owner), int(end), is_token=kind != ["password"])
        return b""


def counts(world: "World") -> dict[str, int]:
    return {name: count for name, count in world.logins.counts.items() if count}


class World:
    """One connection to a SASL listener, and a clock that stands still."""

    def __init__(self, protocol: str = "SASL_PLAINTEXT", **logins: Any) -> None:
        self.clock = ManualClock()
        self.transport = FakeTransport()
        self.nonces = 0
        users = {"alice": b"alice-secret", "bob": b"bob-secret"}
        mechanisms: dict[str, Mechanism] = {
            "PLAIN": PlainMechanism(users),
            "SCRAM-SHA-256": ScramMechanism("SCRAM-SHA-256", {"carol": CAROL}.get, bytes),
            "TOKEN": TokenMechanism(),
        }
        self.logins = listener = ListenerLogins(
            listener_name="SECURE",
            clock=self.clock,
            mechanisms=mechanisms,
            service=lambda connection, frame: (INSIDE,),
            answer_versions=lambda context, request: ApiVersionsResponse(),
            **{"failure_delay_ms": DELAY_MS, **logins},
        )
        self.connection = Connection(
            self.transport,
            listener.service,
            ListenerOptions(name="SECURE", security_protocol=protocol),
            lambda connection: None,
            may_overlap=True,
            gate=Gate(listener, 1000),
        )
        self.transport.handler = self.connection

    def receive(self, frame: bytes) -> list[bytes]:
        """Deliver a frame; return what is sent at once."""
        before = len(self.transport.sent)
        data = len(frame).to_bytes(4, "big") + frame
        self.connection.get_buffer()[: len(data)] = data
        self.connection.received(len(data))
        return self.transport.sent[before:]

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The answer, or None."""
        api = API_OF[type(request)]
        if version is None:
            version = api.max_stable_version
        sent = self.receive(encode_request(api.key, version, 7, "test", request))
        return self.decode(api.key, version, sent[0]) if sent else None

    def decode(self, key: ApiKey, version: int, answer: bytes) -> Any:
        _, position = decode_response_header(APIS[key], version, answer[4:])
        return decode_at(APIS[key].response, version, answer[4:], position)[0]

    def shake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def step(self, message: bytes = ALICE, version: int = 2) -> Any:
        return self.ask(SaslAuthenticateRequest(auth_bytes=message), version)

    def delayed(self) -> bytes | None:
        """Let the delay of a failed login end; return the answer. The connection closes then."""
        assert not self.transport.is_closed
        before = len(self.transport.sent)
        self.clock.advance(DELAY_MS - 1)
        assert (len(self.transport.sent), self.transport.is_closed) == (before, False)
        self.clock.advance(1)
        assert self.transport.is_closed
        sent = self.transport.sent[before:]
        return sent[0] if sent else None

    @property
    def user(self) -> str:
        return client_state(self.connection).principal.name

    @property
    def is_inside(self) -> bool:
        return self.receive(b"\0\x03\0\0anything") == [INSIDE]


@pytest.fixture
def world() -> World:
    return World()


def test_a_login_by_plain(world: World) -> None:
    assert world.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"))
    handshake = world.shake()
    assert handshake.error_code == 0
    assert handshake.mechanisms == ["PLAIN", "SCRAM-SHA-256", "TOKEN"]
    answer = world.step()
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert world.user == "alice"
    assert world.is_inside


def test_a_login_by_scram(world: World) -> None:
    client = ScramClient("SCRAM-SHA-256", "carol", "carol-secret", "abc")
    world.shake("SCRAM-SHA-256")
    first = world.step(client.first())
    assert first.error_code == 0
    assert world.user == "ANONYMOUS"
    final = world.step(client.final(first.auth_bytes))
    client.verify(final.auth_bytes)
    assert world.user == "carol"
    assert world.is_inside


def test_after_a_handshake_of_version_0_messages_have_no_header(world: World) -> None:
    assert world.shake("SCRAM-SHA-256", version=0).error_code == 0
    client = ScramClient("SCRAM-SHA-256", "carol", "carol-secret", "abc")
    (first,) = world.receive(client.first())
    (final,) = world.receive(client.final(first[4:]))
    client.verify(final[4:])
    assert world.is_inside


def test_plain_answers_with_an_empty_message_after_a_handshake_of_version_0(world: World) -> None:
    world.shake(version=0)
    assert world.receive(ALICE) == [bytes(4)]
    assert world.is_inside


def test_a_raw_message_that_fails_is_not_answered(world: World) -> None:
    world.shake(version=0)
    assert world.receive(b"\0alice\0wrong") == []
    assert world.delayed() is None


def test_a_mechanism_that_is_not_enabled(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assert world.shake("GSSAPI") is None
    answer = world.delayed()
    assert answer is not None
    handshake = world.decode(ApiKey.SASL_HANDSHAKE, 1, answer)
    assert handshake.error_code == 33
    assert handshake.mechanisms == ["PLAIN", "SCRAM-SHA-256", "TOKEN"]
    assert "Unsupported SASL mechanism GSSAPI" in caplog.text


FAILURES = {
    "wrong password": (
        "PLAIN",
        b"\0alice\0wrong-secret",
        "Authentication failed: Invalid username or password",
    ),
    "no tokens": ("PLAIN", b"wrong-secret", "expected 3 tokens, got 1"),
    "four tokens": ("PLAIN", b"\0alice\0wrong\0secret", "expected 3 tokens, got 4"),
    "no user": ("PLAIN", b"\0\0wrong-secret", "username not specified"),
    "no password": ("PLAIN", b"\0alice\0", "password not specified"),
    "for another": ("PLAIN", b"bob" + ALICE, "authorization id that is different from username"),
    "no scram": (
        "SCRAM-SHA-256",
        b"wrong-secret",
        "authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_answered_late_and_closes(
    world: World, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    mechanism, message, text = FAILURES[name]
    world.shake(mechanism)
    assert world.step(message) is None
    answer = world.delayed()
    assert answer is not None
    response = world.decode(ApiKey.SASL_AUTHENTICATE, 2, answer)
    assert response.error_code == 58
    assert text in response.error_message
    (line,) = caplog.messages
    assert line.startswith("authentication of 10.0.0.1 on listener SECURE failed: ")
    assert "secret" not in line
    assert world.user == "ANONYMOUS"
    assert counts(world) == {"failed-authentication-total": 1}


def test_nothing_is_handled_while_a_failure_waits(world: World) -> None:
    world.shake()
    world.step(b"wrong")
    assert world.step() is None
    assert world.receive(b"\0\x03\0\0anything") == []
    assert world.transport.is_paused
    world.clock.advance(DELAY_MS)
    assert world.user == "ANONYMOUS"
    assert world.transport.is_closed


def test_a_client_that_leaves_meanwhile_leaves_no_timer(world: World) -> None:
    world.shake()
    world.step(b"wrong")
    world.transport.close()
    assert all(timer.is_cancelled for timer in world.clock.timers)


def frame_of(request: Message, version: int) -> bytes:
    return encode_request(API_OF[type(request)].key, version, 1, "test", request)


VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")
UNEXPECTED: dict[str, list[bytes]] = {
    "another request": [frame_of(MetadataRequest(topics=[]), 4)],
    "no handshake": [frame_of(SaslAuthenticateRequest(auth_bytes=ALICE), 2)],
    "ApiVersions twice": [frame_of(VERSIONS, 3), frame_of(VERSIONS, 3)],
    "ApiVersions after the handshake": [
        frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        frame_of(VERSIONS, 3),
    ],
    "two handshakes": [frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)] * 2,
}


@pytest.mark.parametrize("name", UNEXPECTED)
def test_whoever_asks_for_something_else_is_closed(
    world: World, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for frame in UNEXPECTED[name]:
        world.receive(frame)
    assert world.delayed() is None
    assert "Unexpected Kafka request of type" in caplog.text
    assert world.user == "ANONYMOUS"


NONSENSE = {
    "nothing": b"",
    "no header": b"\0",
    "no such API": b"\x7f\x7f\0\0\0\0\0\0\xff\xff",
    "http": b"GET / HTTP/1.1",
    "half a handshake": frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)[:-2],
    "a handshake of version 9": b"\0\x11\0\x09\0\0\0\0\xff\xff\0\x05PLAIN",
    "too long": bytes(1001),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_closes_at_once(world: World, name: str) -> None:
    assert world.receive(NONSENSE[name]) == []
    assert world.transport.is_closed


def test_an_unknown_version_of_api_versions_is_answered_and_may_be_mended(world: World) -> None:
    (answer,) = world.receive(b"\0\x12\0\x63\0\0\0\x01\xff\xff\0\0\0")
    assert world.decode(ApiKey.API_VERSIONS, 0, answer).error_code == 35
    assert world.ask(VERSIONS, 3).error_code == 0
    world.shake()
    assert world.step().error_code == 0


def test_a_login_takes_only_so_many_requests(world: World) -> None:
    for _ in range(REQUESTS_BEFORE_LOGIN_MAX):
        assert world.receive(b"\0\x12\0\x63\0\0\0\x01\xff\xff\0\0\0")
    assert world.receive(b"\0\x12\0\x63\0\0\0\x01\xff\xff\0\0\0") == []
    assert world.transport.is_closed


def test_frames_may_be_as_long_as_any_after_the_login(world: World) -> None:
    world.shake()
    world.step()
    assert world.receive(bytes(50_000)) == [INSIDE]


def test_a_certificate_beside_a_login_names_nobody() -> None:
    world = World("SASL_SSL")
    world.transport.tls = TlsSession("TLSv1.3", "TLS_AES_256_GCM_SHA384", "CN=admin")
    assert world.user == "ANONYMOUS"
    world.shake()
    world.step()
    assert world.user == "alice"


# -- logins that end


LIFETIMES = [
    (0, None, None),
    (1000, None, 1000),
    (0, 50_000, 40_000),
    (1000, 50_000, 1000),
    (90_000, 50_000, 40_000),
    (1000, 9_000, 0),
]


@pytest.mark.parametrize(("maximum_ms", "expires_at_ms", "expected"), LIFETIMES)
def test_how_long_a_login_holds(
    maximum_ms: int, expires_at_ms: int | None, expected: int | None
) -> None:
    assert session_lifetime_ms(maximum_ms, expires_at_ms, now_ms=10_000) == expected


def inside_for(lifetime_ms: int) -> World:
    world = World(reauthentication_ms={"PLAIN": lifetime_ms})
    world.shake()
    assert world.step().session_lifetime_ms == lifetime_ms
    return world


def test_the_next_request_after_the_end_closes() -> None:
    world = inside_for(10_000)
    world.clock.advance(10_000)
    assert world.is_inside
    world.clock.advance(1)
    assert not world.is_inside
    assert world.transport.is_closed
    assert counts(world) == {
        "successful-authentication-total": 1,
        "expired-connections-killed-count": 1,
    }


def test_a_second_login_extends_the_first() -> None:
    world = inside_for(10_000)
    state = client_state(world.connection)
    world.clock.advance(9_000)
    assert world.shake().error_code == 0
    assert world.step().session_lifetime_ms == 10_000
    world.clock.advance(10_000)
    assert world.is_inside
    assert client_state(world.connection) is state
    assert counts(world) == {
        "successful-authentication-total": 1,
        "successful-reauthentication-total": 1,
    }


def test_a_login_may_be_repeated_after_its_end() -> None:
    world = inside_for(10_000)
    world.clock.advance(60_000)
    assert world.shake().error_code == 0
    assert world.step().error_code == 0
    assert world.is_inside


def test_a_second_login_is_not_begun_within_a_second_of_the_last() -> None:
    world = inside_for(10_000)
    world.shake()
    world.step()
    world.clock.advance(999)
    frame = frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert world.receive(frame) == [INSIDE]


def test_nobody_becomes_another() -> None:
    world = inside_for(10_000)
    world.shake()
    assert world.step(b"\0bob\0bob-secret") is None
    answer = world.delayed()
    assert answer is not None
    response = world.decode(ApiKey.SASL_AUTHENTICATE, 2, answer)
    assert response.error_code == 58
    assert response.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert world.user == "alice"
    assert counts(world) == {
        "successful-authentication-total": 1,
        "failed-reauthentication-total": 1,
    }


def test_the_mechanism_stays(caplog: pytest.LogCaptureFixture) -> None:
    world = inside_for(10_000)
    assert world.shake("TOKEN").error_code == 0
    assert world.step(b"alice:99") is None
    assert world.delayed() is not None
    assert (
        "re-authentication of 10.0.0.1 on listener SECURE failed: SASL mechanism 'TOKEN' requested "
        "by client is not supported for re-authentication of mechanism 'PLAIN'"
    ) in caplog.text


def test_a_token_ends_the_login_that_it_gave(world: World) -> None:
    world.shake("TOKEN")
    end_ms = world.clock.now_ms() + 5_000
    assert world.step(f"alice:{end_ms}".encode()).session_lifetime_ms == 5_000
    assert client_state(world.connection).is_token
    world.clock.advance(5_001)
    assert not world.is_inside


def test_a_token_in_the_place_of_a_password_is_known_for_one(world: World) -> None:
    """With a token nobody may make another: the last login says what was shown."""
    for is_token in (False, True):
        world.shake("TOKEN")
        end_ms = world.clock.now_ms() + 5_000
        kind = "" if is_token else ":password"
        assert world.step(f"alice:{end_ms}{kind}".encode()).error_code == 0
        assert client_state(world.connection).is_token is is_token
        world.clock.advance(2_000)


def test_where_logins_do_not_end_a_handshake_is_the_services_own(world: World) -> None:
    world.shake()
    world.step()
    frame = frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert world.receive(frame) == [INSIDE]


def test_the_salt_of_an_unknown_user_is_as_constant_as_of_a_known_one() -> None:
    salts = []
    mechanism = ScramMechanism("SCRAM-SHA-256", {"carol": CAROL}.get, bytes)
    for user in ("nobody", "nobody", "someone"):
        answer = mechanism.begin().respond(f"n,,n={user},r=abc".encode()).decode()
        nonce, salt, iterations = answer.split(",")
        assert nonce.startswith("r=abc")
        assert len(base64.b64decode(salt[2:])) == 24
        assert iterations == "i=4096"
        salts.append(salt)
    assert salts[0] == salts[1] != salts[2]


# -- nonsense of every kind

HONEST = [
    frame_of(VERSIONS, 3),
    frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 0),
    frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1),
    frame_of(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1),
    frame_of(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 2),
    frame_of(SaslAuthenticateRequest(auth_bytes=b"n,,n=carol,r=abc"), 2),
    frame_of(MetadataRequest(topics=[]), 4),
]


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A request of a login, as it is or changed, or any bytes."""
    frame = draw(st.sampled_from(HONEST) | st.binary(max_size=60))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(frame)))
        cut = draw(st.integers(0, 3))
        frame = frame[:place] + draw(st.binary(max_size=3)) + frame[place + cut :]
    return frame


@given(st.lists(frames(), max_size=8))
def test_whatever_is_sent_lets_nobody_in_and_breaks_nothing(sent: list[bytes]) -> None:
    world = World()
    for frame in sent:
        try:
            world.connection._service(world.connection, bytearray(frame))
        except DecodeError:
            break
    assert world.user == "ANONYMOUS"
    assert not world.connection.is_admitted
