"""`barnabas topic`: topics and their partitions."""

import re
from typing import Any

import click

from barnabas.base.config.properties import from_flags
from barnabas.cli.config import alter as alter_config
from barnabas.cli.config import overrides
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row
from barnabas.cli.prompts import confirm
from barnabas.cli.records.positions import (
    HELP,
    Kind,
    Position,
    PositionType,
    list_offsets,
    resolve,
    topic_partitions,
)
from barnabas.cli.topic.replicas import elect_leaders_command, reassign_command


@click.group()
def command() -> None:
    """List, create, describe, alter, delete and move topics."""


@command.command(
    "list",
    epilog="\b\nExamples:\n  barnabas topic list\n  barnabas topic list --match '^order' --json\n",
)
@click.option("--internal", is_flag=True, help="Show internal topics too.")
@click.option("--match", metavar="REGEX", help="Only topics with a match in their name.")
@connection_options
def list_command(connection: Connection, internal: bool, match: str | None, as_json: bool) -> None:
    """List topics."""
    try:
        pattern = re.compile(match or "")
    except re.error as error:
        raise CliError(f"--match: {error}", ExitCode.USAGE) from error
    rows = []
    for name, topic in sorted(connection.metadata().topics.items()):
        is_internal = name.startswith("__")
        if (is_internal and not internal) or not pattern.search(name):
            continue
        replicas = max((len(part.replicas) for part in topic.partitions.values()), default=0)
        rows.append({"name": name, "partitions": len(topic.partitions), "replicas": replicas})
    Output(as_json).rows(rows, ("name", "partitions", "replicas"), "There are no topics.")


@command.command(
    "create",
    epilog="\b\nExamples:\n  barnabas topic create orders --partitions 6\n"
    "  barnabas topic create users -c cleanup.policy=compact --if-not-exists\n",
)
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--partitions", "-p", default=-1, help="Number of partitions; by default the broker's."
)
@click.option(
    "--replicas",
    "--replication-factor",
    "-r",
    default=-1,
    help="Replicas per partition; by default the broker's.",
)
@click.option(
    "--config", "-c", "pairs", multiple=True, metavar="KEY=VALUE", help="A topic property."
)
@click.option("--if-not-exists", is_flag=True, help="Leave an existing topic alone.")
@click.option("--validate-only", is_flag=True, help="Only check whether it could be done.")
@connection_options
def create_command(
    connection: Connection,
    names: tuple[str, ...],
    partitions: int,
    replicas: int,
    pairs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Create topics."""
    from confluent_kafka.cimpl import NewTopic

    config = from_flags(pairs)
    new = [
        NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=config)
        for name in names
    ]
    futures = connection.admin.create_topics(
        new, operation_timeout=connection.timeout_s, validate_only=validate_only
    )
    rows: list[Row] = []
    for name in names:
        try:
            connection.wait(futures[name], name)
            rows.append({"name": name, "created": not validate_only})
        except CliError as error:
            if not (if_not_exists and "[TOPIC_ALREADY_EXISTS]" in error.message):
                raise
            rows.append({"name": name, "created": False})
    words = {True: "created", False: "could be created" if validate_only else "exists already"}
    text = "\n".join(f"{row['name']}: {words[row['created']]}" for row in rows)
    Output(as_json).result(rows, text)


@command.command("describe", epilog="\b\nExample:\n  barnabas topic describe orders\n")
@click.argument("names", nargs=-1, required=True)
@connection_options
def describe_command(connection: Connection, names: tuple[str, ...], as_json: bool) -> None:
    """Show partitions, offsets and overrides."""
    described = [_describe(connection, name) for name in names]
    output = Output(as_json)
    if as_json:
        output.result(described, "")
        return
    for index, topic in enumerate(described):
        click.echo(("\n" if index else "") + f"{topic['name']}  id {topic['id']}")
        for key, value in topic["config"].items():
            click.echo(f"  {key}={value}")
        columns = ("partition", "leader", "replicas", "isr", "start", "end", "records")
        output.rows(topic["partitions"], columns)


def _describe(connection: Connection, name: str) -> dict[str, Any]:
    from confluent_kafka import TopicCollection

    futures = connection.admin.describe_topics(
        TopicCollection([name]), request_timeout=connection.timeout_s
    )
    description = connection.wait(futures[name], name)
    partitions = topic_partitions(connection, name)
    led = [part.id for part in description.partitions if part.leader is not None]
    readable = [item for item in partitions if item.partition in led]
    starts = list_offsets(connection, readable, Position(Kind.EARLIEST))
    ends = list_offsets(connection, readable, Position(Kind.LATEST))
    rows = []
    for part in sorted(description.partitions, key=lambda part: part.id):
        start, end = starts.get((name, part.id)), ends.get((name, part.id))
        rows.append(
            {
                "partition": part.id,
                "leader": part.leader.id if part.leader is not None else None,
                "replicas": [node.id for node in part.replicas],
                "isr": [node.id for node in part.isr],
                "start": start,
                "end": end,
                "records": None if start is None or end is None else end - start,
            }
        )
    return {
        "name": name,
        "id": _uuid_text(str(description.topic_id)),
        "internal": description.is_internal,
        "config": overrides(connection, "topic", name),
        "partitions": rows,
    }


def _uuid_text(text: str) -> str:
    """Kafka's form of an id; the client library prints plain base64."""
    return text.replace("+", "-").replace("/", "_")


@command.command(
    "alter",
    epilog="\b\nExamples:\n  barnabas topic alter orders --partitions 12\n"
    "  barnabas topic alter orders -c retention.ms=86400000 --unset cleanup.policy\n",
)
@click.argument("name")
@click.option("--partitions", "-p", type=int, help="The new, greater number of partitions.")
@click.option("--config", "-c", "pairs", multiple=True, metavar="KEY=VALUE", help="Set a property.")
@click.option("--unset", multiple=True, metavar="KEY", help="Reset a property to its default.")
@connection_options
def alter_command(
    connection: Connection,
    name: str,
    partitions: int | None,
    pairs: tuple[str, ...],
    unset: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add partitions, or change a topic's configuration."""
    from confluent_kafka.cimpl import NewPartitions

    if partitions is None and not pairs and not unset:
        raise CliError("nothing to alter: give --partitions, --config or --unset", ExitCode.USAGE)
    if partitions is not None:
        futures = connection.admin.create_partitions([NewPartitions(name, partitions)])
        connection.wait(futures[name], name)
    if pairs or unset:
        alter_config(connection, "topic", name, from_flags(pairs), unset)
    value = {"name": name, "partitions": partitions, "set": from_flags(pairs), "unset": unset}
    Output(as_json).result(value, f"{name}: altered")


@command.command("delete", epilog="\b\nExample:\n  barnabas topic delete orders --yes\n")
@click.argument("names", nargs=-1, required=True)
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@connection_options
def delete_command(
    connection: Connection, names: tuple[str, ...], if_exists: bool, yes: bool, as_json: bool
) -> None:
    """Delete topics and all their records."""
    output = Output(as_json)
    confirm(f"Delete {', '.join(names)} with all records?", yes)
    futures = connection.admin.delete_topics(list(names), operation_timeout=connection.timeout_s)
    rows: list[Row] = []
    for name in names:
        try:
            connection.wait(futures[name], name)
            rows.append({"name": name, "deleted": True})
        except CliError as error:
            if not (if_exists and error.code is ExitCode.NOT_FOUND):
                raise
            rows.append({"name": name, "deleted": False})
    words = {True: "deleted", False: "does not exist"}
    output.result(rows, "\n".join(f"{row['name']}: {words[row['deleted']]}" for row in rows))


@command.command("trim", epilog="\b\nExample:\n  barnabas topic trim orders --before 7d\n")
@click.argument("name")
@click.option("--before", required=True, type=PositionType(), help=f"Where to cut: {HELP}.")
@click.option("--partition", "-p", "chosen", multiple=True, type=int, help="Only this partition.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@connection_options
def trim_command(
    connection: Connection,
    name: str,
    before: Position,
    chosen: tuple[int, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the records before a position."""
    partitions = topic_partitions(connection, name, chosen)
    offsets = resolve(connection, before, partitions)
    confirm(f"Delete older records of {name}?", yes)
    for item in partitions:
        item.offset = offsets[item.topic, item.partition]
    futures = connection.admin.delete_records(partitions)
    rows = []
    for item, future in futures.items():
        done = connection.wait(future, f"{item.topic}-{item.partition}")
        rows.append({"topic": name, "partition": item.partition, "start": done.low_watermark})
    rows.sort(key=lambda row: int(row["partition"]))
    Output(as_json).rows(rows, ("topic", "partition", "start"))


command.add_command(reassign_command)
command.add_command(elect_leaders_command)
