"""Headers, API numbers and error codes."""

import pytest
from kio.schema.errors import ErrorCode as PeerErrorCode

from barnabas.protocol.api import NEVER_FLEXIBLE
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import decode_at, encode
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.frames import (
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response_header,
)
from barnabas.protocol.messages.connections import ApiVersionsRequest, ResponseHeader
from barnabas.protocol.messages.credentials import SaslHandshakeRequest

HEADERS = [
    (ApiKey.API_VERSIONS, 0, 1, 0),
    (ApiKey.API_VERSIONS, 2, 1, 0),
    (ApiKey.API_VERSIONS, 3, 2, 0),
    (ApiKey.API_VERSIONS, 99, 2, 0),
    (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
    (ApiKey.FETCH, 11, 1, 0),
    (ApiKey.FETCH, 12, 2, 1),
    (ApiKey.PRODUCE, 9, 2, 1),
    (ApiKey.VOTE, 0, 2, 1),
]


@pytest.mark.parametrize(("key", "version", "request_header", "response_header"), HEADERS)
def test_header_versions(
    key: ApiKey, version: int, request_header: int, response_header: int
) -> None:
    assert APIS[key].request_header_version(version) == request_header
    assert APIS[key].response_header_version(version) == response_header


def test_request_in_a_flexible_version() -> None:
    body = ApiVersionsRequest(client_software_name="n", client_software_version="v")
    frame = encode_request(ApiKey.API_VERSIONS, 3, 7, "me", body)
    assert frame.hex(" ", 1) == "00 12 00 03 00 00 00 07 00 02 6d 65 00 02 6e 02 76 00"
    header, position = decode_request_header(memoryview(frame))
    assert (header.request_api_key, header.request_api_version) == (18, 3)
    assert (header.correlation_id, header.client_id) == (7, "me")
    assert decode_at(ApiVersionsRequest, 3, frame, position) == (body, len(frame))


def test_request_without_a_client_id() -> None:
    frame = encode_request(ApiKey.SASL_HANDSHAKE, 1, 7, None, SaslHandshakeRequest(mechanism="X"))
    header, position = decode_request_header(frame)
    assert header.client_id is None
    assert frame[position:] == b"\0\x01X"


def test_a_future_api_versions_request_has_a_readable_header() -> None:
    frame = bytes.fromhex("0012 0063 00000001 ffff 00 beef")
    header, position = decode_request_header(frame)
    assert (header.request_api_version, position) == (99, 11)


@pytest.mark.parametrize(
    "frame", ["", "00", "0012 00", "0012 0003 0000", "0004 0000 00000001 ffff"]
)
def test_no_request(frame: str) -> None:
    with pytest.raises(DecodeError):
        decode_request_header(bytes.fromhex(frame))


def test_response_headers() -> None:
    api = APIS[ApiKey.FETCH]
    assert encode_response_header(api, 11, 5) == bytes.fromhex("00000005")
    assert encode_response_header(api, 12, 5) == bytes.fromhex("00000005 00")
    assert encode_response_header(api, 12, 5) == encode(ResponseHeader(correlation_id=5), 1)
    header, position = decode_response_header(api, 12, bytes.fromhex("00000005 00 ff"))
    assert (header.correlation_id, position) == (5, 5)


def test_unstable_versions_are_known() -> None:
    unstable = {api.key for api in APIS.values() if api.latest_version_unstable}
    assert ApiKey.INIT_PRODUCER_ID in unstable
    api = APIS[ApiKey.INIT_PRODUCER_ID]
    assert api.max_stable_version == api.max_version - 1
    assert APIS[ApiKey.FETCH].max_stable_version == APIS[ApiKey.FETCH].max_version
    assert APIS[ApiKey.SASL_HANDSHAKE].flexible_from == NEVER_FLEXIBLE


def test_error_codes_are_those_kio_knows_and_newer_ones() -> None:
    theirs = {code.value: (code.name.upper(), code.retriable) for code in PeerErrorCode}
    ours = {code.value: (code.name, code.retriable) for code in ErrorCode}
    assert ours.keys() == set(range(-1, 134))
    assert {number: ours[number] for number in theirs} == theirs


def test_error_codes_speak() -> None:
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.NONE == 0
    assert ErrorCode.of(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.of(30_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert all(code.message.endswith(".") for code in ErrorCode)
    assert len({code.message for code in ErrorCode}) == len(ErrorCode)
