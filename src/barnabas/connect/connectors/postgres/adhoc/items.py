"""What snapshots that signals ask for put between the log's messages. Pickled: plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.connect.connectors.postgres.tables import Table


@dataclass(slots=True, frozen=True)
class ChunkRows:
    """Rows of a table, as the server writes them."""

    table: Table
    rows: Sequence[Any] = field(repr=False)


@dataclass(slots=True, frozen=True)
class StateChanged:
    """From here on offsets have these keys too."""

    fields: dict[str, Any]


@dataclass(slots=True, frozen=True)
class Note:
    """A notification."""

    id: str
    kind: str
    status: str
    data: dict[str, str]
    time_ms: int


AdHocItem = ChunkRows | StateChanged | Note
