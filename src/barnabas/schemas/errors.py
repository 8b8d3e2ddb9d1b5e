"""Errors of schemas, and of data with a schema."""

from __future__ import annotations

from barnabas.base.errors import ShownError


class FormatError(ShownError):
    """Bytes do not fit their schema, or values do not fit the format.

    `retriable`: the schema registry did not answer; the data may be good.
    """

    def __init__(self, message: str, *, retriable: bool = False) -> None:
        super().__init__(message)
        self.retriable = retriable


class RegistryError(FormatError):
    """A schema registry does not answer, refuses a request, or lacks a schema."""
