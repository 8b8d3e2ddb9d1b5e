"""SCRAM between our client and our server: any name and password, and messages that are tampered
with on the way.
"""

import string

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.scram import ScramClient, ScramError, keys_of, salted_password
from barnabas.node.security.sasl.mechanism import AuthenticationError
from barnabas.node.security.sasl.scram import ScramExchange, ScramMechanism
from barnabas.protocol.messages.metadata_records import UserScramCredentialRecord

SALT = b"0123456789abcdef"
PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F))
names = st.text(PRINTABLE, min_size=1, max_size=40)
passwords = st.text(min_size=1, max_size=40)
nonces = st.text(string.ascii_letters + string.digits, min_size=1, max_size=40)
MESSAGES = ("first", "challenge", "final", "signature")


def exchange_for(name: str, password: str) -> ScramExchange:
    keys = keys_of("sha256", salted_password("sha256", password, SALT, 4096))
    record = UserScramCredentialRecord(
        name=name, salt=SALT, stored_key=keys[0], server_key=keys[1], iterations=4096
    )
    exchange = ScramMechanism("SCRAM-SHA-256", {name: record}.get, bytes).begin()
    assert isinstance(exchange, ScramExchange)
    return exchange


@given(names, passwords, nonces)
def test_who_knows_the_password_is_in(name: str, password: str, nonce: str) -> None:
    exchange = exchange_for(name, password)
    client = ScramClient("SCRAM-SHA-256", name, password, nonce)
    client.verify(exchange.respond(client.final(exchange.respond(client.first()))))
    assert exchange.login is not None
    assert exchange.login.principal.name == name


@given(names, passwords, passwords)
def test_who_does_not_is_not(name: str, password: str, other: str) -> None:
    exchange = exchange_for(name, password)
    client = ScramClient("SCRAM-SHA-256", name, other, "nonce")
    try:
        exchange.respond(client.final(exchange.respond(client.first())))
    except AuthenticationError:
        assert exchange.login is None
    else:
        assert password == other


@given(st.sampled_from(MESSAGES), st.data())
def test_a_message_that_is_tampered_with_lets_nobody_in(which: str, data: st.DataObject) -> None:
    """A login on both sides stands only if every message came as it was sent."""

    def passed(step: str, message: bytes) -> bytes:
        if step != which:
            return message
        place = data.draw(st.integers(0, len(message) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "delete"])):
            case "flip":
                bit = 1 << data.draw(st.integers(0, 7))
                return message[:place] + bytes((message[place] ^ bit,)) + message[place + 1 :]
            case "cut":
                return message[:place]
            case "insert":
                return message[:place] + data.draw(st.binary(min_size=1)) + message[place:]
            case _:
                return message[:place] + message[place + 1 :]

    exchange = exchange_for("alice", "secret")
    client = ScramClient("SCRAM-SHA-256", "alice", "secret", "nonce")
    try:
        challenge = passed("challenge", exchange.respond(passed("first", client.first())))
        signature = exchange.respond(passed("final", client.final(challenge)))
        client.verify(passed("signature", signature))
    except (AuthenticationError, ScramError):
        assert which == "signature" or exchange.login is None
    else:
        raise AssertionError("a changed message went unseen")


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3))
def test_nonsense_lets_nobody_in_and_breaks_nothing(messages: list[bytes]) -> None:
    exchange = exchange_for("alice", "secret")
    try:
        for message in messages:
            exchange.respond(message)
    except AuthenticationError:
        pass
    assert exchange.login is None
