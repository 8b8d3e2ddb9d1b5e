"""SCRAM: the exchange of RFC 7677, and servers that do not know the password."""

import base64

import pytest

from barnabas.base.scram import ScramClient, ScramError

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.fixture
def client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_exchange_of_the_rfc(client: ScramClient) -> None:
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.final(SERVER_FIRST) == CLIENT_FINAL
    client.verify(SERVER_FINAL)


def test_a_name_with_commas_is_quoted() -> None:
    assert ScramClient("SCRAM-SHA-512", "a=b,c", "", "n").first() == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    "message",
    [b"", b"r=other,s=W22Z,i=4096", b"r=" + NONCE.encode(), SERVER_FIRST.replace(b"4096", b"0")],
)
def test_a_bad_first_message(client: ScramClient, message: bytes) -> None:
    with pytest.raises(ScramError):
        client.final(message)


@pytest.mark.parametrize("message", [b"", b"e=invalid-proof", b"v=" + base64.b64encode(b"guess")])
def test_a_server_that_does_not_know_the_password(client: ScramClient, message: bytes) -> None:
    client.final(SERVER_FIRST)
    with pytest.raises(ScramError):
        client.verify(message)
