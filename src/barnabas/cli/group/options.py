"""Options and steps that the commands for consumer, share and Streams groups share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, option_set
from barnabas.cli.output import Output, Row, counted, row_of
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import reached
from barnabas.cli.records.positions import HELP, PositionType, topic_partitions

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

Place = tuple[str, int]

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
state_filter_option = click.option(
    "--state", "states", multiple=True, help="Only in this state, such as Empty; may be repeated."
)
position_option = click.option(
    "--to", "position", required=True, type=PositionType(), help=f"Where to: {HELP}."
)
execute_option = click.option(
    "--execute", is_flag=True, help="Reset the offsets; otherwise only show what would change."
)


def topics_options(*names: str) -> Callable[[Function], Function]:
    """--topic and --all-topics, as `topics` and `all_topics`; `names` are further spellings."""
    topic = click.option(
        "--topic",
        "-t",
        *names[:1],
        "topics",
        multiple=True,
        metavar="TOPIC[:PARTITION]",
        help="Topic or partition; may be repeated.",
    )
    every = click.option(
        "--all-topics",
        *names[1:],
        "all_topics",
        is_flag=True,
        help="Every topic the group has offsets for.",
    )
    return lambda function: topic(every(function))


def check_choice(topics: Sequence[str], all_topics: bool) -> None:
    """Raise CliError unless exactly one of the options above is given."""
    if bool(topics) == all_topics:
        raise CliError("give either --topic or --all-topics", ExitCode.USAGE)


def chosen_places(
    connection: Connection, topics: Sequence[str], all_topics: bool, known: Iterable[Place]
) -> "list[TopicPartition]":
    """Return what the options above name: of `known` all, or the partitions of topics.

    Raises CliError.
    """
    from confluent_kafka import TopicPartition

    check_choice(topics, all_topics)
    if all_topics:
        return [TopicPartition(*place) for place in sorted(known)]
    return [item for topic in topics for item in named_partitions(connection, topic)]


def all_partitions(connection: Connection) -> set[Place]:
    """All partitions there are. Raises CliError."""
    topics = connection.metadata().topics
    return {(name, number) for name, topic in topics.items() for number in topic.partitions}


def named_partitions(connection: Connection, text: str) -> "list[TopicPartition]":
    """TOPIC or TOPIC:PARTITION. Raises CliError."""
    topic, colon, partition = text.rpartition(":")
    if not colon:
        return topic_partitions(connection, text)
    if not partition.isdecimal():
        raise CliError(f"--topic {text}: must be TOPIC or TOPIC:PARTITION", ExitCode.USAGE)
    return topic_partitions(connection, topic, [int(partition)])


def check_empty(name: str, group: Any, hint: str) -> None:
    """Raise CliError where a described group has members."""
    if group.members:
        members = counted(len(group.members), "member")
        raise CliError(f"{name} has {members} [NON_EMPTY_GROUP]", hint=hint)


def show_described(
    described: Sequence[Mapping[str, Any]],
    which: str,
    columns: Mapping[str, Sequence[str]],
    no_offsets: str,
    *,
    as_json: bool,
) -> None:
    """Print each group's state, members or offsets; all of them as JSON."""
    output = Output(as_json)
    if as_json:
        output.result(described, "")
        return
    for index, group in enumerate(described):
        if index:
            click.echo()
        if which == "state":
            state = {**group, "members": len(group["members"])}
            del state["offsets"]
            output.details(state)
            continue
        members = counted(len(group["members"]), "member")
        click.echo(f"{group['group']}  {group['state']}, {members}")
        nothing = "The group has no members." if which == "members" else no_offsets
        output.rows(group[which], columns[which], nothing)


def show_reset(
    before: Mapping[Place, int], after: Mapping[Place, int], *, execute: bool, as_json: bool
) -> None:
    """Print the offsets before and after a reset."""
    rows: list[Row] = [
        {"topic": key[0], "partition": key[1], "before": before.get(key), "after": offset}
        for key, offset in sorted(after.items())
    ]
    output = Output(as_json)
    output.rows(rows, ("topic", "partition", "before", "after"), "There is nothing to move.")
    if not execute:
        output.note("Nothing was changed: add --execute to do it.")


def delete_groups(
    connection: Connection,
    names: Sequence[str],
    check: Callable[[Any, str], object],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete groups; `check` raises CliError for one that is not of the command's type."""
    from barnabas.cli.group.calls import delete_group

    with reached(connection) as admin:
        for name in names:
            check(admin, name)
        confirm(f"Delete {', '.join(names)} with all offsets?", yes)
        for name in names:
            delete_group(admin, name)
    show_deleted(names, as_json=as_json)


def show_deleted(names: Iterable[str], *, as_json: bool) -> None:
    """Print the groups that were deleted."""
    rows = [{"group": name, "deleted": True} for name in names]
    Output(as_json).result(rows, "\n".join(f"{name}: deleted" for name in names))


def delete_committed(
    connection: Connection,
    name: str,
    places: Iterable["TopicPartition"],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete what a group has committed in partitions."""
    from barnabas.kafka.group_offsets import delete_offsets

    keys = [(item.topic, item.partition) for item in places]
    texts = [f"{topic}-{number}" for topic, number in keys]
    confirm(f"Delete the offsets of {name} in {', '.join(texts)}?", yes)
    with reached(connection) as admin:
        admin.run(delete_offsets, name, keys)
    rows = [{"topic": topic, "partition": number, "deleted": True} for topic, number in keys]
    Output(as_json).result(rows, "\n".join(f"{text}: offset deleted" for text in texts))


def list_of_type(
    connection: Connection, kind: str, states: Sequence[str], *, as_json: bool
) -> None:
    """List the groups of one type."""
    from barnabas.cli.group.calls import list_groups

    with reached(connection) as admin:
        groups = list_groups(admin, states=states, types=[kind])
    columns = ("group", "state")
    rows = [row_of(item, columns) for item in groups]
    Output(as_json).rows(rows, columns, f"There are no {kind} groups.")


which_option = option_set(
    click.option(
        "--offsets",
        "which",
        flag_value="offsets",
        default=True,
        help="Show offsets and lag; this is the default.",
    ),
    click.option(
        "--members", "which", flag_value="members", help="Show members and what each has."
    ),
    click.option("--state", "which", flag_value="state", help="Show epochs and coordinator."),
)
"""--offsets, --members or --state, as `which`."""
