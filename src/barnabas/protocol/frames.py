"""Requests and response headers as frames hold them, without the four bytes of size before.

Source: KIP-482, KIP-511.
"""

from struct import Struct

from barnabas.base.disk import Buffer
from barnabas.protocol.apis import APIS, AnyApi
from barnabas.protocol.codec import decode_at, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.connections import RequestHeader, ResponseHeader
from barnabas.protocol.schema import Message

CORRELATION_END = 8
"""The position after a request's correlation id, which follows key and version."""
_KEY_AND_VERSION = Struct(">hh")
_RESPONSE_HEADERS = (Struct(">i"), Struct(">ix"))
"""Both versions of the response header; every response has one, so it is packed by hand."""


def decode_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    """Read a request's header. Returns it and the position of the body.

    The version is not checked: an ApiVersions request of any version must be answered. Raises
    DecodeError for an API that does not exist.
    """
    if len(buffer) < _KEY_AND_VERSION.size:
        raise DecodeError(f"{len(buffer)} bytes are not a request")
    api_key, version = _KEY_AND_VERSION.unpack_from(buffer)
    api = APIS.get(api_key)
    if api is None:
        raise DecodeError(f"there is no API {api_key}")
    return decode_at(RequestHeader, api.request_header_version(version), buffer, 0)


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, request: Message
) -> bytes:
    """A whole request, header and body. Raises EncodeError as `encode` does."""
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    head = encode(header, APIS[api_key].request_header_version(version))
    return head + encode(request, version)


def encode_response_header(api: AnyApi, version: int, correlation_id: int) -> bytes:
    """The header that precedes a response."""
    return _RESPONSE_HEADERS[api.response_header_version(version)].pack(correlation_id)


def decode_response_header(api: AnyApi, version: int, buffer: Buffer) -> tuple[ResponseHeader, int]:
    """Read a response's header. Returns it and the position of the body. Raises DecodeError."""
    return decode_at(ResponseHeader, api.response_header_version(version), buffer, 0)
