"""`barnabas streams-group`: groups of Kafka Streams' own rebalance protocol (KIP-1071)."""

from collections.abc import Iterable
from typing import Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.group.calls import commit_offsets, committed_offsets
from barnabas.cli.group.options import (
    all_partitions,
    check_empty,
    chosen_places,
    delete_committed,
    delete_groups,
    execute_option,
    list_of_type,
    position_option,
    show_described,
    show_reset,
    state_filter_option,
    topics_options,
    which_option,
    yes_option,
)
from barnabas.cli.reaching import reached
from barnabas.cli.records.positions import Kind, Position, list_offsets, resolve

MEMBER_COLUMNS = ("member", "process", "client", "member_epoch", "active", "standby", "warmup")
OFFSET_COLUMNS = ("topic", "partition", "offset", "end", "lag")


@click.group()
def command() -> None:
    """List, describe, delete and reset Streams groups."""


@command.command("list", epilog="\b\nExample:\n  barnabas streams-group list --state Stable\n")
@state_filter_option
@connection_options
def list_command(connection: Connection, states: tuple[str, ...], as_json: bool) -> None:
    """List Streams groups."""
    list_of_type(connection, "streams", states, as_json=as_json)


@command.command(
    "describe",
    epilog="\b\nExamples:\n  barnabas streams-group describe counts\n"
    "  barnabas streams-group describe counts --members\n",
)
@click.argument("names", nargs=-1, required=True)
@which_option
@connection_options
def describe_command(
    connection: Connection, names: tuple[str, ...], which: str, as_json: bool
) -> None:
    """Show offsets and lag, members and tasks, or state.

    With --json each group has all of them.
    """
    with reached(connection) as admin:
        described = [_describe(connection, admin, name) for name in dict.fromkeys(names)]
    columns = {"members": MEMBER_COLUMNS, "offsets": OFFSET_COLUMNS}
    show_described(described, which, columns, "No offsets are committed.", as_json=as_json)


def _describe(connection: Connection, admin: Any, name: str) -> dict[str, Any]:
    from barnabas.cli.group.calls import describe_streams_group

    coordinator, group = describe_streams_group(admin, name)
    offsets = _committed(connection, name)
    ends = list_offsets(connection, _places(offsets), Position(Kind.LATEST))
    return {
        "group": name,
        "state": group.group_state,
        "coordinator": coordinator,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": None if group.topology is None else group.topology.epoch,
        "internal_topics": _internal_topics(group),
        "members": [
            {
                "member": member.member_id,
                "instance": member.instance_id,
                "process": member.process_id,
                "client": member.client_id,
                "host": member.client_host,
                "member_epoch": member.member_epoch,
                "topology_epoch": member.topology_epoch,
                "active": _tasks(member.assignment.active_tasks),
                "standby": _tasks(member.assignment.standby_tasks),
                "warmup": _tasks(member.assignment.warmup_tasks),
            }
            for member in group.members
        ],
        "offsets": [
            {
                "topic": topic,
                "partition": number,
                "offset": offset,
                "end": ends.get((topic, number)),
                "lag": max(ends[topic, number] - offset, 0) if (topic, number) in ends else None,
            }
            for (topic, number), offset in sorted(offsets.items())
        ],
    }


def _tasks(assigned: Iterable[Any]) -> list[str]:
    """Tasks as Kafka Streams names them: subtopology_partition."""
    return [f"{task.subtopology_id}_{number}" for task in assigned for number in task.partitions]


def _internal_topics(group: Any) -> list[str]:
    if group.topology is None:
        return []
    names = {
        topic.name
        for part in group.topology.subtopologies or ()
        for topic in (*part.state_changelog_topics, *part.repartition_source_topics)
    }
    return sorted(names)


def _committed(connection: Connection, name: str) -> dict[tuple[str, int], int]:
    committed = committed_offsets(connection, name, all_partitions(connection))
    return {(item.topic, item.partition): item.offset for item in committed}


def _places(keys: Iterable[tuple[str, int]]) -> list[Any]:
    from confluent_kafka import TopicPartition

    return [TopicPartition(*key) for key in sorted(keys)]


RESET_EPILOG = """\b
Examples:
  barnabas streams-group reset-offsets counts --input-topic words \\
    --to earliest
  barnabas streams-group reset-offsets counts --all-input-topics --to 7d \\
    --execute
  barnabas streams-group reset-offsets counts --all-input-topics \\
    --to earliest --execute --delete-all-internal-topics --yes
"""
internal_option = click.option(
    "--delete-all-internal-topics",
    "internal",
    is_flag=True,
    help="Delete the group's changelog and repartition topics too.",
)


@command.command("reset-offsets", epilog=RESET_EPILOG)
@click.argument("name")
@topics_options("--input-topic", "--all-input-topics")
@position_option
@internal_option
@execute_option
@yes_option
@connection_options
def reset_command(
    connection: Connection,
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    position: Position,
    internal: bool,
    execute: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move a Streams group's committed offsets.

    The group must have no members. It resets input topics, not internal ones: state that was
    computed from the same records stays unless you delete those.
    """
    from barnabas.cli.group.calls import describe_streams_group
    from barnabas.cli.prompts import confirm

    with reached(connection) as admin:
        _, group = describe_streams_group(admin, name)
    check_empty(name, group, "stop the application first")
    inner = _internal_topics(group)
    before = _committed(connection, name)
    inputs = [key for key in before if key[0] not in inner]
    after = resolve(connection, position, chosen_places(connection, topics, all_topics, inputs))
    if execute and after:
        if internal and inner:
            confirm(f"Delete {', '.join(inner)} with all records?", yes)
        commit_offsets(connection, name, after)
        if internal:
            _delete_topics(connection, inner)
    show_reset(before, after, execute=execute, as_json=as_json)


def _delete_topics(connection: Connection, names: list[str]) -> None:
    if not names:
        return
    futures = connection.admin.delete_topics(names, operation_timeout=connection.timeout_s)
    for name, future in futures.items():
        try:
            connection.wait(future, name)
        except CliError as error:
            if error.code is not ExitCode.NOT_FOUND:
                raise


@command.command("delete", epilog="\b\nExample:\n  barnabas streams-group delete counts --yes\n")
@click.argument("names", nargs=-1, required=True)
@internal_option
@yes_option
@connection_options
def delete_command(
    connection: Connection, names: tuple[str, ...], internal: bool, yes: bool, as_json: bool
) -> None:
    """Delete Streams groups without members."""
    from barnabas.cli.group.calls import describe_streams_group

    inner: list[str] = []

    def check(admin: Any, name: str) -> None:
        inner.extend(_internal_topics(describe_streams_group(admin, name)[1]))

    delete_groups(connection, names, check, yes=yes, as_json=as_json)
    if internal:
        _delete_topics(connection, inner)


@command.command(
    "delete-offsets",
    epilog="\b\nExample:\n  barnabas streams-group delete-offsets counts --input-topic words\n",
)
@click.argument("name")
@topics_options("--input-topic", "--all-input-topics")
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
    """Delete offsets that a Streams group committed.

    The group must not be reading the topics.
    """
    from barnabas.cli.group.calls import describe_streams_group

    with reached(connection) as admin:
        describe_streams_group(admin, name)
    known = _committed(connection, name) if all_topics else ()
    places = chosen_places(connection, topics, all_topics, known)
    delete_committed(connection, name, places, yes=yes, as_json=as_json)
