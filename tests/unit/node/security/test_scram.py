"""The accepting side of SCRAM, message by message."""

import base64

import pytest

from barnabas.base.scram import ScramClient, keys_of, salted_password
from barnabas.node.security.principal import USER, Principal
from barnabas.node.security.sasl.mechanism import (
    AuthenticationError,
    InvalidCredentialsError,
    Login,
)
from barnabas.node.security.sasl.scram import (
    MESSAGE_SIZE_MAX_BYTES,
    Credential,
    ScramMechanism,
    TokenCredential,
)
from barnabas.protocol.messages.metadata_records import UserScramCredentialRecord

RFC_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def credential(password: str, iterations: int = 4096, algorithm: str = "sha256") -> Credential:
    keys = keys_of(algorithm, salted_password(algorithm, password, RFC_SALT, iterations))
    return UserScramCredentialRecord(
        salt=RFC_SALT, stored_key=keys[0], server_key=keys[1], iterations=iterations
    )


USERS = {
    "user": credential("pencil"),
    "a=b,c": credential("escaped"),
    "weak": credential("pencil", iterations=4095),
}
TOKENS = {"token-id": TokenCredential(Principal(USER, "owner"), 5000, credential("hmac"))}


def mechanism(name: str = "SCRAM-SHA-256", users: dict[str, Credential] = USERS) -> ScramMechanism:
    return ScramMechanism(name, users.get, bytes, TOKENS.get)


def client(user: str = "user", password: str = "pencil", **extensions: str) -> ScramClient:
    return ScramClient("SCRAM-SHA-256", user, password, "rOprNGfwEbeRWgbNEkqO", extensions)


def log_in(scram: ScramMechanism, by: ScramClient) -> Login | None:
    exchange = scram.begin()
    final = exchange.respond(by.final(exchange.respond(by.first())))
    by.verify(final)
    return exchange.login


def test_an_unknown_user_is_answered_alike_on_all_nodes_and_like_others() -> None:
    like = credential("pencil", 8192)
    answers = []
    for source in (bytes, lambda size: b"r" * size):
        node = ScramMechanism("SCRAM-SHA-256", USERS.get, source, like=lambda: like)
        answer = node.begin().respond(client("nobody").first()).decode()
        answers.append(dict(part.partition("=")[::2] for part in answer.split(",")))
    assert answers[0]["s"] == answers[1]["s"] != base64.b64encode(RFC_SALT).decode()
    assert len(base64.b64decode(answers[0]["s"])) == len(RFC_SALT)
    assert {answer["i"] for answer in answers} == {"8192"}


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_with_the_password_is_in(name: str) -> None:
    algorithm = name.replace("SCRAM-SHA-", "sha")
    scram = mechanism(name, {"user": credential("pencil", 5000, algorithm)})
    by = ScramClient(name, "user", "pencil", "abc")
    assert log_in(scram, by) == Login(Principal(USER, "user"))


def test_names_are_escaped() -> None:
    assert log_in(mechanism(), client("a=b,c", "escaped")) == Login(Principal(USER, "a=b,c"))


def test_a_delegation_token_lets_its_owner_in_until_it_ends() -> None:
    login = log_in(mechanism(), client("token-id", "hmac", tokenauth="true"))
    assert login == Login(Principal(USER, "owner"), 5000, is_token=True)


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    for by in (client("token-id", "hmac"), client("user", "pencil", tokenauth="true")):
        with pytest.raises(InvalidCredentialsError, match="no such user, or another password"):
            log_in(mechanism(), by)


FIRST_ACCEPTED = [
    b"n,,n=user,r=abc",
    b"y,,n=user,r=abc",
    b"n,a=user,n=user,r=abc",
    b"n,,n=user,r=abc,x=anything",
    b"n,,n=user,r=abc,tokenauth=false",
]


@pytest.mark.parametrize("message", FIRST_ACCEPTED)
def test_first_messages_that_are_answered(message: bytes) -> None:
    answer = mechanism().begin().respond(message)
    assert answer == b"r=abc" + b"A" * 32 + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


FIRST_REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "another format"),
    "channel binding": (b"p=tls-unique,,n=user,r=abc", "channel binding"),
    "unknown flag": (b"x,,n=user,r=abc", "another format"),
    "mandatory extension": (b"n,,m=x,n=user,r=abc", "another format"),
    "no nonce": (b"n,,n=user,r=", "another format"),
    "no name": (b"n,,n=,r=abc", "another format"),
    "bad escape": (b"n,,n=us=er,r=abc", "another format"),
    "lower-case escape": (b"n,,n=us=2cer,r=abc", "another format"),
    "control character": (b"n,,n=us\ner,r=abc", "another format"),
    "zero byte": (b"n,,n=us\0er,r=abc", "another format"),
    "other than ASCII": ("n,,n=üser,r=abc".encode(), "another format"),
    "not UTF-8": (b"n,,n=\xff\xfe,r=abc", "another format"),
    "long name": (b"n,,n=" + b"a" * MESSAGE_SIZE_MAX_BYTES + b",r=abc", "a SCRAM message of"),
    "weak credential": (b"n,,n=weak,r=abc", "4095 iterations of 'weak' are less than 4096"),
}


@pytest.mark.parametrize("name", FIRST_REFUSED)
def test_first_messages_that_are_refused(name: str) -> None:
    message, text = FIRST_REFUSED[name]
    with pytest.raises(InvalidCredentialsError, match=text):
        mechanism().begin().respond(message)


def test_nobody_logs_in_as_another() -> None:
    with pytest.raises(AuthenticationError, match="different from username") as caught:
        mechanism().begin().respond(b"n,a=admin,n=user,r=abc")
    assert not isinstance(caught.value, InvalidCredentialsError)


def changed(final: bytes, **parts: bytes) -> bytes:
    fields = dict(part.split(b"=", 1) for part in final.split(b","))
    fields |= {name.encode(): value for name, value in parts.items()}
    return b",".join(name + b"=" + value for name, value in fields.items())


FINAL_REFUSED: dict[str, tuple[dict[str, bytes], str]] = {
    "another nonce": ({"r": b"rOprNGfwEbeRWgbNEkqO"}, "another nonce"),
    "a longer nonce": ({"r": b"rOprNGfwEbeRWgbNEkqO" + b"A" * 33}, "another nonce"),
    "the client's nonce twice": (
        {"r": b"rOprNGfwEbeRWgbNEkqO" * 2 + b"A" * 32},
        "nonce twice, a defect of librdkafka before 2.6.1",
    ),
    "another header": ({"c": base64.b64encode(b"y,,")}, "another header"),
    "another proof": ({"p": base64.b64encode(bytes(32))}, "another password"),
    "a short proof": ({"p": base64.b64encode(bytes(31))}, "another password"),
    "no proof": ({"p": b""}, "another password"),
    "truncated base64": ({"p": b"AAA"}, "another format"),
    "bits behind the last byte": ({"p": b"AAB="}, "no base64"),
    "no base64": ({"p": b"?AAA"}, "another format"),
}


@pytest.mark.parametrize("name", FINAL_REFUSED)
def test_final_messages_that_are_refused(name: str) -> None:
    parts, text = FINAL_REFUSED[name]
    by = client()
    exchange = mechanism().begin()
    final = by.final(exchange.respond(by.first()))
    with pytest.raises(InvalidCredentialsError, match=text):
        exchange.respond(changed(final, **parts))
    assert exchange.login is None


def test_a_server_without_the_keys_is_found_out() -> None:
    by = client()
    exchange = mechanism().begin()
    final = exchange.respond(by.final(exchange.respond(by.first())))
    with pytest.raises(ValueError, match="does not know the password"):
        by.verify(b"v=" + base64.b64encode(bytes(32)))
    by.verify(final)


def test_there_is_nothing_to_say_after_the_last_message() -> None:
    by = client()
    exchange = mechanism().begin()
    final = by.final(exchange.respond(by.first()))
    exchange.respond(final)
    with pytest.raises(InvalidCredentialsError, match="after the last"):
        exchange.respond(final)


def test_a_credential_that_changes_between_the_messages_counts_from_the_next_login() -> None:
    users = dict(USERS)
    scram = mechanism(users=users)
    by = client()
    exchange = scram.begin()
    final = by.final(exchange.respond(by.first()))
    del users["user"]
    exchange.respond(final)
    assert exchange.login is not None
    with pytest.raises(InvalidCredentialsError):
        log_in(scram, client())
