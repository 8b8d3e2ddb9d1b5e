"""Reads a change stream, and first what was there, if that is wanted.

The cursor is on the driver: a micro-batch is up to `poll.max.batch.size` changes that it took, and
its one split has their BSON. They are kept until they are committed, so that a micro-batch which
failed is the same when it is tried again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import bson
from bson import Timestamp, json_util
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.uri_parser import parse_uri

from barnabas.connect.connectors.base import OffsetReader, SourceReader
from barnabas.connect.connectors.mongodb.client import RAW, AllDatabases, make_client, told
from barnabas.connect.connectors.mongodb.events import Events
from barnabas.connect.connectors.mongodb.settings import is_tolerant, secret
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.java.regex import compile_java
from barnabas.schemas.data.builder import OPTIONAL_BYTES, STRING
from barnabas.schemas.data.errors import ConfigError, ConnectError

_log = logging.getLogger(__name__)
TOKEN: Final = "_id"
COPY: Final = "copy"
HEARTBEAT: Final = "HEARTBEAT"
_LOST: Final = (136, 222, 234, 260, 280, 286)
"""Codes of servers that cannot go on where a token says."""
_BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
_WAIT_MS: Final = 100
_HIDDEN: Final = ("admin", "config", "local")


def partition_name(values: Mapping[str, Any]) -> str:
    """Under which name offsets are stored, without user and password. Raises ConfigError."""
    if values["offset.partition.name"]:
        return str(values["offset.partition.name"])
    uri = secret(values["connection.uri"])
    scheme = uri.partition("//")[0]
    if scheme == "mongodb+srv:":
        hosts = uri.partition("//")[2].rpartition("@")[2].partition("/")[0].partition("?")[0]
    else:
        try:
            nodes = parse_uri(uri, warn=False)["nodelist"]
        except Exception as error:
            raise ConfigError("connection.uri is not a connection string") from error
        hosts = ",".join(f"{host}:{port}" for host, port in nodes)
    collection = f".{values['collection']}" if values["collection"] else ""
    return f"{scheme}//{hosts}/{values['database'] or ''}{collection}"


def operation_time(text: str) -> Timestamp | None:
    """Parse `startup.mode.timestamp.start.at.operation.time`. Raises ConfigError."""
    text = text.strip()
    if not text:
        return None
    try:
        if text.isdecimal():
            return Timestamp(int(text), 0)
        if text.startswith("{"):
            pipeline = json_util.loads(text)
            if isinstance(pipeline, Timestamp):
                return pipeline
        else:
            return Timestamp(int(datetime.fromisoformat(text).timestamp()), 0)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"no moment: {error}") from error
    raise ConfigError("no moment")


class ChangeReader(SourceReader):
    """Reads for the one task."""

    def __init__(self, values: Mapping[str, Any], offsets: OffsetReader | None) -> None:
        self._values = values
        self._namespace = (str(values["database"] or ""), str(values["collection"] or ""))
        self._partition: JsonMap = {"ns": partition_name(values)}
        self._events: Events | None = self._make_events()
        stored = None if offsets is None else offsets.offset(self._partition)
        self._token: Any = None
        if stored is not None and COPY not in stored:
            self._token = json_util.loads(str(stored[TOKEN]))
        mode = str(values["startup.mode"]).lower()
        if not mode and values["copy.existing"]:
            mode = "copy_existing"
        self._is_stored = self._token is not None
        self._copies = mode == "copy_existing" and self._token is None
        self._begins_at = (
            operation_time(str(values["startup.mode.timestamp.start.at.operation.time"] or ""))
            if mode == "timestamp" and self._token is None
            else None
        )
        self._client: MongoClient[Any] | None = None
        self._stream: Any = None
        self._copying: Iterator[bytes] | None = None
        self._batch: list[bytes] = []
        self._batch_offsets: list[JsonMap] = []
        self._behind: JsonMap | None = None
        self._heartbeat: JsonMap | None = None
        self._last_record = time.monotonic()
        self._number = 0

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state |= {"_events": None, "_client": None, "_stream": None, "_copying": None, "_batch": []}
        return state

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the number of the first micro-batch."""
        return {"batch": self._number}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Take changes. Raises RetriableError, ConnectError."""
        if not self._is_pending():
            with told("cannot read the change stream"):
                self._take()
        return {"batch": self._number + self._is_pending()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return what was taken, as one split: changes stay in order."""
        return [(self._batch, self._batch_offsets, self._heartbeat)]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the records of the changes."""
        changes, offsets, heartbeat = partition
        if self._events is None:
            self._events = self._make_events()
        yield from self._events.records(changes, offsets)
        if heartbeat is not None:
            yield SourceRecord(
                source_partition=self._partition,
                source_offset=heartbeat,
                topic=str(self._values["heartbeat.topic.name"]),
                key_schema=STRING,
                key=heartbeat[TOKEN],
                value_schema=OPTIONAL_BYTES,
            )

    def offsets(self, end: dict[str, Any]) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Return how far it is, also where no change became a record."""
        return [] if self._behind is None else [(self._partition, self._behind)]

    def sent(self, end: dict[str, Any]) -> bool:
        """The stream is read on."""
        self.commit(end)
        return True

    def commit(self, end: dict[str, Any]) -> None:
        """Forget the micro-batch, unless that is done: what is taken now is another."""
        if end["batch"] <= self._number:
            return
        self._number = end["batch"]
        self._batch, self._batch_offsets = [], []
        self._is_stored = True
        self._behind = self._heartbeat = None

    def stop(self) -> None:
        """Close the cursor."""
        if self._stream is not None:
            self._stream.close()
        if self._client is not None:
            self._client.close()

    def _is_pending(self) -> bool:
        return bool(self._batch) or self._behind is not None

    def _make_events(self) -> Events:
        return Events(self._values, self._partition, self._namespace)

    # --- the stream --------------------------------------------------------------------------

    def _take(self) -> None:
        if self._stream is None:
            self._open()
        if self._copying is not None:
            self._take_copies()
            return
        batch: list[bytes] = []
        offsets: list[JsonMap] = []
        size = 0
        # Changes that come one by one do not wait until there are many.
        until = time.monotonic() + self._await_ms() / 1000
        try:
            while len(batch) < self._values["poll.max.batch.size"] and size < _BATCH_BYTES_MAX:
                if batch and time.monotonic() > until:
                    break
                change = self._stream.try_next()
                if change is None:
                    break
                batch.append(change.raw)
                size += len(change.raw)
                offsets.append(_offset(change[TOKEN]))
        except PyMongoError as error:
            self._reopen_behind(offsets)
            if batch:  # what is taken counts; the error comes again if it lasts
                _log.warning("the change stream has ended: %s", error)
            elif isinstance(error, OperationFailure):
                self._begin_anew(error)
            else:
                raise
        if batch:
            self._batch, self._batch_offsets = batch, offsets
            self._behind = offsets[-1]
            self._last_record = time.monotonic()
        elif self._stream is not None:
            self._note_position()
        if self._stream is not None:
            self._token = self._stream.resume_token or self._token
            if not self._stream.alive:  # the collection was dropped or renamed
                self._stream.close()
                self._stream = None

    def _reopen_behind(self, offsets: list[JsonMap]) -> None:
        """Close the stream; the next one begins behind the last change that was taken."""
        if offsets:
            self._token = json_util.loads(offsets[-1][TOKEN])
        else:
            self._token = self._stream.resume_token or self._token
        self._stream.close()
        self._stream = None

    def _note_position(self) -> None:
        """Without changes: the first position is stored, later ones with heartbeats."""
        token = self._stream.resume_token
        if token is None:
            return
        interval = self._values["heartbeat.interval.ms"]
        if not self._is_stored:
            self._behind = _offset(token)
        elif token == self._token:
            return
        elif interval > 0 and (time.monotonic() - self._last_record) * 1000 >= interval:
            self._behind = _offset(token)
            self._heartbeat = {**self._behind, HEARTBEAT: "true"}
            self._last_record = time.monotonic()

    def _begin_anew(self, error: OperationFailure) -> None:
        """The server cannot go on: where errors are tolerated, from now on. Raises ConnectError."""
        if error.code not in _LOST or self._token is None:
            raise error
        if not is_tolerant(self._values):
            raise ConnectError(
                "ResumeToken not found. Cannot create a change stream cursor: the server no longer "
                "has the changes after the stored offset. Set errors.tolerance=all to go on with "
                f"new changes, or reset the connector's offsets: {error}"
            ) from error
        _log.error("changes may be lost: the change stream was restarted: %s", error)
        self._token = None

    def _open(self) -> None:
        if self._client is None:
            self._client = make_client(self._values)
        options: dict[str, Any] = {"max_await_time_ms": self._await_ms()}
        if self._token is not None:
            options["start_after"] = self._token
        elif self._begins_at is not None:
            options["start_at_operation_time"] = self._begins_at
        for name, key in (
            ("full_document", "change.stream.full.document"),
            ("full_document_before_change", "change.stream.full.document.before.change"),
        ):
            if self._values[key] and self._values[key] != "default":
                options[name] = self._values[key]
        if self._values["change.stream.show.expanded.events"]:
            options["show_expanded_events"] = True
        if self._values["batch.size"]:
            options["batch_size"] = self._values["batch.size"]
        if self._values["collation"]:
            options["collation"] = json_util.loads(self._values["collation"])
        try:
            self._stream = self._target(self._client).watch(
                json_util.loads(self._values["pipeline"] or "[]"), **options
            )
        except OperationFailure as error:
            self._begin_anew(error)
            self._open()
            return
        if self._copies:
            # Concurrent changes are in the stream, behind the copied documents.
            self._token = self._stream.resume_token
            self._copying = self._existing(self._client)
            self._copies = False

    def _await_ms(self) -> int:
        return max(1, min(_WAIT_MS, int(self._values["poll.await.time.ms"])))

    def _target(self, client: MongoClient[Any]) -> Any:
        database, collection = self._namespace
        if not database:
            return AllDatabases(client)
        if not collection:
            return client.get_database(database, codec_options=RAW)
        return client.get_database(database).get_collection(collection, codec_options=RAW)

    # --- what was there ----------------------------------------------------------------------

    def _take_copies(self) -> None:
        batch: list[bytes] = []
        size = 0
        assert self._copying is not None
        while len(batch) < self._values["poll.max.batch.size"] and size < _BATCH_BYTES_MAX:
            try:
                change = next(self._copying, None)
            except PyMongoError:
                # The position where it stopped is unknown: everything is copied again.
                self._copying = self._existing(self._client) if self._client else None
                raise
            if change is None:
                self._copying = None
                # The end of the copy counts at once: a restart does not copy again.
                if self._token is not None:
                    self._behind = _offset(self._token)
                break
            batch.append(change)
            size += len(change)
        offset = {**_offset(self._token or {"copyingData": True}), COPY: "true"}
        self._batch = batch
        self._batch_offsets = [offset for _ in batch]
        if batch and self._behind is None:
            self._behind = offset

    def _existing(self, client: MongoClient[Any]) -> Iterator[bytes]:
        given = map(json_util.loads, self._of_copy("pipeline", "[]"))
        stages: list[Any] = next(filter(None, given), [])
        uses_disk = all(self._of_copy("allow.disk.use", True))
        for database, collection in self._collections(client):
            source = client[database].get_collection(collection, codec_options=RAW)
            cursor = source.aggregate(stages, allowDiskUse=uses_disk)
            for document in cursor:
                yield bson.encode(
                    {
                        TOKEN: {TOKEN: document.get(TOKEN), "copyingData": True},
                        "operationType": "insert",
                        "ns": {"db": database, "coll": collection},
                        "documentKey": {TOKEN: document.get(TOKEN)},
                        "fullDocument": document,
                    }
                )

    def _collections(self, client: MongoClient[Any]) -> list[tuple[str, str]]:
        database, collection = self._namespace
        if collection:
            namespaces = [(database, collection)]
        else:
            databases = [database] if database else client.list_database_names()
            namespaces = [
                (name, one)
                for name in databases
                if name not in _HIDDEN
                for one in sorted(client[name].list_collection_names())
                if not one.startswith("system.")
            ]
        pattern = next(filter(None, self._of_copy("namespace.regex", "")), "")
        is_wanted = compile_java(pattern).matches if pattern else bool
        return [(db, c) for db, c in namespaces if is_wanted(f"{db}.{c}")]

    def _of_copy(self, name: str, default: Any) -> list[Any]:
        """A setting of copies under its name and under its old one."""
        given = [self._values[f"{place}copy.existing.{name}"] for place in ("startup.mode.", "")]
        return [default if one in (None, "") else one for one in given]


def _offset(token: Any) -> JsonMap:
    if hasattr(token, "raw"):
        token = bson.decode(token.raw)
    return {TOKEN: json_util.dumps(token, json_options=json_util.CANONICAL_JSON_OPTIONS)}


def is_token(text: Any) -> bool:
    """Return whether a stored offset's `_id` can be one."""
    try:
        return isinstance(json.loads(str(text)), dict)
    except ValueError:
        return False
