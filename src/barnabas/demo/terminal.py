"""The demo's terminal: a line per part while it runs, a table of figures at its end.

Where the output is not a terminal, each change of a part's state becomes one line, and so does its
text about every ten seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from barnabas.demo.outcome import Check

_PLAIN_REPEAT_SECONDS = 10.0
_MARKS = {"working": "…", "ready": "✓", "done": "✓", "failed": "✗", "waiting": "·"}
_COLOURS = {"ready": "green", "done": "green", "failed": "bold red", "waiting": "bright_black"}


@dataclass(slots=True)
class _Part:
    name: str
    state: str = "waiting"
    text: str = ""
    printed_at: float = 0.0


class Screen:
    """The demo's parts and their states, drawn live or printed line by line."""

    def __init__(self, console: Console, parts: list[str]) -> None:
        self.console = console
        self._parts = {name: _Part(name) for name in parts}
        self._spinner = Spinner("dots", style="cyan")
        self._headline = ""
        self._fraction: float | None = None
        self._live: Live | None = None

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._live = Live(
                get_renderable=self._render, console=self.console, refresh_per_second=8
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.freeze()

    def freeze(self) -> None:
        """Leave the lines as they are and give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def part(self, name: str, state: str, text: str) -> None:
        """Say how one part is doing: waiting, working, ready, done or failed."""
        part = self._parts[name]
        changed = state != part.state
        part.state, part.text = state, text
        if self.console.is_terminal:
            return
        now = time.monotonic()
        if changed or now - part.printed_at >= _PLAIN_REPEAT_SECONDS:
            part.printed_at = now
            self._print_line(f"{_MARKS[state]} {name}: {text}")

    def headline(self, text: str, fraction: float | None = None) -> None:
        """Set the line above the parts, and how much of a bounded run is done (0 to 1)."""
        if text != self._headline and not self.console.is_terminal:
            self._print_line(text)
        self._headline, self._fraction = text, fraction

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.console.print(line, highlight=False)

    def failure(self, title: str, advice: str, log_path: str, log_tail: str) -> None:
        """Print what failed, the end of its log and what to do."""
        body = Text(log_tail or "(its log is empty)", overflow="fold")
        self.console.print(Panel(body, title=log_path, title_align="left", border_style="red"))
        self.console.print(Text(title, style="bold red"))
        if advice:
            self.console.print(Text(advice))

    def summary(self, checks: list[Check]) -> None:
        """Print each figure beside its truth."""
        table = Table(title="Figures shown, held against the truth", title_justify="left")
        table.add_column("figure")
        table.add_column("shown", justify="right")
        table.add_column("truth", justify="right")
        table.add_column("")
        for check in checks:
            mark = Text("✓", style="green") if check.right else Text("✗ wrong", style="bold red")
            table.add_row(check.name, check.shown, check.truth, mark)
        self.console.print(table)

    def _print_line(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _render(self) -> Group:
        rows = Table.grid(padding=(0, 1))
        rows.add_column(width=2)
        rows.add_column(style="bold", min_width=10)
        rows.add_column(overflow="fold")
        for part in self._parts.values():
            mark = (
                self._spinner
                if part.state == "working"
                else Text(_MARKS[part.state], style=_COLOURS[part.state])
            )
            rows.add_row(mark, part.name, Text(part.text))
        head: list[Text | ProgressBar] = [Text(self._headline, style="bold")]
        if self._fraction is not None:
            head.append(ProgressBar(total=1.0, completed=self._fraction, width=60))
        return Group(*head, rows)
