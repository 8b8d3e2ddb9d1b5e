"""`barnabas produce`: records from the command line, standard input or files."""

import sys
from collections.abc import Iterator
from typing import BinaryIO

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, json_option
from barnabas.cli.records import NewRecord, from_json
from barnabas.cli.sender import Sender
from barnabas.cli.short_input import are_short, read_ahead

EPILOG = """\b
Examples:
  echo hello | barnabas produce greetings
  barnabas produce orders -k order-7 -v '{"total": 12}' -H source=shop
  barnabas produce users --key-separator : < users.txt
  barnabas consume orders -F json | barnabas produce copy -F json --repartition
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
    default=0,
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
    help="Who must have a record: nobody, the leader, or all in-sync replicas.",
)
@json_option
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
    timestamp: int,
    form: str,
    repartition: bool,
    tombstones: bool,
    compression: str,
    acks: str,
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
        record.timestamp_ms = record.timestamp_ms or timestamp
        if tombstones and record.value == b"":
            record.value = None
        return record

    connection.probe()
    separator = key_separator.encode() if key_separator else None
    if values:
        is_short = True
        source: Iterator[NewRecord] = (NewRecord(value.encode()) for value in values)
    elif files:
        is_short = are_short(files)
        source = _read_files(files, form, separator)
    else:
        if sys.stdin is None:
            raise CliError("standard input is closed", ExitCode.USAGE)
        given, is_short = read_ahead(sys.stdin.buffer)
        source = _read(given, "standard input", form, separator)
    sender = Sender(connection, topic, acks, compression, is_short=is_short)
    for record in source:
        sender.send(complete(record))
    sender.finish()
    summary = {"topic": topic, "records": sender.acknowledged, "partitions": sender.spans}
    Output(as_json).result(summary, sender.summary)


def _header(pair: str) -> tuple[str, str | bytes | None]:
    name, equals, value = pair.partition("=")
    if not name:
        raise CliError(f"--header {pair}: must be NAME=VALUE", ExitCode.USAGE)
    return name, value.encode() if equals else None


def _read_files(files: tuple[str, ...], form: str, separator: bytes | None) -> Iterator[NewRecord]:
    for path in files:
        with open(path, "rb") as file:
            yield from _read(file, path, form, separator)


def _read(file: BinaryIO, name: str, form: str, separator: bytes | None) -> Iterator[NewRecord]:
    if form == "raw":
        yield NewRecord(file.read())
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
