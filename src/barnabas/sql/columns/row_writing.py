"""Writes vectors with a format's own serializer, one row after the other: for formats and types
that no other writer of columns has. The steps before still run as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.schemas.errors import FormatError
from barnabas.sql.columns.vectors import CheckedWriter, Mask, Vector
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart, Serializer


class RowByRowWriter(CheckedWriter):
    """Writes each row in `doubt`, and leaves those that do not fit to the row writer, which notes
    what is wrong."""

    def __init__(self, format_name: str, part: RecordPart) -> None:
        self._format_name, self._part = format_name, part
        self._serialize: Serializer | None = None
        self._has_written = False
        self._made: tuple[Sequence[Vector], Any] | None = None
        """What `doubt` has written, and of which vectors."""

    def doubt(self, vectors: Sequence[Vector]) -> Mask | None:
        written, odd = self._written(vectors)
        self._made = list(vectors), written
        return odd

    def __call__(self, vectors: Sequence[Vector]) -> Any:
        made, self._made = self._made, None
        if made is not None and all(map(_is_same, made[0], vectors)):
            return made[1]
        written, odd = self._written(vectors)
        assert odd is None, "rows that doubt left"
        return written

    def _written(self, vectors: Sequence[Vector]) -> tuple[Any, Mask | None]:
        """The rows' bytes, and which rows could not be written."""
        if self._serialize is None:
            # Not before there are rows: a plan is explained without a registry.
            self._serialize = format_named(self._format_name).serializer(self._part)
        serialize = self._serialize
        size = len(vectors[0])
        made: list[bytes | None] = [None] * size
        odd: Mask | None = None
        for place, row in enumerate(zip(*(vector.to_list() for vector in vectors), strict=True)):
            try:
                made[place] = serialize(list(row))
            except FormatError as error:
                odd = np.zeros(size, np.bool_) if odd is None else odd
                odd[place] = True
                if error.retriable or not self._has_written:
                    # The registry may have refused the schema, or not have answered: the row writer
                    # asks again.
                    odd[place:] = True
                    break
            else:
                self._has_written = self._has_written or made[place] is not None
        return pa.array(made, pa.binary()), odd


def _is_same(one: Vector, other: Vector) -> bool:
    return one is other
