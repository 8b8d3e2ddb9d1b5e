"""How help texts look: headings and names in colour on a terminal.

https://no-color.org: with NO_COLOR set, and where TERM is dumb, all is plain. What goes into a
pipe or a file is plain too: click takes the colours out there.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

import click


def has_colour() -> bool:
    """Return whether the environment allows colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, **style: object) -> str:
    """`text` in a style of `click.style`, where colours are allowed."""
    return click.style(text, **style) if has_colour() else text  # type: ignore[arg-type]  # handed on


class Formatter(click.HelpFormatter):
    """Help with bold headings; names of options and commands are cyan."""

    def write_heading(self, heading: str) -> None:
        super().write_heading(styled(heading, bold=True))

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, styled(prefix or "Usage: ", bold=True))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        named = [(styled(name, fg="cyan"), text) for name, text in rows]
        super().write_dl(named, col_max, col_spacing)


class HelpContext(click.Context):
    """A command's context, whose help is written so."""

    formatter_class = Formatter


def use_colours(command: click.Command) -> None:
    """Have `command`, and all commands in it, show their help so."""
    command.context_class = HelpContext
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            use_colours(inner)


def write_sections(
    formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]
) -> None:
    """Lists of (name, summary) under headings; all summaries begin in one column."""
    width = max(len(name) for rows in sections.values() for name, _ in rows)
    for heading, rows in sections.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows])
