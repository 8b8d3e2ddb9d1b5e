"""`barnabas produce`: records from the command line, standard input or files."""

import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, BinaryIO, cast

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output
from barnabas.cli.records.records import NewRecord, from_json
from barnabas.cli.records.sender import Sender
from barnabas.cli.registry.client import Registry
from barnabas.cli.serdes.options import schema_registry_options

EPILOG = """\b
Examples:
  echo hello | barnabas produce greetings
  barnabas produce orders -k order-7 -v '{"total": 12}' -H source=shop
  barnabas produce users --key-separator : < users.txt
  barnabas consume orders -F json | barnabas produce copy -F json \\
    --repartition
  barnabas produce orders -v '{"total": 12}' --value-schema order.avsc
"""


@click.command(epilog=EPILOG)
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option("--value", "-v", "values", multiple=True, help="A record's value; may be repeated.")
@click.option("--key", "-k", help="The key of every record.")
@click.option("--key-separator", "-K", metavar="TEXT", help="Text between key and value in a line.")
@click.option(
    "--header",
    "-H",
    "header_pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of every record.",
)
@click.option(
    "--partition", "-p", default=-1, help="Partition to send to; by default the key decides."
)
@click.option(
    "--timestamp",
    type=click.IntRange(0),
    metavar="MS",
    help="Timestamp of every record, in milliseconds since 1970.",
)
@click.option(
    "--format",
    "-F",
    "form",
    type=click.Choice(["lines", "json", "raw"]),
    default="lines",
    show_default=True,
    help="A record per line, a JSON object per line, or the whole input as one record.",
)
@click.option("--repartition", is_flag=True, help="Ignore the partitions that the JSON names.")
@click.option("--tombstones", is_flag=True, help="Send an empty value as null.")
@click.option(
    "--compression",
    "-z",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Compression of batches.",
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Who must acknowledge a record: nobody, the leader, or all in-sync replicas.",
)
@click.option(
    "--value-schema-id",
    type=click.IntRange(0),
    help="Values are JSON; send them with the schema that has this id.",
)
@click.option(
    "--value-schema",
    "value_schema_file",
    type=click.Path(exists=True, dir_okay=False),
    help="Values are JSON; register the schema in this file and send them with it.",
)
@click.option("--key-schema-id", type=click.IntRange(0), help="For keys: see --value-schema-id.")
@click.option(
    "--key-schema",
    "key_schema_file",
    type=click.Path(exists=True, dir_okay=False),
    help="For keys: see --value-schema.",
)
@schema_registry_options
@connection_options
def command(
    connection: Connection,
    topic: str,
    files: tuple[str, ...],
    values: tuple[str, ...],
    key: str | None,
    key_separator: str | None,
    header_pairs: tuple[str, ...],
    partition: int,
    timestamp: int | None,
    form: str,
    repartition: bool,
    tombstones: bool,
    compression: str,
    acks: str,
    value_schema_id: int | None,
    value_schema_file: str | None,
    key_schema_id: int | None,
    key_schema_file: str | None,
    registry: Registry,
    as_json: bool,
) -> None:
    """Send records to TOPIC: from --value, from the lines of FILES, or from standard input.

    The producer is idempotent, except for short input: that is sent at once, and may arrive twice
    if the connection breaks. -X enable.idempotence=true prevents this, and takes longer.
    """
    headers = [_header(pair) for pair in header_pairs]

    def complete(record: NewRecord) -> NewRecord:
        if record.key is None and key is not None:
            record.key = key.encode()
        record.headers = [*record.headers, *headers]
        if record.partition < 0 or repartition:
            record.partition = partition
        if record.timestamp_ms is None:
            record.timestamp_ms = timestamp
        if tombstones and record.value == b"":
            record.value = None
        if encode_key is not None:
            record.key = encode_key(record.key)
        if encode_value is not None:
            record.value = encode_value(record.value)
        return record

    _check_one("key", key_schema_id, key_schema_file)
    _check_one("value", value_schema_id, value_schema_file)
    connection.probe()
    encode_key = _encoder(registry, topic, key_schema_id, key_schema_file, is_key=True)
    encode_value = _encoder(registry, topic, value_schema_id, value_schema_file, is_key=False)
    separator = key_separator.encode() if key_separator else None
    bar: FileProgress | None = None
    if values:
        is_short = True
        source: Iterator[NewRecord] = (NewRecord(value.encode()) for value in values)
    elif files:
        is_short = are_short(files)
        bar = None if is_short or as_json else FileProgress(files)
        source = _read_files(files, form, separator, bar)
    else:
        if sys.stdin is None:
            raise CliError("standard input is closed", ExitCode.USAGE)
        given, is_short = read_ahead(sys.stdin.buffer)
        source = _read(given, "standard input", form, separator)
    sender = Sender(connection, topic, acks, compression, is_short=is_short)
    with bar or nullcontext():
        for record in source:
            sender.send(complete(record))
        sender.finish()
    summary = {"topic": topic, "records": sender.acknowledged, "partitions": sender.spans}
    Output(as_json).result(summary, sender.summary)


def _check_one(part: str, schema_id: int | None, file: str | None) -> None:
    if schema_id is not None and file is not None:
        raise CliError(
            f"give one of --{part}-schema-id and --{part}-schema, not both", ExitCode.USAGE
        )


def _encoder(
    registry: Registry, topic: str, schema_id: int | None, file: str | None, *, is_key: bool
) -> Callable[[bytes | None], bytes | None] | None:
    if schema_id is None and file is None:
        return None
    from barnabas.cli.serdes.encoding import Encoder

    return Encoder(registry, topic, schema_id, file, is_key=is_key).encode


def _header(pair: str) -> tuple[str, str | bytes | None]:
    name, equals, value = pair.partition("=")
    if not name:
        raise CliError(f"--header {pair}: must be NAME=VALUE", ExitCode.USAGE)
    return name, value.encode() if equals else None


def _read_files(
    files: tuple[str, ...], form: str, separator: bytes | None, bar: "FileProgress | None"
) -> Iterator[NewRecord]:
    for path in files:
        with open(path, "rb") as file:
            counted = file if bar is None else bar.counted(file, path)
            yield from _read(counted, path, form, separator)


def _read(
    file: Iterable[bytes], name: str, form: str, separator: bytes | None
) -> Iterator[NewRecord]:
    if form == "raw":
        yield NewRecord(b"".join(file))
        return
    for number, line in enumerate(file, 1):
        content = line.rstrip(b"\r\n")
        if form == "lines":
            yield _from_line(content, separator)
        elif content.strip():
            try:
                yield from_json(content.decode())
            except (ValueError, TypeError) as error:
                raise CliError(f"{name}, line {number}: {error}", ExitCode.USAGE) from error


def _from_line(line: bytes, separator: bytes | None) -> NewRecord:
    if separator is None:
        return NewRecord(line)
    key, found, value = line.partition(separator)
    return NewRecord(value, key) if found else NewRecord(line)


# The progress bar of `barnabas produce FILE`: on standard error, if that is a terminal.


STEP_SIZE_BYTES = 64 * 1024
"""Bytes between two updates of the bar."""


class FileProgress:
    """The bar, in a `with` block; without a terminal it shows nothing."""

    def __init__(self, files: Sequence[str]) -> None:
        self._total_bytes = sum(os.stat(path).st_size for path in files)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "FileProgress":
        if not sys.stderr.isatty():
            return self
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        # It goes away at the end: the summary says how many records were sent.
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("sending", total=self._total_bytes or None)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def counted(self, file: Iterable[bytes], path: str) -> Iterator[bytes]:
        """The lines of `file`, which the bar follows."""
        if self._bar is None:
            yield from file
            return
        self._bar.update(self._task, description=os.path.basename(path))
        pending = 0
        for line in file:
            pending += len(line)
            if pending >= STEP_SIZE_BYTES:
                self._bar.advance(self._task, pending)
                pending = 0
            yield line
        self._bar.advance(self._task, pending)


# Short input: what has come to its end by the time a command would begin to send it.
#
# The start of an idempotent producer takes half a second, and is worth it for input that lasts.
# So a command reads ahead, a little and without waiting for more, and looks whether that was all.


SHORT_SIZE_BYTES_MAX = 256 * 1024
READ_AHEAD_WAIT_S = 0.02
"""For the end of a pipe whose writer is as quick as `echo`."""


def are_short(paths: Sequence[str]) -> bool:
    """Return whether these are files, together of at most SHORT_SIZE_BYTES_MAX. Raises OSError."""
    stats = [os.stat(path) for path in paths]
    total_bytes = sum(stat_result.st_size for stat_result in stats)
    return all(stat.S_ISREG(stat_result.st_mode) for stat_result in stats) and (
        total_bytes <= SHORT_SIZE_BYTES_MAX
    )


def read_ahead(file: BinaryIO) -> tuple[BinaryIO, bool]:
    """The input from its beginning, and whether it is short. `file` is not to be read after."""
    try:
        fd = file.fileno()
    except (OSError, ValueError):  # not a file of the system's
        return file, False
    head = bytearray()
    while len(head) <= SHORT_SIZE_BYTES_MAX:
        if not select.select([fd], [], [], READ_AHEAD_WAIT_S)[0]:
            break
        chunk = os.read(fd, SHORT_SIZE_BYTES_MAX + 1 - len(head))
        if not chunk:
            return io.BytesIO(head), True
        head += chunk
    return cast("BinaryIO", io.BufferedReader(_Continued(bytes(head), fd))), False


class _Continued(io.RawIOBase):
    """Bytes read already, then what comes after them."""

    def __init__(self, head: bytes, fd: int) -> None:
        self._head = memoryview(head)
        self._fd = fd

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        target = memoryview(cast("bytearray", buffer))
        chunk = self._head[: len(target)] or os.read(self._fd, len(target))
        self._head = self._head[len(chunk) :]
        target[: len(chunk)] = chunk
        return len(chunk)
