"""`barnabas group`: consumer groups and their offsets."""

from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.group.calls import commit_offsets, committed_offsets
from barnabas.cli.group.options import (
    all_partitions,
    check_choice,
    chosen_places,
    delete_committed,
    execute_option,
    position_option,
    show_deleted,
    show_reset,
    state_filter_option,
    topics_options,
    yes_option,
)
from barnabas.cli.output import Output, Row, counted, row_of
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import reached
from barnabas.cli.records.positions import Kind, Position, list_offsets, resolve

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import ConsumerGroupDescription

STATES = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
}


@click.group()
def command() -> None:
    """List, describe, delete and reset consumer groups."""


@command.command(
    "list",
    epilog="\b\nExamples:\n  barnabas group list\n"
    "  barnabas group list --type share --state Stable\n",
)
@state_filter_option
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(["classic", "consumer", "share", "streams"], case_sensitive=False),
    help="Only of this type; may be repeated.",
)
@connection_options
def list_command(
    connection: Connection, states: tuple[str, ...], types: tuple[str, ...], as_json: bool
) -> None:
    """List groups of all types."""
    from barnabas.cli.group.calls import list_groups

    with reached(connection) as admin:
        groups = list_groups(admin, states=states, types=types)
    columns = ("group", "state", "type")
    rows = [row_of(item, columns) for item in groups]
    Output(as_json).rows(rows, columns, "There are no groups.")


@command.command("describe", epilog="\b\nExample:\n  barnabas group describe reports\n")
@click.argument("names", nargs=-1, required=True)
@connection_options
def describe_command(connection: Connection, names: tuple[str, ...], as_json: bool) -> None:
    """Show members, committed offsets and lag."""
    groups = {name: _describe(connection, name) for name in dict.fromkeys(names)}
    described = [group for group in groups.values() if group is not None]
    missing = [name for name, group in groups.items() if group is None]
    output = Output(as_json)
    if as_json and (described or not missing):
        output.result(described, "")
    elif not as_json:
        _show(output, described)
    if missing:
        raise _no_group(*missing)


def _show(output: Output, described: list[dict[str, Any]]) -> None:
    for index, group in enumerate(described):
        members = counted(len(group["members"]), "member")
        head = f"{group['group']}  {group['state']}, {members}, lag {group['lag']}"
        left_out = sum(row["lag"] is None for row in group["offsets"])
        if left_out:
            head += f", unknown for {counted(left_out, 'partition')}"
        click.echo(("\n" if index else "") + head)
        columns = ("topic", "partition", "offset", "end", "lag", "member", "host", "metadata")
        output.rows(group["offsets"], columns, "No offsets are committed.")


def _no_group(*names: str) -> CliError:
    return CliError(f"there is no group {', '.join(names)}", ExitCode.NOT_FOUND)


def _description(connection: Connection, name: str) -> "ConsumerGroupDescription":
    futures = connection.admin.describe_consumer_groups(
        [name], request_timeout=connection.timeout_s
    )
    description: ConsumerGroupDescription = connection.wait(futures[name], name)
    return description


def _describe(connection: Connection, name: str) -> dict[str, Any] | None:
    """A group, or None."""
    description = _description(connection, name)
    existing = all_partitions(connection)
    committed = committed_offsets(connection, name, existing)
    state = _words(description.state.name)
    if state == "Dead" and not committed:
        return None
    rows = _offset_rows(connection, description, committed, existing)
    return {
        "group": name,
        "state": state,
        "type": _words(description.type.name),
        "assignor": description.partition_assignor,
        "coordinator": description.coordinator.id if description.coordinator else None,
        "lag": sum(row["lag"] or 0 for row in rows),
        "members": [
            {
                "member": member.member_id,
                "instance": member.group_instance_id,
                "client": member.client_id,
                "host": member.host,
                "partitions": [
                    f"{item.topic}-{item.partition}" for item in member.assignment.topic_partitions
                ],
            }
            for member in description.members
        ],
        "offsets": rows,
    }


def _offset_rows(
    connection: Connection,
    description: "ConsumerGroupDescription",
    committed: "list[TopicPartition]",
    existing: set[tuple[str, int]],
) -> list[Row]:
    """A row for each partition with an offset or an owner."""
    from confluent_kafka import TopicPartition

    owners = {
        (item.topic, item.partition): member
        for member in description.members
        for item in member.assignment.topic_partitions
    }
    offsets = {(item.topic, item.partition): item for item in committed}
    keys = sorted(owners.keys() | offsets.keys())
    alive = [key for key in keys if key in existing]
    ends = list_offsets(connection, [TopicPartition(*key) for key in alive], Position(Kind.LATEST))
    rows = []
    for key in keys:
        item, member, end = offsets.get(key), owners.get(key), ends.get(key)
        offset = item.offset if item is not None and item.offset >= 0 else None
        rows.append(
            {
                "topic": key[0],
                "partition": key[1],
                "offset": offset,
                "end": end,
                "lag": None if offset is None or end is None else max(end - offset, 0),
                "metadata": item.metadata if item is not None else None,
                "member": member.member_id if member is not None else None,
                "client": member.client_id if member is not None else None,
                "host": member.host if member is not None else None,
            }
        )
    return rows


@command.command("delete", epilog="\b\nExample:\n  barnabas group delete reports --yes\n")
@click.argument("names", nargs=-1, required=True)
@yes_option
@connection_options
def delete_command(
    connection: Connection, names: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Delete groups without members, and their offsets."""
    confirm(f"Delete {', '.join(names)} with all offsets?", yes)
    futures = connection.admin.delete_consumer_groups(
        list(names), request_timeout=connection.timeout_s
    )
    for name in names:
        connection.wait(futures[name], name)
    show_deleted(names, as_json=as_json)


RESET_EPILOG = """\b
Examples:
  barnabas group reset-offsets reports --topic orders --to earliest
  barnabas group reset-offsets reports --all-topics --to 2026-01-31T12:00 \\
    --execute
  barnabas group reset-offsets reports --topic orders:0 --topic orders:1 \\
    --to 1200 --execute
"""


@command.command("reset-offsets", epilog=RESET_EPILOG)
@click.argument("name")
@topics_options()
@position_option
@execute_option
@click.option("--create", is_flag=True, help="Create the group if it does not exist.")
@connection_options
def reset_command(
    connection: Connection,
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    position: Position,
    execute: bool,
    create: bool,
    as_json: bool,
) -> None:
    """Move a group's committed offsets.

    The group must have no members.
    """
    check_choice(topics, all_topics)
    committed = committed_offsets(connection, name, all_partitions(connection))
    if not create and not committed and _words(_description(connection, name).state.name) == "Dead":
        error = _no_group(name)
        error.hint = "--create makes one"
        raise error
    before = {(item.topic, item.partition): item.offset for item in committed}
    partitions = chosen_places(connection, topics, all_topics, before)
    offsets = resolve(connection, position, partitions)
    if execute:
        commit_offsets(connection, name, offsets)
    show_reset(before, offsets, execute=execute, as_json=as_json)


@command.command(
    "delete-offsets",
    epilog="\b\nExample:\n  barnabas group delete-offsets reports --topic orders --yes\n",
)
@click.argument("name")
@topics_options()
@yes_option
@connection_options
def delete_offsets_command(
    connection: Connection,
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete offsets that a group committed.

    The group must not be subscribed to the topics.
    """
    check_choice(topics, all_topics)
    committed = committed_offsets(connection, name, all_partitions(connection))
    if not committed and _words(_description(connection, name).state.name) == "Dead":
        raise _no_group(name)
    known = [(item.topic, item.partition) for item in committed]
    places = chosen_places(connection, topics, all_topics, known)
    delete_committed(connection, name, places, yes=yes, as_json=as_json)


def _words(name: str) -> str:
    """An enumeration's name as Kafka writes it: EMPTY is Empty."""
    return STATES.get(name, name.capitalize())
