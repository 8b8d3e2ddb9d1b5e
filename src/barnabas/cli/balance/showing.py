"""Plans and their progress as people see them."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.balance.execution import Progress
from barnabas.cli.balance.model import Load, Move, moved_bytes
from barnabas.cli.output import Row, print_table
from barnabas.cli.units import format_bytes

if TYPE_CHECKING:
    from rich.progress import TaskID

MOVES_SHOWN_MAX = 20
LINE_EVERY_S = 5.0


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
