"""Envelopes: a client's request that a broker passes on to the controller, and the answer back.

The envelope holds the request as the client would have sent it, header and all, with the
client's principal and address. Source: KIP-590, Kafka's ForwardingManager and
EnvelopeUtils.
"""

import ipaddress
import struct
from typing import Any

from barnabas.base.addresses import normal_address
from barnabas.node.metadata.asker import Asker
from barnabas.protocol.answers import encode_answer
from barnabas.protocol.apis import API_OF, APIS, AnyApi
from barnabas.protocol.codec import decode, decode_at, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.frames import (
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response_header,
)
from barnabas.protocol.messages.connections import (
    DefaultPrincipalData,
    EnvelopeRequest,
    EnvelopeResponse,
    RequestHeader,
)
from barnabas.protocol.schema import Message

PRINCIPAL_VERSION = 0
_VERSION = struct.Struct(">h")


def seal(
    request: Message, version: int | None, asker: Asker, node_client_id: str
) -> EnvelopeRequest:
    """Put a request into an envelope, in the version that the client chose.

    Another one may lack fields that the client filled. None is the highest stable version.
    A client that has no id goes by that of the node.
    """
    api = API_OF[type(request)]
    kind, _, name = asker.principal.partition(":")
    client_id = node_client_id if asker.client_id is None else asker.client_id
    principal = DefaultPrincipalData(type=kind, name=name, token_authenticated=asker.is_token)
    return EnvelopeRequest(
        request_data=encode_request(api.key, _version(api, version), 0, client_id, request),
        request_principal=_VERSION.pack(PRINCIPAL_VERSION) + encode(principal, PRINCIPAL_VERSION),
        client_host_address=_packed(asker.host),
    )


def unseal(envelope: EnvelopeRequest) -> tuple[AnyApi, RequestHeader, Message, Asker]:
    """Return the content of an envelope: API, header and body of the request, and its sender.

    Raises DecodeError.
    """
    header, position = decode_request_header(envelope.request_data)
    api = APIS[header.request_api_key]
    if not api.min_version <= header.request_api_version <= api.max_version:
        raise DecodeError(f"{api.key.name} has no version {header.request_api_version}")
    request, _ = decode_at(api.request, header.request_api_version, envelope.request_data, position)
    principal = _principal(envelope.request_principal)
    asker = Asker(
        f"{principal.type}:{principal.name}",
        _address(envelope.client_host_address),
        header.client_id,
        principal.token_authenticated,
        header.request_api_version,
    )
    return api, header, request, asker


def _principal(data: bytes | None) -> DefaultPrincipalData:
    if data is None or len(data) < _VERSION.size:
        raise DecodeError("the envelope names no principal")
    (version,) = _VERSION.unpack_from(data)
    if version != PRINCIPAL_VERSION:
        raise DecodeError(f"principals have no version {version}")
    return decode(DefaultPrincipalData, version, data[_VERSION.size :])


def _address(packed: bytes) -> str:
    try:
        address = str(ipaddress.ip_address(bytes(packed)))
    except ValueError as error:
        raise DecodeError("the envelope names no address of a client") from error
    return normal_address(address) or address


def seal_response(api: AnyApi, header: RequestHeader, response: Message) -> EnvelopeResponse:
    """Put the answer to what an envelope held into one."""
    version = header.request_api_version
    head = encode_response_header(api, version, header.correlation_id)
    return EnvelopeResponse(response_data=b"".join((head, *encode_answer(response, version))))


def unseal_response(request: Message, version: int | None, envelope: EnvelopeResponse) -> Any:
    """The answer to `request`, which was sealed in `version`. Raises DecodeError."""
    api = API_OF[type(request)]
    chosen = _version(api, version)
    data = envelope.response_data or b""
    _, position = decode_response_header(api, chosen, data)
    response, _ = decode_at(api.response, chosen, data, position)
    return response


def _version(api: AnyApi, version: int | None) -> int:
    return api.max_stable_version if version is None else version


def _packed(address: str) -> bytes:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).packed
    except ValueError:
        return b"\x00\x00\x00\x00"  # a peer of another kind than TCP over IP
