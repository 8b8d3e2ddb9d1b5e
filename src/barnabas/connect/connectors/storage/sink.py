"""The sink of files: exactly once, as far as where files end is in the records themselves.

The consumer group's offset of a partition is where its open files begin, and is committed once
those before it are whole. After a failure, the same records are read from there and cut at the same
places: the same names are written again, with the same records. Where the clock ends files
(`rotate.schedule.interval.ms`), a file that is there already says where (`claims`); in a store that
keeps no claims it is written again with those records and more. Every file is either rewritten or
found to be equal to what would be written.
Only the Wallclock extractor puts a record into another directory when it is read again after a
restart, and so may leave it in two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.connect.connectors.base import SinkRange, SinkWriter, TopicPartition
from barnabas.connect.connectors.storage.cutting import CutRules, Cutter, FileRange, Pace, Progress
from barnabas.connect.connectors.storage.file_set import (
    DirectoryFiles,
    FileNames,
    FileParts,
    OpenFile,
)
from barnabas.connect.connectors.storage.formats.base import FileFormat
from barnabas.connect.connectors.storage.partitioners import Partitioner, make_partitioner
from barnabas.connect.connectors.storage.store import Claim, FileStore, TakenError, of_file
from barnabas.connect.connectors.storage.time_path import zone_of
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConnectError, DataError
from barnabas.schemas.data.schema import Schema


@dataclass(slots=True, frozen=True)
class FileSettings:
    """A file sink's behaviour, from its parsed settings. Picklable."""

    rules: CutRules
    partitioner: Partitioner
    parts: FileParts
    names: FileNames
    pace: Pace
    null_values: str
    reports_null_values: bool
    claimed_by: str | None = None
    """The text that stands for the rules in files' claims; None if absent."""

    @staticmethod
    def of(
        values: Mapping[str, Any], gzip_level: int | None = None, claimed_by: str | None = None
    ) -> FileSettings:
        """Take them. Raises ConfigError."""
        rules, partitioner = CutRules.of(values), make_partitioner(values)
        schedule_ms = int(values["rotate.schedule.interval.ms"])
        pace = Pace(
            rules.flush_size,
            has_timed_files=rules.rotate_interval_ms > 0 and partitioner.is_timed,
            schedule_ms=schedule_ms,
            zone=zone_of(str(values["timezone"] or "UTC")) if schedule_ms > 0 else None,
        )
        return FileSettings(
            rules,
            partitioner,
            FileParts.of(values, gzip_level),
            FileNames.of(values),
            pace,
            str(values["behavior.on.null.values"]).lower(),
            bool(values["report.null.values.to.dlq"]),
            claimed_by if schedule_ms > 0 else None,
        )


@dataclass(slots=True)
class WrittenRange:
    """The result of a range: records below `done` are in files, `records_open` behind are not.

    `taken` is the claim of a file from there that ends elsewhere than was wanted.
    """

    topic: str
    partition: int
    done: int
    tried: int
    records_open: int
    cost_ms: int
    files: list[str] = field(default_factory=list)
    taken: Claim | None = None


class FileSinkWriter(SinkWriter):
    """Writes a task's records to files of a store."""

    report: Callable[[SinkRecord, Exception], None] | None = None

    def __init__(self, store: FileStore, settings: FileSettings) -> None:
        self._store = store
        self._settings = settings
        self._progress: dict[TopicPartition, Progress] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_store": self._store, "_settings": self._settings, "_progress": {}}

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """Check that there is a store before anything is read."""
        self._store.check()

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Forget them: another goes on from the group's offsets."""
        for partition in partitions:
            self._progress.pop(partition, None)

    def plan(self, ranges: Sequence[SinkRange], now_ms: int) -> Sequence[SinkRange]:
        """Take from where open files begin, where reading is worth it."""
        for one in ranges:
            place = one.topic, one.partition
            progress = self._progress.get(place)
            if progress is None or progress.done > one.end:
                self._progress[place] = Progress(self._settings.pace, one.start, one.end, now_ms)
            else:
                progress.see(one.end, now_ms)
        planned = [
            progress.plan(*place, now_ms) for place, progress in sorted(self._progress.items())
        ]
        return [one for one in planned if one is not None]

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> WrittenRange:
        """Cut a range into files. Raises RetriableError, ConnectError."""
        if not isinstance(where, FileRange):
            where = FileRange(where.topic, where.partition, where.start, where.end, is_last=True)
        if not where.arrivals:
            where.arrivals = [(where.end, time.time_ns() // 1_000_000)]
        return _RangeCut(self, self._store, self._settings, where).run(records)

    def commit(
        self, ranges: Sequence[SinkRange], messages: Sequence[WrittenRange]
    ) -> Mapping[TopicPartition, int]:
        """Return where open files begin now."""
        offsets = {}
        for message in messages:
            place = message.topic, message.partition
            progress = self._progress.get(place)
            if progress is not None:
                progress.finished(
                    message.done, message.tried, message.records_open, message.cost_ms
                )
                if message.taken is not None:
                    progress.ended_elsewhere(message.taken.limit)
            offsets[place] = message.done
        return offsets

    def abort(self, ranges: Sequence[SinkRange], messages: Sequence[Any]) -> None:
        """Plan them again."""
        for one in ranges:
            progress = self._progress.get((one.topic, one.partition))
            if progress is not None:
                progress.failed(one)

    def stop(self) -> None:
        """Close the store."""
        self._store.close()


class _RangeCut:
    """One range on its way into files."""

    def __init__(
        self, writer: FileSinkWriter, store: FileStore, settings: FileSettings, where: FileRange
    ) -> None:
        self._writer = writer
        self._store = store
        self._settings = settings
        self._where = where
        self._cutter = Cutter(settings.rules, settings.partitioner)
        self._open: dict[str, DirectoryFiles] = {}
        self._files: list[str] = []
        self._done = where.start
        self._behind = where.start

    def run(self, records: Iterator[SinkRecord]) -> WrittenRange:
        where, began, taken = self._where, time.monotonic(), None
        try:
            for record in records:
                self._take(record)
            if where.is_last and self._cutter.records:
                self._complete(by_clock=True)
                self._cutter.cut()
        except TakenError as error:
            taken = error.claim
            if taken.limit is not None and taken.limit <= self._done:
                raise  # not even its first record is before that
            for _ in records:
                pass  # the engine holds what is left unread for an error; it is read again
        finally:
            for files in self._open.values():
                files.abort()
        records_open = self._cutter.records
        if not records_open and taken is None:
            self._done = where.end
        cost_ms = int((time.monotonic() - began) * 1000)
        return WrittenRange(
            *(where.topic, where.partition, self._done, where.end),
            *(records_open, cost_ms, self._files, taken),
        )

    def _take(self, record: SinkRecord) -> None:
        settings = self._settings
        if record.value is None and self._is_skipped(record):
            return
        try:
            placed = self._cutter.place(record, self._where.seen_ms(record.original_offset))
        except DataError as error:
            self._report(record, error)
            return
        if placed.cuts_before:
            self._complete()
        files = self._open.get(placed.directory)
        if files is None:
            files = self._open[placed.directory] = self._begin(record, placed.directory)
        try:
            files.write(settings.parts, record, placed)
        except DataError as error:
            if files.is_empty:
                del self._open[placed.directory]
            self._cutter.refused(placed.directory)
            self._report(record, error)
            return
        self._behind = record.original_offset + 1
        if self._cutter.written(placed.directory):
            self._complete()
            self._cutter.cut()

    def _is_skipped(self, record: SinkRecord) -> bool:
        behaviour = self._settings.null_values
        if behaviour == "write":
            return False
        if behaviour == "fail":
            raise ConnectError(
                "Null valued records are not writeable with current behavior.on.null.values "
                f"'fail' (topic {record.original_topic}, partition {record.original_partition}, "
                f"offset {record.original_offset})"
            )
        if self._settings.reports_null_values and self._writer.report is not None:
            self._writer.report(record, DataError("Skipping null value record."))
        return True

    def _begin(self, record: SinkRecord, directory: str) -> DirectoryFiles:
        parts, where = self._settings.parts, self._where
        stem = self._settings.names.stem(
            where.topic, where.partition, directory, record.original_offset
        )

        claim = self._claim(record)

        def make(ending: str, format_: FileFormat, schema: Schema | None) -> OpenFile:
            name = f"{stem}{ending}{parts.extension(format_)}"
            return OpenFile(self._store, name, format_, schema, parts.gzip_level, claim)

        return DirectoryFiles(make)

    def _claim(self, first: SinkRecord) -> Claim | None:
        by, where = self._settings.claimed_by, self._where
        if by is None:
            return None
        return Claim(of_file(by, first.timestamp_ms), where.end if where.is_last else None)

    def _complete(self, *, by_clock: bool = False) -> None:
        """End all files. Raises TakenError."""
        while self._open:
            directory = next(iter(self._open))
            files = self._open[directory].complete(self._behind, by_clock=by_clock)
            self._files += files
            del self._open[directory]
        self._done = self._behind

    def _report(self, record: SinkRecord, error: DataError) -> None:
        """Without dead letters the task ends, and nothing of the range is committed."""
        if self._writer.report is None:
            raise ConnectError(
                f"cannot write the record at offset {record.original_offset} of "
                f"{record.original_topic}-{record.original_partition}: {error}"
            ) from error
        self._writer.report(record, error)
