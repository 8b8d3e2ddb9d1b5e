"""Shared by the handlers of transactions."""

from barnabas.node.broker.context import RequestContext
from barnabas.protocol.errors import ErrorCode


def fenced_as(context: RequestContext, error: int, from_version: int) -> ErrorCode:
    """The error as the client's version knows it: older ones do not know PRODUCER_FENCED."""
    code = ErrorCode.of(error)
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < from_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
