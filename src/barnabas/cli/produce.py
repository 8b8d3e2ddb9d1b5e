"""`barnabas produce`: records from the command line, standard input or files."""

import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode, from_kafka
from barnabas.cli.output import Output, json_option
from barnabas.cli.records import Headers, NewRecord, from_json

FULL_QUEUE_WAIT_S = 0.1
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
@click.option("--key-separator", "-K", metavar="TEXT", help="What ends the key within a line.")
@click.option(
    "--header", "-H", "header_pairs", multiple=True, metavar="NAME=VALUE", help="For every record."
)
@click.option("--partition", "-p", default=-1, help="Send there; otherwise the key decides.")
@click.option(
    "--timestamp", default=0, metavar="MS", help="Milliseconds since 1970 of every record."
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
@click.option("--repartition", is_flag=True, help="Leave out the partitions that JSON names.")
@click.option("--tombstones", is_flag=True, help="An empty value is sent as null.")
@click.option(
    "--compression",
    "-z",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Codec of the batches.",
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Who must have it.",
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
    """Send records to TOPIC: --value, the lines of FILES, or those of standard input."""
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
    sender = Sender(connection, topic, acks, compression)
    if values:
        source: Iterator[NewRecord] = (NewRecord(value.encode()) for value in values)
    else:
        separator = key_separator.encode() if key_separator else None
        source = _read_all(files, form, separator)
    for record in source:
        sender.send(complete(record))
    sender.finish()
    summary = {"topic": topic, "records": sender.acknowledged, "partitions": sender.spans}
    Output(as_json).result(summary, _summary_text(topic, sender.acknowledged))


def _summary_text(topic: str, count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'} sent to {topic}"


def _header(pair: str) -> tuple[str, str | bytes | None]:
    name, equals, value = pair.partition("=")
    if not name:
        raise CliError(f"--header {pair}: must be NAME=VALUE", ExitCode.USAGE)
    return name, value.encode() if equals else None


def _read_all(files: tuple[str, ...], form: str, separator: bytes | None) -> Iterator[NewRecord]:
    if not files:
        yield from _read(sys.stdin.buffer, "standard input", form, separator)
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


class Sender:
    """Sends to one topic and remembers what came of it."""

    def __init__(self, connection: Connection, topic: str, acks: str, compression: str) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        self._timeout_s = connection.timeout_s
        self._failure: Any = None
        self.acknowledged = 0
        self.spans: dict[int, list[int]] = {}
        """First and last offset by partition."""
        config = {
            "acks": acks,
            "compression.type": compression,
            "enable.idempotence": acks == "all",
            "message.timeout.ms": int(connection.timeout_s * 1000),
            "linger.ms": 5,
        }
        settings = connection.client_config(**{**config, **connection.config})
        self._producer = Producer({k: v for k, v in settings.items() if v is not None})

    def send(self, record: NewRecord) -> None:
        from confluent_kafka import KafkaException

        more: dict[str, Any] = {"timestamp": record.timestamp_ms} if record.timestamp_ms else {}
        if record.partition >= 0:
            more["partition"] = record.partition
        headers: Headers | None = record.headers or None
        while True:
            self._stop_at_failure()
            try:
                self._producer.produce(
                    self._topic, record.value, record.key, headers=headers,
                    on_delivery=self._delivered, **more,
                )  # fmt: skip
            except BufferError:
                self._producer.poll(FULL_QUEUE_WAIT_S)
                continue
            except KafkaException as error:
                raise from_kafka(error, self._topic) from error
            self._producer.poll(0)
            return

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = self._failure or error
            return
        self.acknowledged += 1
        offset = message.offset()
        if offset is None or offset < 0:
            return  # with acks=0 no broker tells
        span = self.spans.setdefault(message.partition(), [offset, offset])
        span[1] = max(span[1], offset)

    def finish(self) -> None:
        """Wait for all acknowledgements. Raises CliError for the first record refused."""
        left = self._producer.flush(self._timeout_s + 5)
        self._stop_at_failure()
        if left:
            raise CliError(f"{self._topic}: {left} records not acknowledged", ExitCode.UNREACHABLE)

    def _stop_at_failure(self) -> None:
        if self._failure is not None:
            known = from_kafka(self._failure, self._topic)
            known.hint = f"{_summary_text(self._topic, self.acknowledged)} before"
            raise known
