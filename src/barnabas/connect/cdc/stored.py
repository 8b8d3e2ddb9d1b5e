"""The progress of an incremental snapshot in stored offsets, in Debezium's keys (pure).

incremental_snapshot_collections     the tables to be read yet, as JSON
incremental_snapshot_primary_key     how far the first is read: a key as Java serializes it
incremental_snapshot_maximum_key     up to where it is read
incremental_snapshot_correlation_id  the signal that asked last
barnabas_snapshot_paused             whether a signal has paused it
barnabas_blocking                    the blocking snapshot that is to be taken, as JSON
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, Final

from barnabas.connect.cdc.steps import SnapshotProgress, Wanted
from barnabas.connect.record import JsonMap
from barnabas.java.object_stream import (
    UnknownKeyError,
    key_of,
    written,
)

_log = logging.getLogger(__name__)
_PREFIX: Final = "incremental_snapshot_"
COLLECTIONS: Final = f"{_PREFIX}collections"
DONE: Final = f"{_PREFIX}primary_key"
LAST: Final = f"{_PREFIX}maximum_key"
CORRELATION: Final = f"{_PREFIX}correlation_id"
PAUSED: Final = "barnabas_snapshot_paused"
BLOCKING: Final = "barnabas_blocking"
_ID, _CONDITION, _SURROGATE = (
    f"{COLLECTIONS}_{part}" for part in ("id", "additional_condition", "surrogate_key")
)


def fields(progress: SnapshotProgress, blocking: Sequence[Wanted] = ()) -> dict[str, Any]:
    """Return the keys to store; none if there is nothing to do."""
    made: dict[str, Any] = {}
    if progress.is_running:
        made = {
            DONE: written(progress.done, progress.key_classes),
            LAST: written(progress.last, progress.key_classes),
            COLLECTIONS: _tables(progress.tables),
            CORRELATION: progress.correlation_id,
        }
        if progress.is_paused:
            made[PAUSED] = True
    return made | {BLOCKING: _tables(blocking)} if blocking else made


def progress_of(offset: JsonMap) -> SnapshotProgress:
    """Read what is stored. A place that cannot be read is the first table's beginning."""
    tables = _wanted(offset.get(COLLECTIONS))
    if not tables:
        return SnapshotProgress()
    done = last = None
    types: tuple[str, ...] = ()
    try:
        done, _types = _key(offset.get(DONE))
        last, types = _key(offset.get(LAST))
    except UnknownKeyError as error:
        _log.warning(
            "The stored position of the incremental snapshot of %s cannot be used, so the table"
            " is read from its beginning: %s",
            *(tables[0].table, error),
        )
        done = last = None
    correlation = offset.get(CORRELATION)
    return SnapshotProgress(
        *(tables, done if last is not None else None, last, types),
        correlation_id=None if correlation is None else str(correlation),
        is_paused=bool(offset.get(PAUSED)),
    )


def blocking_of(offset: JsonMap) -> tuple[Wanted, ...]:
    """Read what a blocking snapshot, begun or not, is to read."""
    return _wanted(offset.get(BLOCKING))


def _key(text: Any) -> tuple[Any, tuple[str, ...]]:
    key_and_classes = None if text is None else key_of(str(text))
    return (None, ()) if key_and_classes is None else key_and_classes


def _tables(tables: Sequence[Wanted]) -> str:
    listed = [
        {
            _ID: one.table,
            _CONDITION: one.condition or None,
            _SURROGATE: one.surrogate_key or None,
        }
        for one in tables
    ]
    return json.dumps(listed, separators=(",", ":"))


def _wanted(text: Any) -> tuple[Wanted, ...]:
    if not text:
        return ()
    try:
        return tuple(
            Wanted(str(one[_ID]), one.get(_CONDITION) or "", one.get(_SURROGATE) or "")
            for one in json.loads(text)
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        _log.warning("The stored tables of an ad-hoc snapshot cannot be read: %s", error)
        return ()
