"""`barnabas consume`: records as text."""

import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.records.positions import (
    HELP,
    Kind,
    Position,
    PositionType,
    resolve,
    topic_partitions,
)
from barnabas.cli.records.reading import (
    AwaitedTopics,
    existing_topics,
    read_in_group,
    read_partitions,
)
from barnabas.cli.records.records import TEMPLATE_FIELDS, Template, headers_of, to_json
from barnabas.cli.registry.client import Registry
from barnabas.cli.serdes.options import FORMATS, schema_registry_options

if TYPE_CHECKING:
    from confluent_kafka import Message

    from barnabas.cli.serdes.decoding import Decoder

EPILOG = f"""\b
Examples:
  barnabas consume orders
  barnabas consume orders --from -10 --follow --keys
  barnabas consume orders --from 2026-01-31T12:00 --to 2026-01-31T13:00 --json
  barnabas consume orders -n 5 -t '{{partition}}:{{offset}} {{key}} {{value}}'
  barnabas consume orders clicks --group reports --follow
  barnabas consume orders --value-format registry \\
    --schema-registry-url http://localhost:8081

\b
Fields of a template: {TEMPLATE_FIELDS.removesuffix(", headers")},
headers, and headers[name] for one header.
"""


@click.command(epilog=EPILOG)
@click.argument("topics", nargs=-1, required=True)
@click.option(
    "--partition",
    "-p",
    "chosen",
    multiple=True,
    type=int,
    help="Only this partition; may be repeated.",
)
@click.option("--from", "-o", "start", type=PositionType(), help=f"Where to start: {HELP}.")
@click.option("--to", "-e", "end", type=PositionType(), help="Stop before this position.")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option("--follow", "-f", is_flag=True, help="Wait for more records; Ctrl-C ends it.")
@click.option("--group", "-g", help="Read as a member of this group, and commit offsets.")
@click.option(
    "--format",
    "-F",
    "form",
    type=click.Choice(["raw", "json"]),
    default="raw",
    show_default=True,
    help="Values as they are, or a JSON object per line.",
)
@click.option("--template", "-t", help="A line per record with {fields} in it.")
@click.option("--keys", is_flag=True, help="With raw: key and a tab before the value.")
@click.option(
    "--key-separator", "-K", metavar="TEXT", help="With raw: key and this text before the value."
)
@click.option("--headers", "-H", is_flag=True, help="With raw: headers and a tab before the value.")
@click.option(
    "--isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="read_committed leaves out records of open and aborted transactions.",
)
@click.option(
    "--value-format",
    type=click.Choice(list(FORMATS)),
    help="Show values as JSON, with the schemas that they name; registry shows all types.",
)
@click.option("--key-format", type=click.Choice(list(FORMATS)), help="The same for keys.")
@schema_registry_options
@connection_options
def command(
    connection: Connection,
    topics: tuple[str, ...],
    chosen: tuple[int, ...],
    start: Position | None,
    end: Position | None,
    count: int | None,
    follow: bool,
    group: str | None,
    form: str,
    template: str | None,
    keys: bool,
    key_separator: str | None,
    headers: bool,
    isolation: str,
    value_format: str | None,
    key_format: str | None,
    registry: Registry,
    as_json: bool,
) -> None:
    """Print the records of TOPICS, from the earliest to the latest.

    With --follow it starts at the end, unless --from says otherwise, and waits for more. It also
    waits for topics that do not exist yet, and prints all their records. With --json or -F json,
    each line is an object that `barnabas produce -F json` reads back.
    """
    if keys and key_separator is None:
        key_separator = "\t"
    render = _renderer("json" if as_json else form, template, key_separator, headers=headers)
    if group == "":
        raise CliError("--group: the name is empty", ExitCode.USAGE)
    decoders = _decoders(registry, key_format, value_format)
    if group is not None:
        messages = _group_messages(
            connection, topics, group, start, end, chosen, isolation, follow, count
        )
    else:
        messages = _messages(connection, topics, chosen, start, end, isolation, follow, count)
    out = sys.stdout.buffer
    waits = follow or sys.stdout.isatty()
    try:
        for message in messages:
            for decoder in decoders:
                decoder.decode(message)
            out.write(render(message))
            out.write(b"\n")
            if waits:
                out.flush()
    except KeyboardInterrupt:
        if not follow:
            raise
    finally:
        messages.close()


def _decoders(
    registry: Registry, key_format: str | None, value_format: str | None
) -> "list[Decoder]":
    if key_format is None and value_format is None:
        return []
    from barnabas.cli.serdes.decoding import Decoder

    return [
        Decoder(registry, form, is_key=is_key)
        for form, is_key in ((key_format, True), (value_format, False))
        if form is not None
    ]


def _messages(
    connection: Connection,
    topics: tuple[str, ...],
    chosen: tuple[int, ...],
    start: Position | None,
    end: Position | None,
    isolation: str,
    follow: bool,
    count: int | None,
) -> "Generator[Message, None, None]":
    if follow and end is not None:
        raise CliError("--follow has no end: leave out --to", ExitCode.USAGE)
    begin = start or Position(Kind.LATEST if follow else Kind.EARLIEST)
    if follow:
        # The end of a topic that does not exist yet is where it begins.
        later = start or Position(Kind.EARLIEST)
        found, missing = existing_topics(connection, topics, chosen)
        awaited = AwaitedTopics(connection, missing, chosen, later)
        starts = resolve(connection, begin, found)
        return read_partitions(connection, starts, None, isolation, count, awaited)
    partitions = [item for topic in topics for item in topic_partitions(connection, topic, chosen)]
    starts = resolve(connection, begin, partitions)
    ends = resolve(connection, end or Position(Kind.LATEST), partitions)
    return read_partitions(connection, starts, ends, isolation, count)


def _group_messages(
    connection: Connection,
    topics: tuple[str, ...],
    group: str,
    start: Position | None,
    end: Position | None,
    chosen: tuple[int, ...],
    isolation: str,
    follow: bool,
    count: int | None,
) -> "Generator[Message, None, None]":
    if end is not None or chosen:
        raise CliError(
            "the group decides on partitions and offsets: leave out --to and --partition",
            ExitCode.USAGE,
        )
    if start is not None and start.kind not in (Kind.EARLIEST, Kind.LATEST):
        raise CliError(
            "with --group, --from is earliest or latest, for partitions without an offset",
            ExitCode.USAGE,
            "barnabas group reset-offsets moves a group's offsets",
        )
    missing: list[str] = []
    if follow:
        _, missing = existing_topics(connection, topics)
    else:
        for topic in topics:
            topic_partitions(connection, topic)
    reset = (start or Position(Kind.EARLIEST)).kind.value
    return read_in_group(
        connection,
        list(topics),
        group,
        reset,
        isolation,
        count,
        follow=follow,
        awaits_topics=bool(missing),
    )


def _renderer(
    form: str, template: str | None, key_separator: str | None, *, headers: bool
) -> "Callable[[Message], bytes]":
    if template is not None:
        filled = Template(template)
        return lambda message: filled.render(message).encode()
    if form == "json":
        return lambda message: to_json(message).encode()

    separator = None if key_separator is None else key_separator.encode()

    def raw(message: "Message") -> bytes:
        line = message.value() or b""
        if headers:
            shown = [name.encode() + b"=" + (value or b"") for name, value in headers_of(message)]
            line = b",".join(shown) + b"\t" + line
        if separator is not None:
            line = (message.key() or b"") + separator + line
        return line

    return raw
