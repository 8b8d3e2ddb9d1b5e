"""`barnabas topic reassign` and `elect-leaders`: replicas and leaders by hand."""

from typing import Any

import click

from barnabas.base.ids import TopicPartition
from barnabas.cli.balance.options import Wishes, move_options
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row, first_few, print_json
from barnabas.cli.reaching import reached


@click.command(
    "reassign",
    epilog="\b\nExamples:\n"
    "  barnabas topic reassign --plan plan.json --throttle 50MB\n"
    "  barnabas topic reassign --plan plan.json --verify\n"
    "  barnabas topic reassign --cancel\n\n"
    'A plan: {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}\n',
)
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(dir_okay=False),
    help="Plan in the JSON of kafka-reassign-partitions.",
)
@click.option("--verify", is_flag=True, help="Show the plan's progress; move nothing.")
@click.option(
    "--cancel",
    is_flag=True,
    help="Cancel moves under way: those of the plan, or all without a plan.",
)
@move_options
@connection_options
def reassign_command(
    connection: Connection,
    plan_path: str | None,
    verify: bool,
    cancel: bool,
    wishes: Wishes,
    as_json: bool,
) -> int:
    """Give partitions the replicas that a plan names.

    The first replica is the preferred leader. With --verify, the exit code is 5 until the plan is
    carried out.
    """
    from barnabas.cli.balance.flow import carry_out
    from barnabas.cli.balance.plan_file import moves_to, read_plan
    from barnabas.cli.balance.survey import survey

    if verify and cancel:
        raise CliError("give --verify or --cancel, not both", ExitCode.USAGE)
    if plan_path is None and not cancel:
        raise CliError("give --plan FILE", ExitCode.USAGE)
    wanted = None if plan_path is None else read_plan(plan_path)
    with reached(connection) as admin:
        if cancel:
            return _cancel(admin, wanted, wishes, as_json=as_json)
        assert wanted is not None, "without --cancel there is a plan"
        if verify:
            return _verify(admin, wanted, as_json=as_json)
        surveyed = survey(admin)
        moves = moves_to(surveyed, wanted)
        again = f"barnabas topic reassign --plan {plan_path}"
        value = carry_out(admin, surveyed, moves, wishes, as_json=as_json, go_on=again)
    if as_json:
        print_json(value)
    return ExitCode.DONE


def _verify(admin: Any, wanted: dict[TopicPartition, tuple[int, ...]], *, as_json: bool) -> int:
    from barnabas.cli.admin import partitions, reassignments

    ongoing = reassignments(admin)
    # All are asked for: one that was deleted would be the end of a question that names it.
    states = {state.key: state for state in partitions(admin)}
    rows: list[Row] = []
    for key, replicas in sorted(wanted.items()):
        state = states.get(key)
        if state is None:
            said = "there is no such partition"
        elif key in ongoing:
            said = "under way"
        elif state.replicas == replicas:
            said = "done"
        else:
            said = "not begun"
        current = None if state is None else list(state.replicas)
        rows.append(
            {"partition": str(key), "wanted": list(replicas), "replicas": current, "state": said}
        )
    Output(as_json).rows(rows, ("partition", "wanted", "replicas", "state"))
    return ExitCode.DONE if all(row["state"] == "done" for row in rows) else ExitCode.PROBLEMS


def _cancel(
    admin: Any,
    wanted: dict[TopicPartition, tuple[int, ...]] | None,
    wishes: Wishes,
    *,
    as_json: bool,
) -> int:
    from barnabas.cli.admin import reassign, reassignments
    from barnabas.cli.balance.throttles import clear_throttles
    from barnabas.cli.prompts import confirm

    ongoing = reassignments(admin)
    keys = [key for key in ongoing if wanted is None or key in wanted]
    rows: list[Row] = [{"partition": str(key), "cancelled": not wishes.is_dry_run} for key in keys]
    if keys and not wishes.is_dry_run:
        confirm(f"Cancel the moves of {first_few(keys)}?", wishes.is_agreed)
        refused = reassign(admin, dict.fromkeys(keys))
        for key in refused:
            rows[keys.index(key)]["cancelled"] = False
        clear_throttles(admin, {key.topic for key in keys}, admin.cluster().live)
        for error in refused.values():
            # Moves that have ended, or whose topics were deleted, are no longer under way, as
            # requested.
            has_ended = "[NO_REASSIGNMENT_IN_PROGRESS]" in error.message
            if not has_ended and error.code is not ExitCode.NOT_FOUND:
                raise error
    Output(as_json).rows(rows, ("partition", "cancelled"), "Nothing is being moved.")
    return ExitCode.DONE


@click.command(
    "elect-leaders",
    epilog="\b\nExamples:\n  barnabas topic elect-leaders\n"
    "  barnabas topic elect-leaders orders --partition 0\n"
    "  barnabas topic elect-leaders orders --partition 0 --unclean --yes\n",
)
@click.argument("names", nargs=-1)
@click.option("--partition", "-p", "chosen", type=int, multiple=True, help="Only this partition.")
@click.option(
    "--unclean",
    is_flag=True,
    help="If no in-sync replica is alive, elect another one; the records that it lacks are lost.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@connection_options
def elect_leaders_command(
    connection: Connection,
    names: tuple[str, ...],
    chosen: tuple[int, ...],
    unclean: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Elect the preferred leaders of NAMES, or of all topics.

    Exit code 5 if some could not be elected.
    """
    from barnabas.cli.admin import PREFERRED, UNCLEAN, elect, partitions
    from barnabas.cli.prompts import confirm

    if (chosen or unclean) and not names:
        raise CliError("name the topic", ExitCode.USAGE)
    with reached(connection) as admin:
        states = partitions(admin, list(names) or None)
        _require_partitions(names, chosen, {state.key for state in states})
        keys = [state.key for state in states if not chosen or state.index in chosen]
        if unclean:
            leaderless = [state.key for state in states if state.leader < 0]
            keys = [key for key in keys if key in leaderless]
            confirm(f"Elect replicas that may lack records for {len(keys)} partitions?", yes)
        outcome = elect(admin, keys, UNCLEAN if unclean else PREFERRED) if keys else {}
        elected = {key for key, error in outcome.items() if error is None}
        leaders = _leaders_once_known(admin, names, elected, unclean=unclean)
    before = {state.key: state.leader for state in states}
    rows: list[Row] = [
        {
            "partition": str(key),
            "leader": leaders.get(key),
            "was": before.get(key),
            "error": None if error is None else error.message,
        }
        for key, error in sorted(outcome.items())
        if error is not None or leaders.get(key) != before.get(key)
    ]
    Output(as_json).rows(
        rows, ("partition", "leader", "was", "error"), "The right replicas already lead."
    )
    return ExitCode.PROBLEMS if any(row["error"] for row in rows) else ExitCode.DONE


def _leaders_once_known(
    admin: Any, names: tuple[str, ...], elected: set[TopicPartition], *, unclean: bool
) -> dict[TopicPartition, int]:
    """The leaders, once the node that is asked has heard from the controller who was elected."""
    from barnabas.cli.admin import partitions
    from barnabas.kafka.wire_routing import PartitionState

    found: list[PartitionState] = []

    def is_known() -> bool:
        found[:] = partitions(admin, list(names) or None)
        return all(
            state.leader >= 0 if unclean else state.leader == state.replicas[0]
            for state in found
            if state.key in elected
        )

    admin.wait_until(is_known, admin.timeout_s)
    return {state.key: state.leader for state in found}


def _require_partitions(
    names: tuple[str, ...], chosen: tuple[int, ...], known: set[TopicPartition]
) -> None:
    for name in names:
        for number in chosen:
            if TopicPartition(name, number) not in known:
                raise CliError(f"there is no partition {name}-{number}", ExitCode.NOT_FOUND)
