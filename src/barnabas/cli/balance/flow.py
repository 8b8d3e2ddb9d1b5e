"""Flow of every command that moves replicas: show the plan, confirm, execute, report.

Also plans and their progress as people see them.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from barnabas.base.ids import TopicPartition
from barnabas.cli.admin import Admin
from barnabas.cli.balance.execution import Execution, Outcome, Progress
from barnabas.cli.balance.model import Load, Move, loads, moved_bytes
from barnabas.cli.balance.options import Wishes
from barnabas.cli.balance.plan_file import to_document
from barnabas.cli.balance.survey import Survey
from barnabas.cli.balance.throttles import clear_throttles, throttled_brokers, throttled_topics
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Row, first_few, print_table, read_or_not, say
from barnabas.cli.prompts import confirm
from barnabas.cli.units import format_bytes

if TYPE_CHECKING:
    from rich.progress import TaskID

MOVES_SHOWN_MAX = 20
LINE_EVERY_S = 5.0


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
    moves, stuck = _split(found, moves)
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
        "stuck": [str(move) for move in stuck],
        "plan": to_document(moves),
        "done": False,
    }
    if not as_json:
        if in_flight:
            say(f"{len(in_flight)} partitions are being moved already.")
        if moves:
            with read_or_not():
                print_plan(moves, before, after)
        elif not in_flight and not stuck:
            say("Nothing has to move.")
    if wishes.is_dry_run:
        if stuck and not as_json:
            click.echo(_stuck(found, stuck).line(), err=True)
        return value
    if moves:
        confirm("Move them?", wishes.is_agreed)
    _clear_left_throttles(admin, found, as_json=as_json)
    outcome = Outcome()
    if moves or in_flight:
        outcome = _execute(admin, found, moves, wishes, as_json=as_json, go_on=go_on)
    failure = _failure(outcome, go_on)
    if failure is None and stuck:
        failure = _stuck(found, stuck)
    if failure is not None:
        raise failure
    if not moves and not in_flight:
        return {**value, "done": True}
    if not as_json:
        if outcome.deleted:
            say(f"Deleted during the run, and skipped: {first_few(outcome.deleted)}.")
        say(f"Done: {len(outcome.moved)} partitions are where they should be.")
    return {
        **value,
        "done": True,
        "moved": len(outcome.moved),
        "deleted": [str(move) for move in outcome.deleted],
    }


def _split(found: Survey, moves: Sequence[Move]) -> tuple[list[Move], list[Move]]:
    """Return what can be moved, and what cannot: without a leader there is nobody to copy from."""
    leaderless = {state.key for state in found.partitions if state.leader < 0}
    able: list[Move] = []
    stuck: list[Move] = []
    for move in moves:
        is_stuck = move.adding and TopicPartition(move.topic, move.index) in leaderless
        (stuck if is_stuck else able).append(move)
    return able, stuck


def _stuck(found: Survey, stuck: Sequence[Move]) -> CliError:
    down = {broker for move in stuck for broker in move.before} - set(found.cluster.live)
    first = f"start {_nodes(sorted(down))}" if down else "run barnabas doctor"
    return CliError(
        f"not moved: {first_few(stuck)}, which have no leader to copy from",
        hint=f"{first}; if that is lost for good, delete the topics, or take what is left: "
        "barnabas topic elect-leaders TOPIC --unclean",
    )


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
        with _ended_as_by_ctrl_c(), view.running():
            return execution.run()
    except KeyboardInterrupt:
        silent = execution.outcome.still_throttled
        raise CliError(
            f"interrupted: the cluster is still moving {execution.running} partitions, "
            f"{execution.waiting} were not started; throttles are removed"
            + (f", except from {_nodes(silent)}" if silent else ""),
            ExitCode.INTERRUPTED,
            f"{go_on} continues, barnabas topic reassign --cancel cancels what is under way",
        ) from None


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM, and SIGHUP of a terminal that is closed, do what Ctrl-C does.

    If they are ignored (nohup), or outside a main thread, nothing changes. In the
    background of a script Ctrl-C is ignored, and the others are not.
    """

    def interrupt(*_: object) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _clear_left_throttles(admin: Admin, found: Survey, *, as_json: bool) -> None:
    """Remove throttles that another run left behind, of topics that it was done with too."""
    brokers = throttled_brokers(admin, found.cluster.live)
    if brokers:
        topics = throttled_topics(admin, sorted({state.topic for state in found.partitions}))
        clear_throttles(admin, topics, brokers)
        if not as_json:
            say("Removed the throttles that an earlier run left behind.")


def _failure(outcome: Outcome, go_on: str) -> CliError | None:
    """The failures of a run."""
    if outcome.refused:
        first = outcome.refused[0]
        count = len(outcome.refused)
        more = "" if count == 1 else f" (and {count - 1} more)"
        hint = first.hint or f"{go_on} continues"
        return CliError(f"not moved: {first.message}{more}", first.code, hint)
    if outcome.changed:
        return CliError(
            f"cancelled or changed by somebody else: {first_few(outcome.changed)}",
            hint=f"{go_on} looks again",
        )
    if outcome.still_throttled:
        return CliError(
            f"all is moved, but {_nodes(outcome.still_throttled)} did not answer and may still be "
            "throttled",
            ExitCode.UNREACHABLE,
            "barnabas rebalance removes the throttle once they answer",
        )
    return None


def _nodes(ids: Sequence[int]) -> str:
    return f"node{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def print_plan(moves: Sequence[Move], before: Sequence[Load], after: Sequence[Load]) -> None:
    """The moves, what each node holds before and after, and the sum."""
    rows: list[Row] = [
        {
            "partition": str(move),
            "replicas": list(move.before),
            "will_be": list(move.after),
            "moves": format_bytes(move.moved_bytes) if move.adding else "order only",
        }
        for move in moves[:MOVES_SHOWN_MAX]
    ]
    print_table(rows, ("partition", "replicas", "will_be", "moves"))
    if len(moves) > MOVES_SHOWN_MAX:
        click.echo(f"... and {len(moves) - MOVES_SHOWN_MAX} more (--json shows all)")
    click.echo()
    print_table(load_rows(before, after), ("node", "replicas", "leaders", "size"))
    click.echo()
    click.echo(summary(moves))


def load_rows(before: Sequence[Load], after: Sequence[Load]) -> list[Row]:
    """Nodes with what they hold, `3 -> 5` where that changes."""

    def change(old: str, new: str) -> str:
        return old if old == new else f"{old} -> {new}"

    return [
        {
            "node": old.broker,
            "replicas": change(str(old.replicas), str(new.replicas)),
            "leaders": change(str(old.leaders), str(new.leaders)),
            "size": change(format_bytes(old.size_bytes), format_bytes(new.size_bytes)),
        }
        for old, new in zip(before, after, strict=True)
    ]


def summary(moves: Sequence[Move]) -> str:
    """A plan in one line."""
    copies = sum(len(move.adding) for move in moves)
    orders = sum(not move.adding for move in moves)
    text = f"{len(moves)} partitions change: {copies} replicas move"
    if copies:
        text += f", {format_bytes(moved_bytes(moves))}"
    return text + (f"; {orders} only get another preferred leader" if orders else "")


class ProgressView:
    """Shows progress on standard error: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._bar: Any = None
        self._task: TaskID | None = None
        self._said_at = float("-inf")
        self._waiting_for: tuple[int, ...] = ()

    @contextmanager
    def running(self) -> Iterator["ProgressView"]:
        """While this lasts, the bar is on the screen."""
        if not self._shown or not sys.stderr.isatty():
            yield self
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            self._bar = bar
            self._task = bar.add_task("moving", total=None)
            yield self
        self._bar = None

    def update(self, progress: Progress) -> None:
        """Show how far it is."""
        if not self._shown:
            return
        # Partitions count too: most of them may be empty.
        total = progress.bytes_total + progress.partitions_total
        done = progress.bytes_done + progress.partitions_done
        text = progress_text(progress)
        if self._bar is not None:
            self._bar.update(self._task, total=total, completed=done, description=text)
            waiting = waiting_text(progress)
            if waiting and progress.waiting_for != self._waiting_for:
                self._bar.console.print(waiting)  # above the bar, which may be cut off
            self._waiting_for = progress.waiting_for
            return
        waiting = waiting_text(progress)
        text += f"; {waiting}" if waiting else ""
        if time.monotonic() - self._said_at >= LINE_EVERY_S:
            self._said_at = time.monotonic()
            click.echo(text, err=True)


def progress_text(progress: Progress) -> str:
    """Return how far a run is, in words."""
    text = f"{progress.partitions_done} of {progress.partitions_total} partitions"
    if progress.bytes_total:
        text += f", {format_bytes(progress.bytes_done)} of {format_bytes(progress.bytes_total)}"
    return text


def waiting_text(progress: Progress) -> str:
    """Return which nodes keep a run from going on, in words; empty if none does."""
    down = ", ".join(map(str, progress.waiting_for))
    return f"waiting for nodes that are down: {down}" if down else ""
