"""Spark's own formats as a source: the driver takes rows from a DataFrame, piece by piece.

`FormatTable` reads a format once, as it is then. `FormatStream` reads one for ever, by a streaming
query with a checkpoint: the query waits in each of its batches until the rows are written. Both
have the methods of a DataSourceStreamReader, and write at least once: what began and was not
finished is read from its beginning again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from threading import Condition
from typing import Any, Final

from barnabas.connect.allowed_paths import database_paths, local_paths
from barnabas.connect.config.values import missing, with_prefix
from barnabas.connect.connectors.base import Settings
from barnabas.connect.errors.spark import spark_errors, spark_failure
from barnabas.schemas.data.errors import ConnectError

ROWS_MAX: Final = 10_000
"""Of a micro-batch."""
OPTION: Final = "option."
_PATHS: Final = ("path", "checkpointlocation", "avroschemaurl", "rowvalidationxsdpath")
_WAIT_SECONDS: Final = 0.1
_IS_READ: Final = "isRead"


def options_of(settings: Settings) -> dict[str, str]:
    """Return the options of the data source."""
    return with_prefix(settings, OPTION)


def files_of(settings: Settings) -> dict[str, list[str]]:
    """Return the local paths that a format of Spark is given, by the setting's name."""
    files = {}
    for key, value in settings.items():
        name = key.removeprefix(OPTION).lower() if key.startswith(OPTION) else ""
        if name in _PATHS or key == "checkpoint.location":
            files[key] = local_paths(value)
        elif name == "paths":
            files[key] = local_paths(*_listed(value))
        elif name == "url" and value.strip().lower().startswith("jdbc:"):
            files[key] = database_paths(value)
    return files


def _listed(value: str) -> list[str]:
    try:
        paths = json.loads(value)
    except ValueError:
        return [value]
    return [str(path) for path in paths] if isinstance(paths, list) else [value]


def load_frame(reader: Any, settings: Settings, schema: Any) -> Any:
    """Return the DataFrame of `spark.read` or `spark.readStream`. Raises ConnectError."""
    try:
        given = reader.format(settings["format"]).options(**options_of(settings))
        return (given if schema is None else given.schema(schema)).load()
    except spark_errors() as error:
        what = f"cannot read the format {settings['format']}"
        raise ConnectError(spark_failure(what, error)) from error


class _Pieces:
    """Rows that wait to be written; the base of both."""

    goes_on = False
    """Before its commit."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._at = start
        self._end = start
        self._rows: list[tuple[Any, ...]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Executors are given the rows alone."""
        return {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        return self._at

    def partitions(self, start: Any, end: Any) -> Sequence[Any]:
        return [] if self._rows is None else [self._rows]

    def read(self, partition: Any) -> Iterator[Any]:
        return iter(partition)


class FormatTable(_Pieces):
    """A DataFrame, once."""

    def __init__(self, frame: Any, stored: dict[str, Any] | None) -> None:
        is_read = stored is not None and stored.get(_IS_READ) is True
        super().__init__(dict(stored) if stored and is_read else {"rows": 0, _IS_READ: False})
        self._frame = frame
        self._left: Iterator[Any] | None = None

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        if self._rows is not None or self._at[_IS_READ]:
            return self._end
        try:
            if self._left is None:
                self._left = self._frame.toLocalIterator()
            self._rows = [tuple(row) for row in islice(self._left, ROWS_MAX)]
        except spark_errors() as error:
            raise ConnectError(spark_failure("cannot read rows", error)) from error
        count = len(self._rows)
        self._end = {"rows": self._at["rows"] + count, _IS_READ: count < ROWS_MAX}
        return self._end

    def commit(self, end: dict[str, Any]) -> None:
        self._at = end
        self._rows = None

    def stop(self) -> None:
        self._left = None


class _Stopped(Exception):  # noqa: N818  # a way out, not an error
    """The task ends while a batch of the query is not written."""


class FormatStream(_Pieces):
    """A streaming query, whose batches are told apart by their number and the checkpoint's id."""

    def __init__(
        self, start_query: Callable[[Callable[[Any, int], None]], Any], stored: Any
    ) -> None:
        super().__init__(dict(stored) if stored else {"query": "", "batch": -1, "isWhole": True})
        self._start_query = start_query
        self._changed = Condition()
        self._query: Any = None
        self._is_stopping = False

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        with self._changed:
            if self._query is None:
                try:
                    self._query = self._start_query(self._take)
                except spark_errors() as error:
                    raise ConnectError(spark_failure("cannot start the query", error)) from error
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._rows is not None, _WAIT_SECONDS)
            if self._rows is None and not self._query.isActive:
                reason = self._query.exception() or Exception("it was stopped")
                raise ConnectError(spark_failure("the query has ended", reason))
            return self._end

    def commit(self, end: dict[str, Any]) -> None:
        with self._changed:
            self._at = end
            self._rows = None
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._query is not None:
            self._query.stop()

    def _take(self, frame: Any, batch: int) -> None:
        """Hand a batch's rows over and wait until they are written; in a thread of the query."""
        with self._changed:
            self._changed.wait_for(lambda: self._query is not None or self._is_stopping)
            if self._is_stopping:
                raise _Stopped
            query = str(self._query.id)
            at = self._at
        if at["query"] == query and (at["batch"], at["isWhole"]) >= (batch, True):
            return  # it was written, and the checkpoint did not hear of it
        left = frame.toLocalIterator()
        rows = _piece(left)
        while rows:
            following = _piece(left)
            with self._changed:
                self._rows = rows
                self._end = {"query": query, "batch": batch, "isWhole": not following}
                if following:
                    self._end["rows"] = self._at.get("rows", 0) + len(rows)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_written() or self._is_stopping)
                if not self._is_written():
                    raise _Stopped
            rows = following

    def _is_written(self) -> bool:
        return self._rows is None


def _piece(rows: Iterator[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in islice(rows, ROWS_MAX)]


def stream_starter(
    frame: Any, name: str, checkpoint: str | None
) -> Callable[[Callable[[Any, int], None]], Any]:
    """Return what starts the query of a streaming DataFrame. Raises ConfigError."""
    from barnabas.spark.interruption import interruptible

    if not checkpoint:
        raise missing("checkpoint.location")
    writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint)

    def start(take: Callable[[Any, int], None]) -> Any:
        return writer.foreachBatch(interruptible(take)).start()

    return start
