"""Request and response headers.

Request header 2 and response header 1 belong to flexible versions. The client id keeps its two-byte
length in both, so that a node can read the header of an ApiVersions request it does not know.
"""

from barnabas.protocol.fields import int16, int32, string
from barnabas.protocol.schema import Message, message


@message(versions="1-2", flexible="2+")
class RequestHeader(Message):
    request_api_key: int = int16("0+")
    request_api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    client_id: str | None = string("1+", nullable="1+", flexible="none")


@message(versions="0-1", flexible="1+")
class ResponseHeader(Message):
    correlation_id: int = int32("0+")
