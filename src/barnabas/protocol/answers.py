"""Answers that always encode: one that its version cannot carry becomes an error answer.

Such an answer is a bug. To close the connection would make the client connect and ask
again, without end, and hold up the other requests on it. So everything that the version can carry
stays, and every error code in it says UNKNOWN_SERVER_ERROR, as Kafka answers where a handler fails.
"""

import logging
from typing import Any, Final, TypeVar

from barnabas.base.disk import Buffer
from barnabas.protocol.codec import encode_parts
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.schema import FieldType, Message, Struct

M = TypeVar("M", bound=Message)
S = TypeVar("S", bound=Struct)

STRING_BYTES_MAX: Final = 32767
_INTEGER_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS: Final = {"uint16": 16, "uint32": 32}

telemetry = logging.getLogger(__name__)


def encode_answer(response: Message, version: int) -> list[Buffer]:
    """The parts of `response`, or of an error answer where it cannot be encoded.

    Raises EncodeError only where that version of the response has no error code to set.
    """
    try:
        return encode_parts(response, version)
    except EncodeError:
        refused = error_answer(response, version, ErrorCode.UNKNOWN_SERVER_ERROR)
        parts = encode_parts(refused, version)
        name = type(response).__name__
        telemetry.exception("%s version %d cannot be encoded; answering an error", name, version)
        return parts


def error_answer(response: M, version: int, error: ErrorCode) -> M:
    """`response` as far as `version` can carry it, with `error` for every error code.

    Raises EncodeError where no error code is in it.
    """
    builder = _AnswerCopier(version, error)
    answer = builder.copy(response)
    if not builder.error_codes:
        raise EncodeError(f"{type(response).__name__} version {version} has no error code to set")
    return answer


class _AnswerCopier:
    """Copies what fits, struct by struct."""

    def __init__(self, version: int, error: ErrorCode) -> None:
        self._version = version
        self._error = error
        self.error_codes = 0
        """The number that have been set."""

    def copy(self, struct: S) -> S:
        """A new struct; what does not fit has its default."""
        new = type(struct)()
        for field in struct.SCHEMA.fields:
            if not field.versions.covers(self._version):
                continue
            value = getattr(struct, field.name)
            if field.name == "error_code" or field.name.endswith("_error_code"):
                setattr(new, field.name, self._error)
                self.error_codes += 1
            elif field.type.kind == "struct":
                if value is not None:
                    setattr(new, field.name, self.copy(value))
            elif field.type.element is not None and field.type.element.kind == "struct":
                if value is not None:
                    setattr(new, field.name, [self.copy(element) for element in value])
            elif _fits(field.type, value, nullable=field.nullable.covers(self._version)):
                setattr(new, field.name, value)
        return new


def _fits(kind_of: FieldType, value: Any, *, nullable: bool = False) -> bool:
    """Return whether a value that is not a struct can be encoded as its type."""
    kind = kind_of.kind
    if value is None:
        return nullable
    if kind_of.element is not None:
        return all(_fits(kind_of.element, element) for element in value)
    if kind in _INTEGER_BITS:
        limit = 1 << (_INTEGER_BITS[kind] - 1)
        return isinstance(value, int) and -limit <= value < limit
    if kind in _UNSIGNED_BITS:
        return isinstance(value, int) and 0 <= value < 1 << _UNSIGNED_BITS[kind]
    if kind == "string":
        return isinstance(value, str) and _string_fits(value)
    if kind == "uuid":
        return isinstance(value, bytes) and len(value) == 16
    return True


def _string_fits(text: str) -> bool:
    try:
        return len(text.encode()) <= STRING_BYTES_MAX
    except UnicodeEncodeError:
        return False
