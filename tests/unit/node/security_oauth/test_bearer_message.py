"""The first message of OAUTHBEARER: what is read, what is refused, and that nothing crashes."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.node.net.oauth.message import (
    BearerMessage,
    BearerMessageError,
    format_message,
    parse_message,
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"n,,\x01auth=Bearer abc\x01\x01", BearerMessage("abc")),
        (b"n,,\x01auth=bEARER   a.b-_~+/c==\x01\x01", BearerMessage("a.b-_~+/c==")),
        (b"n,a=alice,\x01auth=Bearer t\x01\x01", BearerMessage("t", "alice")),
        (b"n,a=a=2Cb=3Dc,\x01auth=Bearer t\x01\x01", BearerMessage("t", "a,b=c")),
        (
            b"n,,\x01traceId=1-2 3\x01auth=Bearer t\x01host=h=p\x01\x01",
            BearerMessage("t", "", {"traceId": "1-2 3", "host": "h=p"}),
        ),
    ],
)
def test_what_is_read(data: bytes, expected: BearerMessage) -> None:
    assert parse_message(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x01", id="an acknowledgement that nothing called for"),
        pytest.param(b"n,,\x01\x01", id="no authorization"),
        pytest.param(b"n,,\x01host=h\x01\x01", id="extensions alone"),
        pytest.param(b"n,,\x01auth=Bearer t\x01", id="cut short"),
        pytest.param(b"n,,\x01auth=Bearer t\x01\x01x", id="more than one message"),
        pytest.param(b"y,,\x01auth=Bearer t\x01\x01", id="channel binding"),
        pytest.param(b"p=tls-unique,,\x01auth=Bearer t\x01\x01", id="channel binding by name"),
        pytest.param(b"n,a=a,b,\x01auth=Bearer t\x01\x01", id="a comma in a name"),
        pytest.param(b"n,a=,\x01auth=Bearer t\x01\x01", id="an empty name"),
        pytest.param(b"n,,\x01auth=Basic t\x01\x01", id="another scheme"),
        pytest.param(b"n,,\x01auth=Bearer\x01\x01", id="no token"),
        pytest.param(b"n,,\x01auth=Bearer a b\x01\x01", id="two tokens"),
        pytest.param(b"n,,\x01auth=Bearer =\x01\x01", id="only padding"),
        pytest.param(b"n,,\x01auth=Bearer t\x01na1me=x\x01\x01", id="a name with a digit"),
        pytest.param(b"n,,\x01auth=Bearer t\x01name=\x01\x01", id="an empty value"),
        pytest.param(b"n,,\x01auth=Bearer \xc3\xa4\x01\x01", id="not ASCII"),
        pytest.param(b"n,,\x01auth=Bearer \xff\x01\x01", id="not UTF-8"),
    ],
)
def test_what_is_refused(data: bytes) -> None:
    with pytest.raises(BearerMessageError):
        parse_message(data)


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    for message in (data, b"n,a=" + data, b"n,,\x01auth=Bearer " + data + b"\x01\x01"):
        with suppress(BearerMessageError):
            parse_message(message)


NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=20)
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)
KEYS = st.text("abcXYZ", min_size=1, max_size=8).filter(lambda name: name != "auth")


@given(st.from_regex(r"\A[-_~+/.a-zA-Z0-9]+=*\Z"), NAMES, st.dictionaries(KEYS, VALUES, max_size=3))
def test_what_is_written_is_read(token: str, name: str, extensions: dict[str, str]) -> None:
    message = BearerMessage(token, name, extensions)
    assert parse_message(format_message(message)) == message


def test_a_message_shows_no_token() -> None:
    assert "secret" not in repr(BearerMessage("secret", "alice"))


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"a": ""}, {"a": "\x01"}])
def test_extensions_that_cannot_be_said(extensions: dict[str, str]) -> None:
    with pytest.raises(BearerMessageError):
        format_message(BearerMessage("t", "", extensions))


def test_a_long_message_takes_no_long_time() -> None:
    """The patterns do not try the same characters again."""
    half = 250_000
    for data in (
        b"n,a=" + b"a" * half,
        b"n,,\x01auth=Bearer " + b"a" * half + b"!",
        b"n,,\x01" + b"a=b\x01" * (half // 4) + b"!",
    ):
        with pytest.raises(BearerMessageError):
            parse_message(data)
