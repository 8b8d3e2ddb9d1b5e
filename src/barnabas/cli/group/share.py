"""`barnabas share-group`: groups of consumers that share the records of partitions (KIP-932)."""

from typing import Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.group.options import (
    check_empty,
    chosen_places,
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
from barnabas.cli.output import Output, Row
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import reached
from barnabas.cli.records.positions import Position, resolve

MEMBER_COLUMNS = ("member", "host", "client", "member_epoch", "partitions")
OFFSET_COLUMNS = ("topic", "partition", "start", "lag")


@click.group()
def command() -> None:
    """List, describe, delete and reset share groups."""


@command.command(
    "list",
    epilog="\b\nExamples:\n  barnabas share-group list\n"
    "  barnabas share-group list --state Empty\n",
)
@state_filter_option
@connection_options
def list_command(connection: Connection, states: tuple[str, ...], as_json: bool) -> None:
    """List share groups."""
    list_of_type(connection, "share", states, as_json=as_json)


@command.command(
    "describe",
    epilog="\b\nExamples:\n  barnabas share-group describe jobs\n"
    "  barnabas share-group describe jobs --members\n",
)
@click.argument("names", nargs=-1, required=True)
@which_option
@connection_options
def describe_command(
    connection: Connection, names: tuple[str, ...], which: str, as_json: bool
) -> None:
    """Show start offsets and lag, members, or state.

    With --json each group has all of them.
    """
    with reached(connection) as admin:
        described = [_describe(admin, name) for name in dict.fromkeys(names)]
    columns = {"members": MEMBER_COLUMNS, "offsets": OFFSET_COLUMNS}
    show_described(described, which, columns, "The group has no offsets.", as_json=as_json)


def _describe(admin: Any, name: str) -> dict[str, Any]:
    from barnabas.cli.group.calls import describe_share_group, share_offsets

    coordinator, group = describe_share_group(admin, name)
    offsets = share_offsets(admin, name)
    return {
        "group": name,
        "state": group.group_state,
        "coordinator": coordinator,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor_name,
        "members": [
            {
                "member": member.member_id,
                "host": member.client_host,
                "client": member.client_id,
                "rack": member.rack_id,
                "member_epoch": member.member_epoch,
                "topics": list(member.subscribed_topic_names),
                "partitions": [
                    f"{topic.topic_name}-{number}"
                    for topic in member.assignment.topic_partitions
                    for number in topic.partitions
                ],
            }
            for member in group.members
        ],
        "offsets": [
            {
                "topic": topic,
                "partition": number,
                "start": part.start_offset if part.start_offset >= 0 else None,
                "leader_epoch": part.leader_epoch,
                "lag": part.lag if part.lag >= 0 else None,
            }
            for (topic, number), part in sorted(offsets.items())
        ],
    }


RESET_EPILOG = """\b
Examples:
  barnabas share-group reset-offsets jobs --topic orders --to earliest
  barnabas share-group reset-offsets jobs --all-topics \\
    --to 2026-01-31T12:00 --execute
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
    """Move a share group's start offsets.

    The group must have no members. Records that are before the new start are not delivered any
    more; those after it are delivered again, with new delivery counts.
    """
    from barnabas.cli.group.calls import (
        alter_share_offsets,
        describe_share_group,
        share_offsets,
    )

    with reached(connection) as admin:
        before = {}
        try:
            _, group = describe_share_group(admin, name)
        except CliError as error:
            if error.code is not ExitCode.NOT_FOUND or not create:
                error.hint = "--create makes one" if error.code is ExitCode.NOT_FOUND else None
                raise
        else:
            check_empty(name, group, "stop its consumers first")
            before = {
                place: part.start_offset
                for place, part in share_offsets(admin, name).items()
                if part.start_offset >= 0
            }
        places = chosen_places(connection, topics, all_topics, before)
        after = resolve(connection, position, places)
        if execute and after:
            alter_share_offsets(admin, name, after)
    show_reset(before, after, execute=execute, as_json=as_json)


@command.command("delete", epilog="\b\nExample:\n  barnabas share-group delete jobs --yes\n")
@click.argument("names", nargs=-1, required=True)
@yes_option
@connection_options
def delete_command(
    connection: Connection, names: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Delete share groups without members."""
    from barnabas.cli.group.calls import describe_share_group

    delete_groups(connection, names, describe_share_group, yes=yes, as_json=as_json)


@command.command(
    "delete-offsets",
    epilog="\b\nExample:\n  barnabas share-group delete-offsets jobs --topic orders --yes\n",
)
@click.argument("name")
@click.option("--topic", "-t", "topics", multiple=True, required=True, help="May be repeated.")
@yes_option
@connection_options
def delete_offsets_command(
    connection: Connection, name: str, topics: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Delete a share group's offsets of topics.

    The group must have no members.
    """
    from barnabas.cli.group.calls import delete_share_offsets, describe_share_group, share_offsets

    with reached(connection) as admin:
        describe_share_group(admin, name)
        known = {topic for topic, _ in share_offsets(admin, name)}
        for topic in topics:
            if topic not in known:
                raise CliError(f"{name} has no offsets of {topic}", ExitCode.NOT_FOUND)
        confirm(f"Delete the offsets of {name} in {', '.join(topics)}?", yes)
        delete_share_offsets(admin, name, topics)
    rows: list[Row] = [{"topic": topic, "deleted": True} for topic in topics]
    Output(as_json).result(rows, "\n".join(f"{topic}: offsets deleted" for topic in topics))
