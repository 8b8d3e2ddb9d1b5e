"""The source of files: each file once, its records in order.

A file is a source partition; its offset says which content was read (`version`) and how many of its
records, or -1 once it was read to its end. A file whose content changes is read again. Objects of a
backup (names as the sink writes them) go to the topic and partition they came from, in the order of
their offsets; other files go to the topic that a pattern of their names says.
"""

from __future__ import annotations

import gzip
import logging
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Any, BinaryIO, Final, cast

from barnabas.connect.connectors.base import OffsetReader, SourceReader
from barnabas.connect.connectors.storage.formats.base import FileFormat
from barnabas.connect.connectors.storage.settings import make_format, routes_of
from barnabas.connect.connectors.storage.store import ChangedFileError, FileStore, StoredFile
from barnabas.connect.record import Header, JsonMap, SourceRecord
from barnabas.schemas.data.builder import OPTIONAL_STRING
from barnabas.schemas.data.errors import DataError, RetriableError
from barnabas.schemas.data.schema import Schema, Struct

BATCH_BYTES: Final = 64 * 1024 * 1024
TASK: Final = "barnabas.connect.files.task"
TASKS: Final = "barnabas.connect.files.tasks"
_log: Final = logging.getLogger(__name__)
_WHOLE: Final = -1
_END: Final = object()
_SIDES: Final = (".keys.", ".headers.")


@dataclass(slots=True, frozen=True)
class SourceSettings:
    """Which files are read, and as what. Picklable.

    `routes` are (pattern of names, topic); without any, names are those of a backup.
    """

    place: str
    prefix: str
    values: FileFormat
    poll_ms: int
    routes: tuple[tuple[re.Pattern[str], str], ...] = ()
    glob: str = ""
    keys: FileFormat | None = None
    headers: FileFormat | None = None
    file_delimiter: str = "+"
    settle_ms: int = 0
    since_ms: int = 0
    deletes: bool = False
    skips_damaged: bool = False
    logs_damaged: bool = False
    task: int = 0
    tasks: int = 1


@dataclass(slots=True, frozen=True)
class FilePart:
    """A file to read, from behind `position` records."""

    name: str
    version: str
    position: int
    topic: str
    partition: int | None
    offset: int = 0
    sides: tuple[tuple[str, str], ...] = ()
    """Names of the files of keys and headers, by which of them they are."""


@dataclass(slots=True)
class _Batch:
    number: int
    splits: list[list[FilePart]] = field(default_factory=list)


class FileSourceReader(SourceReader):
    """Reads the files of a store for one task."""

    def __init__(
        self, store: FileStore, settings: SourceSettings, offsets: OffsetReader | None
    ) -> None:
        self._store = store
        self._settings = settings
        self._offsets = offsets
        self._done: dict[str, tuple[str, int]] | None = None
        self._batch = _Batch(0)
        self._is_open = False
        self._waiting: list[FilePart] = []
        self._sizes: dict[str, int] = {}
        self._removable: list[str] = []
        self._next_poll = 0.0

    def __getstate__(self) -> dict[str, Any]:
        names = ("_store", "_settings")
        return {name: getattr(self, name) for name in names}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Batches are counted from 0 in each run: offsets say what was read."""
        return {"batch": self._batch.number}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Look for files when it is time, and take some of those that wait."""
        if self._is_open:
            return {"batch": self._batch.number}
        if not self._waiting and time.monotonic() >= self._next_poll:
            self._waiting = self._found()
            self._next_poll = time.monotonic() + self._settings.poll_ms / 1000
        if self._waiting:
            self._batch = _Batch(self._batch.number + 1, self._taken())
            self._is_open = True
        return {"batch": self._batch.number}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[list[FilePart]]:
        """Return the files of a batch: those of one topic's partition are one split."""
        return self._batch.splits if start != end else []

    def read(self, partition: list[FilePart]) -> Iterator[SourceRecord]:
        """Yield the records of files, one after another."""
        for part in partition:
            try:
                yield from self._records(part)
            except ChangedFileError as error:  # before its first record
                _log.info("%s since it was listed: it will be read after the next listing", error)
            except DataError as error:
                if not self._settings.skips_damaged:
                    raise DataError(f"{part.name}: {error}") from error
                if self._settings.logs_damaged:
                    _log.warning("skipping the rest of %s: %s", part.name, error)

    def offsets(self, end: dict[str, Any]) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Each file of the batch is read to its end."""
        return [
            (self._key(part.name), {"version": part.version, "position": _WHOLE})
            for split in self._batch.splits
            for part in split
        ]

    def sent(self, end: dict[str, Any]) -> bool:
        """Go on to the next files; those to be removed stay until they are written."""
        if not self._settings.deletes:
            self._read_behind(end)
        return not self._settings.deletes

    def commit(self, end: dict[str, Any]) -> None:
        """Remember what was read, and remove it where that is wanted."""
        self._read_behind(end)
        self._remove_read()

    def _read_behind(self, end: dict[str, Any]) -> None:
        """Go on behind a batch, unless that is done: the one that is open now is another."""
        if end["batch"] != self._batch.number:
            return
        for split in self._batch.splits:
            for part in split:
                self._known()[part.name] = part.version, _WHOLE
                self._removable += (part.name, *(side for _, side in part.sides))
        self._batch.splits = []
        self._is_open = False

    def stop(self) -> None:
        """Close the store."""
        self._store.close()

    def _remove_read(self) -> None:
        """Remove what was read; what cannot be removed now is left until files are looked for."""
        while self._removable and self._settings.deletes:
            try:
                self._store.delete(self._removable[-1])
            except RetriableError as error:
                _log.warning("a file that was read could not be removed yet: %s", error)
                break
            self._removable.pop()
        self._removable.clear()

    def _key(self, name: str) -> JsonMap:
        return {"store": self._settings.place, "file": name}

    def _known(self) -> dict[str, tuple[str, int]]:
        """The position in each file."""
        if self._done is None:
            self._done = {}
            for partition, offset in self._offsets.all() if self._offsets is not None else ():
                if partition.get("store") == self._settings.place and "file" in partition:
                    place = str(offset.get("version")), int(offset.get("position", 0))
                    self._done[str(partition["file"])] = place
        return self._done

    def _found(self) -> list[FilePart]:
        """Return the files that are to be read, in the order of what they hold."""
        known, parts, read = self._known(), [], []
        names = set()
        for file in self._store.list(self._settings.prefix):
            names.add(file.name)
            version, position = known.get(file.name, ("", 0))
            is_read = version == file.version and position == _WHOLE
            if is_read and not self._settings.deletes:
                continue
            if not self._is_wanted(file):
                continue
            part = self._part(file, position if version == file.version else 0)
            if part is not None and is_read:
                read.append(part)
            elif part is not None:
                parts.append(part)
                self._sizes[part.name] = file.size_bytes
        if self._settings.keys is not None or self._settings.headers is not None:
            parts = [self._with_sides(part, names) for part in parts]
            read = [self._with_sides(part, names) for part in read]
        for part in read:
            self._removable += (part.name, *(side for _, side in part.sides))
        self._remove_read()
        return sorted(parts, key=lambda one: (one.topic, one.partition or 0, one.offset, one.name))

    def _is_wanted(self, file: StoredFile) -> bool:
        settings, now_ms = self._settings, time.time_ns() // 1_000_000
        if file.modified_ms < settings.since_ms or not file.size_bytes:
            return False
        if settings.settle_ms and now_ms - file.modified_ms < settings.settle_ms:
            return False
        return not settings.glob or _matches(file.name, settings.glob)

    def _part(self, file: StoredFile, position: int) -> FilePart | None:
        settings = self._settings
        if settings.routes:
            for pattern, topic in settings.routes:
                if pattern.search(file.name) and self._is_ours(file.name):
                    return FilePart(file.name, file.version, position, topic, None)
            return None
        base = file.name.rpartition("/")[2]
        pieces = base.rsplit(settings.file_delimiter, 2)
        number, _, extension = pieces[-1].partition(".")
        if len(pieces) != 3 or not pieces[1].isdigit() or not number.isdigit():
            return None
        if f".{extension}".startswith(_SIDES):
            return None
        topic, partition = pieces[0], int(pieces[1])
        if not self._is_ours(f"{topic}-{partition}"):
            return None
        return FilePart(file.name, file.version, position, topic, partition, int(number))

    def _is_ours(self, text: str) -> bool:
        return zlib.crc32(text.encode()) % self._settings.tasks == self._settings.task

    def _with_sides(self, part: FilePart, names: set[str]) -> FilePart:
        folder, _, base = part.name.rpartition("/")
        stem = base.partition(".")[0] if part.partition is None else ""
        if part.partition is not None:
            topic, partition, rest = base.rsplit(self._settings.file_delimiter, 2)
            number = rest.partition(".")[0]
            stem = self._settings.file_delimiter.join((topic, partition, number))
        start = f"{folder}/{stem}" if folder else stem
        sides = []
        for kind, format_ in (("keys", self._settings.keys), ("headers", self._settings.headers)):
            if format_ is not None:
                name = f"{start}.{kind}{format_.extension}"
                sides += [(kind, one) for one in (name, f"{name}.gz") if one in names]
        return replace(part, sides=tuple(sides))

    def _taken(self) -> list[list[FilePart]]:
        """Return files of at most BATCH_BYTES, or one."""
        size = 0
        taken: list[FilePart] = []
        for part in self._waiting:
            size += self._sizes.pop(part.name, 0)
            if taken and size > BATCH_BYTES:
                break
            taken.append(part)
        self._waiting = self._waiting[len(taken) :]
        splits: dict[tuple[str, object], list[FilePart]] = {}
        for part in taken:
            key = part.name if part.partition is None else part.partition
            splits.setdefault((part.topic, key), []).append(part)
        return list(splits.values())

    def _records(self, part: FilePart) -> Iterator[SourceRecord]:
        settings, partition = self._settings, self._key(part.name)
        sides = dict(part.sides)
        values = self._values(settings.values, part.name, part.version)
        keys = self._side(settings.keys, sides.get("keys"), "key")
        headers = self._side(settings.headers, sides.get("headers"), "headers")
        for number, (value, key, header) in enumerate(
            zip_longest(values, keys, headers, fillvalue=_END)
        ):
            if value is _END:
                raise DataError("there are more keys or headers than values")
            if number < part.position:
                continue
            schema, content = cast(tuple[Schema | None, Any], value)
            record = SourceRecord(
                topic=part.topic,
                partition=part.partition,
                value_schema=schema,
                value=content,
                source_partition=partition,
                source_offset={"version": part.version, "position": number + 1},
            )
            if key is not _END:
                record.key_schema, record.key = cast(tuple[Schema | None, Any], key)
            if header is not _END:
                record.headers = _headers(cast(tuple[Any, Any], header)[1])
            yield record

    def _side(
        self, format_: FileFormat | None, name: str | None, wrapped: str
    ) -> Iterator[tuple[Schema | None, Any]]:
        if format_ is None or name is None:
            return
        is_wrapped = format_.wraps_keys if wrapped == "key" else format_.wraps_headers
        for schema, value in self._values(format_, name):
            if not is_wrapped:
                yield schema, value
            elif isinstance(value, Struct):
                inner = value.schema.field(wrapped)
                yield (inner.schema if inner else None), value.get(wrapped)
            else:
                yield None, value[wrapped]

    def _values(
        self, format_: FileFormat, name: str, version: str | None = None
    ) -> Iterator[tuple[Schema | None, Any]]:
        with self._store.open(name, version) as file:
            if not (format_.is_compressible and name.endswith(".gz")):
                yield from format_.read(file)
                return
            try:
                with gzip.open(file) as unpacked:
                    yield from format_.read(cast(BinaryIO, unpacked))
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DataError(f"it is not gzip, or is damaged: {error}") from error


def source_settings(
    values: Mapping[str, Any], place: str, poll_ms: int, task: Mapping[str, str], **more: Any
) -> SourceSettings:
    """Take the settings of a task. Raises ConfigError."""
    prefix = str(values["topics.dir"]).strip("/")
    keys, headers = values["store.kafka.keys"], values["store.kafka.headers"]
    return SourceSettings(
        place=place,
        prefix=f"{prefix}/" if prefix else "",
        values=make_format(values["format.class"], values),
        poll_ms=poll_ms,
        routes=routes_of(values),
        keys=make_format(values["keys.format.class"], values) if keys else None,
        headers=make_format(values["headers.format.class"], values) if headers else None,
        file_delimiter=str(values["file.delim"]),
        since_ms=int(values["file.discovery.starting.timestamp"]),
        skips_damaged=str(values["behavior.on.error"]).lower() != "fail",
        logs_damaged=str(values["behavior.on.error"]).lower() == "log",
        task=int(task.get(TASK, "0")),
        tasks=int(task.get(TASKS, "1")),
        **more,
    )


def split_tasks(tasks_max: int) -> list[dict[str, str]]:
    """Return the settings of tasks that share the files."""
    return [{TASK: str(number), TASKS: str(tasks_max)} for number in range(tasks_max)]


def _matches(name: str, glob: str) -> bool:
    """Patterns without a directory are for the name alone."""
    return fnmatchcase(name if "/" in glob else name.rpartition("/")[2], glob)


def _headers(items: Any) -> list[Header]:
    """Structs and maps both have `get`."""
    return [Header(one.get("key"), OPTIONAL_STRING, one.get("value")) for one in items or ()]
