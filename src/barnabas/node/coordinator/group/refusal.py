"""Refusal: the error that a group's coordinator answers to a member."""

from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode


class Refusal(NamedTuple):
    """An error code with the text that goes out beside it, where the response has room for it."""

    error: ErrorCode
    message: str | None
