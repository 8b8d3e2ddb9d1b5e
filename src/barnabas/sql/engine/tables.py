"""Tables as they are now, kept from their topics, so that pull queries are answered at once."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.engine.cluster import Cluster, ClusterError, Follower, Start
from barnabas.sql.engine.config import SOURCE_TABLES
from barnabas.sql.engine.context import Context
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.plan.steps import TableSource
from barnabas.sql.runtime.ends import header_value
from barnabas.sql.runtime.evaluation import no_log
from barnabas.sql.runtime.records import Row, WindowBounds
from barnabas.sql.runtime.rows_encoding import encode_key
from barnabas.sql.runtime.topics import TopicReader, TopicRecord

_log = logging.getLogger(__name__)
CATCH_UP_S = 30.0


class TableRow(NamedTuple):
    """A row as it is now, and when it became so. `value`: with what headers fill at its end."""

    key: Row
    value: Row
    timestamp_ms: int
    window: WindowBounds | None


class TableRows:
    """Rows sorted by key and window.

    `retention_ms`: rows of windows that ended this long before the latest record are dropped.
    """

    def __init__(self, retention_ms: int | None = None) -> None:
        self._rows: dict[bytes, TableRow] = {}
        self._sorted: list[bytes] = []
        self._by_end: list[tuple[int, bytes]] = []
        self._retention_ms = retention_ms
        self._stream_time = -1

    def __len__(self) -> int:
        return len(self._rows)

    def put(
        self, key: Row, value: Row | None, timestamp_ms: int, window: WindowBounds | None
    ) -> None:
        """Set the row of a key, or delete it."""
        encoded = encode_key(key) + (encode_key(window) if window else b"")
        if value is None:
            self._remove(encoded)
        else:
            if encoded not in self._rows:
                insort(self._sorted, encoded)
                if window is not None and self._retention_ms is not None:
                    insort(self._by_end, (window.end_ms, encoded))
            self._rows[encoded] = TableRow(key, value, timestamp_ms, window)
        self._stream_time = max(self._stream_time, timestamp_ms)
        self._expire()

    def _remove(self, encoded: bytes) -> None:
        if self._rows.pop(encoded, None) is not None:
            del self._sorted[bisect_left(self._sorted, encoded)]

    def _expire(self) -> None:
        if self._retention_ms is None:
            return
        count = bisect_left(self._by_end, (self._stream_time - self._retention_ms, b""))
        for _, encoded in self._by_end[:count]:
            self._remove(encoded)
        del self._by_end[:count]

    def of_key(self, key: Row) -> list[TableRow]:
        """The rows of one key: one for each window."""
        low = encode_key(key)
        known = self._rows.get(low)
        if known is not None:
            return [known]
        return [row for row in self._from(low) if tuple(row.key) == tuple(key)]

    def _from(self, low: bytes) -> Iterator[TableRow]:
        for place in range(bisect_left(self._sorted, low), len(self._sorted)):
            encoded = self._sorted[place]
            if not encoded.startswith(low):
                return
            yield self._rows[encoded]

    def between(self, low: Row | None, high: Row | None) -> list[TableRow]:
        """The rows whose key lies between two keys, with both."""
        start = 0 if low is None else bisect_left(self._sorted, encode_key(low))
        stop = len(self._sorted)
        if high is not None:
            stop = bisect_right(self._sorted, encode_key(high) + b"\xff")
        return [self._rows[encoded] for encoded in self._sorted[start:stop]]


class TableView:
    """A table's rows, following its topic."""

    def __init__(
        self,
        source: DataSource,
        cluster: Cluster,
        schemas: SchemaStore | None,
        retention_ms: int | None = None,
    ) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._rows = TableRows(retention_ms if source.is_windowed else None)
        step = TableSource(source.topic, source.formats, source.schema, None, source.window)
        self._reader = TopicReader(step, schemas, no_log)
        self._headers = [header_value(column.header) for column in source.schema.headers]
        self.has_failed = False
        """True if its topic is not followed any more, as it was deleted."""
        self._follower: Follower = cluster.follow(
            [source.topic], self._take, Start.EARLIEST, on_error=self._fail
        )
        self._is_caught_up = False

    def _take(self, topic: str, record: TopicRecord, is_done: bool) -> None:
        read = self._reader.read(record)
        if read is None or read.key is None:
            return
        value = read.value
        if value is not None and self._headers:
            value = (*value, *(of_headers(read) for of_headers in self._headers))
        with self._lock:
            self._rows.put(read.key, value, read.timestamp_ms, read.window)

    def _fail(self, error: Exception) -> None:
        _log.warning("the rows of %s are no longer kept: %s", self.source.name, error)
        self.has_failed = True

    def rows(self) -> TableRows:
        """Return the rows; use them under `lock`."""
        if not self._is_caught_up:
            self._is_caught_up = self._follower.wait_until_caught_up(CATCH_UP_S)
        return self._rows

    @property
    def lock(self) -> threading.Lock:
        return self._lock

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        return self._follower.positions()

    def close(self) -> None:
        self._follower.close()


# -- which tables' rows are kept: of those that a query makes, and of SOURCE tables


class Views:
    """The kept tables; all calls hold the context's lock."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._views: dict[str, TableView] = {}

    def _is_kept(self, source: DataSource) -> bool:
        has_writer = bool(self._context.metastore.writers(source.name))
        are_kept = bool(self._context.settings.get(SOURCE_TABLES, True))
        return source.is_table and (has_writer or (source.is_source and are_kept))

    def keep(self, source: DataSource) -> None:
        """Keep the rows of a source from now on, if it is a table that is kept."""
        self.forget(source.name)
        if not self._is_kept(source):
            return
        try:
            self._views[source.name] = self._new_view(source)
        except ClusterError as error:
            _log.warning("the rows of %s are not kept: %s", source.name, error)

    def _new_view(self, source: DataSource) -> TableView:
        context = self._context
        retention = self._retention_ms(source) if source.is_windowed else None
        return TableView(source, context.cluster, context.schemas, retention)

    def _retention_ms(self, source: DataSource) -> int | None:
        retention = self._context.cluster.topic_config(source.topic).get("retention.ms")
        return None if retention is None or int(retention) < 0 else int(retention)

    def forget(self, name: str) -> None:
        """Keep them no longer."""
        view = self._views.pop(name, None)
        if view is not None:
            view.close()

    def forget_ended(self) -> None:
        """Keep no tables any longer whose queries are terminated: nobody can ask for their rows."""
        for name, view in list(self._views.items()):
            if not self._is_kept(view.source):
                self.forget(name)

    def view(self, source: DataSource) -> TableView:
        """The rows of a table; raises AnalysisError if they are not kept."""
        if not self._is_kept(source):
            raise AnalysisError(
                f"The {backquoted(source.name)} table isn't queryable. To derive a queryable "
                f"table, you can do 'CREATE TABLE QUERYABLE_{source.name} AS SELECT * FROM "
                f"{source.name}'. See https://cnfl.io/queries for more info.\n"
                "Add EMIT CHANGES if you intended to issue a push query."
            )
        if source.name in self._views and self._views[source.name].has_failed:
            self.forget(source.name)
        if source.name not in self._views:
            self._views[source.name] = self._new_view(source)
        return self._views[source.name]

    def all(self) -> dict[str, TableView]:
        """The kept tables by name."""
        return dict(self._views)

    def close(self) -> None:
        """Keep nothing any more."""
        for name in list(self._views):
            self.forget(name)
