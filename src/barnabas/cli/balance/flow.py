"""What every command that moves replicas does: show the plan, ask, carry it out, tell."""

from collections.abc import Sequence
from typing import Any

import click

from barnabas.cli.admin import Admin
from barnabas.cli.balance.execution import Execution, Outcome
from barnabas.cli.balance.model import Move, loads, moved_bytes
from barnabas.cli.balance.options import Wishes
from barnabas.cli.balance.plan_file import to_document
from barnabas.cli.balance.showing import ProgressView, print_plan
from barnabas.cli.balance.survey import Survey
from barnabas.cli.balance.throttles import clear_throttles, throttled_brokers, throttled_topics
from barnabas.cli.confirming import confirm
from barnabas.cli.errors import CliError, ExitCode


def carry_out(
    admin: Admin,
    found: Survey,
    moves: Sequence[Move],
    wishes: Wishes,
    *,
    as_json: bool,
    go_on: str,
) -> dict[str, Any]:
    """Show `moves`, ask, and make them, together with what is under way already.

    `go_on` is the command line that goes on after Ctrl-C. Returns what --json prints. Raises
    CliError, for partitions that could not be moved too.
    """
    in_flight = found.moves_in_flight()
    before, after = _loads(found, [*in_flight, *moves])
    value: dict[str, Any] = {
        "moves": [
            {
                "topic": move.topic,
                "partition": move.index,
                "before": list(move.before),
                "after": list(move.after),
                "bytes": move.moved_bytes,
            }
            for move in moves
        ],
        "bytes": moved_bytes(moves),
        "in_flight": len(in_flight),
        "plan": to_document(moves),
        "done": False,
    }
    if not as_json:
        if in_flight:
            click.echo(f"{len(in_flight)} partitions are being moved already.")
        if moves:
            print_plan(moves, before, after)
        elif not in_flight:
            click.echo("Nothing has to move.")
    if wishes.is_dry_run:
        return value
    if not moves and not in_flight:
        _clear_left_throttles(admin, found, as_json=as_json)
        return {**value, "done": True}
    if moves:
        confirm("Move them?", wishes.is_agreed)
    outcome = _execute(admin, found, moves, wishes, as_json=as_json, go_on=go_on)
    if outcome.refused:
        raise _refusals(outcome)
    if not as_json:
        click.echo(f"Done: {len(outcome.moved)} partitions are where they shall be.")
    return {**value, "done": True, "moved": len(outcome.moved)}


def _loads(found: Survey, moves: Sequence[Move]) -> tuple[list[Any], list[Any]]:
    brokers, placement = found.brokers(), found.placement()
    undone = [
        Move(move.topic, move.index, move.after, move.before, move.size_bytes)
        for move in found.moves_in_flight()
    ]
    return loads(brokers, placement, undone), loads(brokers, placement, moves)


def _execute(
    admin: Admin,
    found: Survey,
    moves: Sequence[Move],
    wishes: Wishes,
    *,
    as_json: bool,
    go_on: str,
) -> Outcome:
    view = ProgressView(shown=not as_json)
    execution = Execution(
        admin,
        moves,
        found.moves_in_flight(),
        live=found.cluster.live,
        throttle_bytes_per_s=wishes.throttle_bytes_per_s,
        concurrent_max=wishes.concurrent_max,
        on_progress=view.update,
    )
    try:
        with view.running():
            return execution.run()
    except KeyboardInterrupt:
        raise CliError(
            f"interrupted: {execution.running} partitions are still being moved by the cluster, "
            f"{execution.waiting} were not begun; throttles are removed",
            ExitCode.INTERRUPTED,
            f"{go_on} goes on, barnabas topic reassign --cancel takes back what is under way",
        ) from None


def _clear_left_throttles(admin: Admin, found: Survey, *, as_json: bool) -> None:
    """Remove throttles that a run which was killed left behind."""
    brokers = throttled_brokers(admin, found.cluster.live)
    if brokers:
        topics = throttled_topics(admin, sorted({state.topic for state in found.partitions}))
        clear_throttles(admin, topics, brokers)
        if not as_json:
            click.echo("Throttles that an earlier run left behind are removed.")


def _refusals(outcome: Outcome) -> CliError:
    first = outcome.refused[0]
    count = len(outcome.refused)
    more = "" if count == 1 else f" (and {count - 1} more)"
    return CliError(f"not moved: {first.message}{more}", first.code, first.hint)
