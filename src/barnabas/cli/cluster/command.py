"""`barnabas cluster`: the nodes of a cluster; how it grows and shrinks while it runs."""

from typing import Any

import click

from barnabas.cli.balance.options import Wishes, move_options
from barnabas.cli.connection import Connection, Seconds, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import print_json, say
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import reached

WAIT_DEFAULT_S = 300.0


@click.group()
def command() -> None:
    """Show the nodes of a cluster; add, drain and remove nodes."""


@command.command("status", epilog="\b\nExample:\n  barnabas cluster status\n")
@connection_options
def status_command(connection: Connection, as_json: bool) -> int:
    """Show each node's rack, roles, state, partitions and size.

    It also shows the feature levels of the cluster. Exit code 5 if a node is down, or a partition
    has no leader or too few replicas.
    """
    from barnabas.cli.cluster.status import print_status, read_status

    with reached(connection) as admin:
        status = read_status(admin)
    if as_json:
        print_json(status.to_value())
    else:
        print_status(status)
    return ExitCode.PROBLEMS if status.problems else ExitCode.DONE


@command.command(
    "add",
    epilog="\b\nExamples:\n  barnabas cluster add --directory /srv/barnabas --rack b\n"
    "  barnabas cluster add --directory node-4 --node-id 4 --voter --wait 60\n\n"
    "Run this on the new machine. Start the node as it says, then run barnabas rebalance.\n",
)
@click.option(
    "--directory",
    "-d",
    required=True,
    type=click.Path(file_okay=False),
    help="For server.properties and the node's data.",
)
@click.option(
    "--node-id", type=click.IntRange(min=0), help="By default one more than the highest id."
)
@click.option("--host", help="Address to bind and advertise; by default this machine's name.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Client port; by default 9092, or a free one."
)
@click.option(
    "--controller-port",
    type=click.IntRange(0, 65535),
    help="Controller port, with --voter; by default 9093, or a free one.",
)
@click.option("--rack", help="Its rack; replicas of a partition avoid sharing a rack.")
@click.option("--voter", is_flag=True, help="Make it a controller too, which votes in the quorum.")
@click.option("--replace", is_flag=True, help="Replace a node that is down.")
@click.option(
    "--like",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Another node's server.properties, to copy passwords and keys from.",
)
@click.option(
    "--wait",
    "wait_s",
    type=Seconds(least=0),
    default=0.0,
    metavar="SECONDS",
    help="Wait this long for the node to start; with --voter, then make it a voter.",
)
@connection_options
def add_command(
    connection: Connection,
    directory: str,
    node_id: int | None,
    host: str | None,
    port: int | None,
    controller_port: int | None,
    rack: str | None,
    voter: bool,
    replace: bool,
    like: str | None,
    wait_s: float,
    as_json: bool,
) -> None:
    """Prepare a new node: configuration and formatted directory.

    Its server.properties gets the settings of the existing nodes. Nothing moves to it until you
    run barnabas rebalance.
    """
    from barnabas.cli.cluster.new_node import NodeWishes, prepare, wait_until_joined
    from barnabas.cli.cluster.new_voter import add, voter_from_config

    wishes = NodeWishes(directory, node_id, host, port, controller_port, rack, voter, replace, like)
    with reached(connection) as admin:
        made = prepare(admin, wishes)
        value: dict[str, Any] = {
            "node": made.node_id,
            "properties": made.path,
            "start": f"barnabas start {made.path}",
            "listener": made.listener,
            "lines": made.lines,
            "joined": False,
            "votes": False,
        }
        if not as_json:
            for line in made.lines:
                say(line)
            say(f"Node {made.node_id} is ready to start:")
            say(f"  barnabas start {made.path}")
        if wait_s:
            wait_until_joined(admin, made.node_id, wait_s, as_observer=voter)
            value["joined"] = True
            if voter:
                add(admin, voter_from_config(made.path))
                value["votes"] = True
    if as_json:
        print_json(value)
        return
    if value["joined"]:
        say(f"Node {made.node_id} has joined{' and votes' if voter else ''}.")
    elif voter:
        say("Once it runs, make it a voter:")
        say(f"  barnabas quorum add-voter --config {made.path}")
    say("To give it its share of the replicas:")
    say("  barnabas rebalance")


@command.command(
    "drain",
    epilog="\b\nExamples:\n  barnabas cluster drain 3 --dry-run\n"
    "  barnabas cluster drain 3 --throttle 50MB\n",
)
@click.argument("node", type=int)
@move_options
@connection_options
def drain_command(connection: Connection, node: int, wishes: Wishes, as_json: bool) -> None:
    """Move all replicas away from a node, running or lost. Ctrl-C is safe; run it again later."""
    with reached(connection) as admin:
        value = _drain(admin, node, wishes, as_json=as_json, go_on=f"barnabas cluster drain {node}")
    if as_json:
        print_json({"node": node, **value})


@command.command(
    "remove",
    epilog="\b\nExamples:\n  barnabas cluster remove 3\n"
    "  barnabas cluster remove 3 --throttle 50MB --yes --wait 600\n",
)
@click.argument("node", type=int)
@click.option(
    "--wait",
    "wait_s",
    type=Seconds(least=0),
    default=WAIT_DEFAULT_S,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the node to stop.",
)
@move_options
@connection_options
def remove_command(
    connection: Connection, node: int, wait_s: float, wishes: Wishes, as_json: bool
) -> None:
    """Drain a node, remove its vote and unregister it.

    It waits for the node to stop. Refused if the quorum would lose its majority. Steps that are
    already done are skipped, so you can run the command again.
    """
    from barnabas.cli.balance.survey import survey
    from barnabas.cli.cluster.quorum_state import (
        check_removal,
        read_quorum,
        remove,
        require_dynamic,
    )

    again = f"barnabas cluster remove {node}"
    with reached(connection) as admin:
        quorum = read_quorum(admin, admin.cluster().fenced)
        is_voter = quorum.voter(node) is not None
        if is_voter:
            require_dynamic(admin)
            check_removal(quorum, node)
        surveyed = survey(admin)
        is_broker = node in surveyed.cluster.brokers
        if not is_broker and not is_voter and not surveyed.holds(node):
            raise CliError(f"there is no node {node} in this cluster", ExitCode.NOT_FOUND)
        value: dict[str, Any] = {"node": node, "voter_removed": False, "unregistered": False}
        if is_broker or surveyed.holds(node):
            value.update(_drain(admin, node, wishes, as_json=as_json, go_on=again))
        if wishes.is_dry_run:
            if is_voter and not as_json:
                say(f"Node {node} would lose its vote.")
        else:
            confirm(f"Remove node {node} from the cluster for good?", wishes.is_agreed)
            if is_voter:
                remove(admin, read_quorum(admin), node)
                value["voter_removed"] = True
                _say(f"Node {node} no longer votes.", as_json)
            if is_broker:
                _forget(admin, node, wait_s, as_json=as_json, again=again)
                value["unregistered"] = True
    if as_json:
        print_json(value)


def _drain(admin: Any, node: int, wishes: Wishes, *, as_json: bool, go_on: str) -> dict[str, Any]:
    from barnabas.cli.balance.flow import carry_out
    from barnabas.cli.balance.planner import plan_drain
    from barnabas.cli.balance.survey import check_known, survey

    surveyed = survey(admin)
    check_known(surveyed, node)
    moves = plan_drain(surveyed.brokers(frozenset({node})), surveyed.placement())
    return carry_out(admin, surveyed, moves, wishes, as_json=as_json, go_on=go_on)


def _forget(admin: Any, node: int, wait_s: float, *, as_json: bool, again: str) -> None:
    from barnabas.cli.admin import unregister
    from barnabas.cli.balance.survey import survey
    from barnabas.cli.cluster.quorum_state import check_removal, read_quorum, remove

    def is_down() -> bool:
        broker = admin.cluster().brokers.get(node)
        return broker is None or broker.is_fenced

    if not is_down():
        _say(
            f"Node {node} holds nothing any more: stop it now (SIGTERM). Waiting for it to stop.",
            as_json,
        )
        if not admin.wait_until(is_down, wait_s):
            raise CliError(f"node {node} still runs", hint=f"stop it, then {again} continues")
    quorum = read_quorum(admin)
    if quorum.voter(node) is not None:
        # With controller.quorum.auto.join.enable it let itself in again while it ran.
        check_removal(quorum, node)
        remove(admin, quorum, node)
    if survey(admin).holds(node):
        raise CliError(f"node {node} got replicas in the meantime", hint=f"{again} continues")
    unregister(admin, node)
    _say(f"Node {node} is removed from the cluster.", as_json)


def _say(text: str, as_json: bool) -> None:
    if not as_json:
        say(text)
