"""Reads formats with a schema registry in groups: the records that have the same schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import StoredSchema
from barnabas.schemas.wire_format import ID_MAGIC, PREFIX_BYTES
from barnabas.sql.columns.cursors import Cursors, payloads_of
from barnabas.sql.columns.vectors import (
    Indexes,
    Mask,
    Read,
    Vector,
    concatenated,
    mask_of,
    nulls_of,
)
from barnabas.sql.formats.connect_data import UnreadableError
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.formats.registry_wire import READ_ERRORS, of_kind

_ROOTS_MAX: Final = 256
"""So many schemas a reader keeps; it forgets all when it meets more."""

Root = Callable[[Cursors], list[Vector]]
"""Reads the columns. Cursors of records that it has read whole are at the record's end then."""
Paths = Callable[[Cursors], list[tuple[Indexes, bytes]]]
"""Cuts a group by what stands before the data, and moves the cursors behind it."""


class NoFormError(Exception):
    """Data with this schema cannot be read as columns."""


class SchemaGroups:
    """Reads records group by group: each has the schema whose id they begin with.

    `root_of` makes what reads data with a schema, and a path. Raises NoFormError, UnreadableError,
    FormatError or READ_ERRORS if only the row reader can read them, or says why it cannot.
    """

    def __init__(
        self,
        part: RecordPart,
        schema_type: str,
        root_of: Callable[[StoredSchema, bytes], Root],
        paths: Paths | None = None,
    ) -> None:
        self._part = part
        self._columns = tuple(part.columns)
        self._schema_type = schema_type
        self._root_of = root_of
        self._paths = paths or _whole
        self._known: dict[tuple[int, bytes], Root | None] = {}

    def read(self, data: Any) -> Read:
        """Read keys or values."""
        size = len(data)
        is_row = mask_of(data.is_valid())
        payloads, starts, ends = payloads_of(data)
        framed = is_row & (ends - starts >= PREFIX_BYTES) & (payloads[starts] == ID_MAGIC)
        ids = np.zeros(size, np.int64)
        for place in range(1, PREFIX_BYTES):
            ids = (ids << 8) | payloads[starts + place]
        groups: list[tuple[Indexes, list[Vector], Mask]] = []
        for schema_id in np.unique(ids[framed]).tolist():
            places = np.flatnonzero(framed & (ids == schema_id))
            whole = Cursors(payloads, starts[places] + PREFIX_BYTES, ends[places])
            for inner, path in self._paths(whole):
                root = self._root(schema_id, path)
                if root is not None:
                    cursors = whole if len(inner) == len(places) else whole.some(inner)
                    vectors = root(cursors)
                    odd = whole.odd[inner] | cursors.odd | (cursors.at != cursors.ends)
                    groups.append((places[inner], vectors, odd))
        doubt = is_row.copy()
        for places, _, odd in groups:
            doubt[places] = odd
        if len(groups) == 1 and len(groups[0][0]) == size:
            return Read(groups[0][1], is_row, doubt)
        # One value more, NULL, for the records that no group has.
        order = np.full(size, sum(len(places) for places, _, _ in groups), np.int64)
        before = 0
        for places, _, _ in groups:
            order[places] = before + np.arange(len(places), dtype=np.int64)
            before += len(places)
        made = [
            concatenated([*(group[1][at] for group in groups), nulls_of(column.type, 1)])
            for at, column in enumerate(self._columns)
        ]
        return Read([vector.take(order) for vector in made], is_row, doubt)

    def _root(self, schema_id: int, path: bytes) -> Root | None:
        """Return what reads data of a schema. None if only the row reader can, or if it says what
        is wrong with the schema."""
        known = schema_id, path
        if known in self._known:
            return self._known[known]
        store = self._part.schemas
        if store is None:
            return None
        if len(self._known) >= _ROOTS_MAX:
            self._known.clear()
        try:
            schema = of_kind(store.by_id(schema_id), self._schema_type)
            root: Root | None = self._root_of(schema, path)
        except (NoFormError, UnreadableError):
            root = None
        except (FormatError, *READ_ERRORS):
            return None
        self._known[known] = root
        return root


def _whole(cursors: Cursors) -> list[tuple[Indexes, bytes]]:
    return [(np.arange(len(cursors), dtype=np.int64), b"")]
