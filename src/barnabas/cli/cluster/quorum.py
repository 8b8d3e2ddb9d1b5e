"""`barnabas quorum`: the voters that hold the cluster's metadata."""

from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import controller_option, reached

if TYPE_CHECKING:
    from barnabas.cli.cluster.quorum_state import Quorum, QuorumReplica


@click.group()
def command() -> None:
    """Show the metadata quorum; add and remove voters."""


@command.command(
    "status",
    epilog="\b\nExamples:\n  barnabas quorum status\n"
    "  barnabas quorum status --bootstrap-controller localhost:9093\n",
)
@controller_option
@connection_options
def status_command(connection: Connection, controllers: str | None, as_json: bool) -> int:
    """Show leader, epoch, high watermark, voters and their lag.

    Exit code 5 if the quorum has no majority, or if three or more voters cannot lose one more.
    """
    from barnabas.cli.cluster.quorum_state import read_quorum

    with reached(connection, controllers) as admin:
        quorum = read_quorum(admin)
    spare = quorum.alive - quorum.majority
    problem = None
    if spare < 0:
        problem = "the quorum has no majority: start the voters that are down"
    elif len(quorum.voters) > 2 and spare == 0:
        problem = "if one more voter is lost, the majority is gone: start those that are down"
    value = {
        "leader": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "majority": quorum.majority,
        "voters_alive": quorum.alive,
        "voters": [_row(item) for item in quorum.voters],
        "observers": [_row(item) for item in quorum.observers],
        "problem": problem,
    }
    output = Output(as_json)
    if as_json:
        output.result(value, "")
        return ExitCode.PROBLEMS if problem else ExitCode.DONE
    lags = [item.lag for item in quorum.voters if not item.is_leader]
    click.echo(f"leader          {quorum.leader_id}")
    click.echo(f"leader epoch    {quorum.leader_epoch}")
    click.echo(f"high watermark  {quorum.high_watermark}")
    click.echo(
        f"voters          {_ids(quorum.voters)} ({quorum.alive} follow, {quorum.majority} decide)"
    )
    click.echo(f"observers       {_ids(quorum.observers)}")
    click.echo(f"greatest lag    {max(lags, default=0)}")
    output.note(problem or "")
    return ExitCode.PROBLEMS if problem else ExitCode.DONE


def _ids(replicas: "tuple[QuorumReplica, ...]") -> str:
    return ", ".join(str(item.id) for item in replicas) or "-"


def _row(replica: "QuorumReplica") -> Row:
    return {
        "node": replica.id,
        "role": "leader" if replica.is_leader else "voter" if replica.is_voter else "observer",
        "alive": replica.is_alive,
        "log_end_offset": replica.log_end_offset,
        "lag": replica.lag,
        "fetched_ms_ago": replica.fetch_age_ms,
        "caught_up_ms_ago": replica.caught_up_age_ms,
        "directory": replica.directory_text,
    }


@command.command("describe", epilog="\b\nExample:\n  barnabas quorum describe\n")
@controller_option
@connection_options
def describe_command(connection: Connection, controllers: str | None, as_json: bool) -> None:
    """Show offsets, lag and addresses of voters and observers."""
    from barnabas.cli.cluster.quorum_state import read_quorum

    with reached(connection, controllers) as admin:
        quorum = read_quorum(admin)
    rows = []
    for replica in (*quorum.voters, *quorum.observers):
        ends = quorum.endpoints.get(replica.id, ())
        addresses = [f"{name}://{host}:{port}" for name, host, port in ends]
        rows.append({**_row(replica), "addresses": addresses})
    columns = ("node", "role", "alive", "log_end_offset", "lag", "fetched_ms_ago", "directory")
    Output(as_json).rows(rows, (*columns, "addresses"))


@command.command(
    "add-voter",
    epilog="\b\nExamples:\n  barnabas quorum add-voter --config server.properties\n"
    "  barnabas quorum add-voter 4@host4:9093\n"
    "  barnabas quorum add-voter 4@host4:9093:JEXY6aqzQY-32P5TStzaFg\n",
)
@click.argument("voter", required=False, metavar="[ID@HOST:PORT[:DIRECTORY]]")
@click.option(
    "--config",
    "-c",
    "properties",
    type=click.Path(dir_okay=False),
    help="The new voter's server.properties, read on its machine.",
)
@controller_option
@connection_options
def add_voter_command(
    connection: Connection,
    voter: str | None,
    properties: str | None,
    controllers: str | None,
    as_json: bool,
) -> None:
    """Make a running controller a voter.

    It must have caught up as an observer. Without a directory id, the command takes that of the
    observer with this node id.
    """
    from barnabas.cli.cluster.new_voter import add, voter_from_config, voter_from_text

    if (voter is None) == (properties is None):
        raise CliError("give either ID@HOST:PORT or --config", ExitCode.USAGE)
    with reached(connection, controllers) as admin:
        wanted = voter_from_config(properties) if properties else voter_from_text(voter or "")
        directory = add(admin, wanted)
    Output(as_json).result(
        {"node": wanted.node_id, "directory": directory, "added": True},
        f"node {wanted.node_id} votes now (directory {directory})",
    )


@command.command(
    "remove-voter",
    epilog="\b\nExamples:\n  barnabas quorum remove-voter 4\n"
    "  barnabas quorum remove-voter 4 --directory JEXY6aqzQY-32P5TStzaFg --yes\n",
)
@click.argument("node", type=int)
@click.option("--directory", help="Id of its metadata directory; by default the quorum is asked.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@controller_option
@connection_options
def remove_voter_command(
    connection: Connection,
    node: int,
    directory: str | None,
    yes: bool,
    controllers: str | None,
    as_json: bool,
) -> None:
    """Remove a voter from the quorum.

    The node itself continues as an observer. Refused if the rest would have no majority.
    """
    from barnabas.cli.cluster.quorum_state import (
        check_removal,
        read_quorum,
        remove,
        require_dynamic,
    )

    with reached(connection, controllers) as admin:
        require_dynamic(admin)
        quorum = read_quorum(admin)
        _require_voter(quorum, node)
        check_removal(quorum, node)
        confirm(f"Remove node {node} from the quorum?", yes)
        remove(admin, quorum, node, directory)
    rest = [item.id for item in quorum.voters if item.id != node]
    Output(as_json).result(
        {"node": node, "removed": True, "voters": rest},
        f"node {node} no longer votes; the voters are {', '.join(map(str, rest))}",
    )


def _require_voter(quorum: "Quorum", node: int) -> None:
    if quorum.voter(node) is None:
        voters = _ids(quorum.voters)
        raise CliError(f"node {node} is not a voter; the voters are {voters}", ExitCode.NOT_FOUND)
