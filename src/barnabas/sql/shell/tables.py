"""Tables as ksqlDB's shell draws them."""

from __future__ import annotations

from collections.abc import Sequence


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of what is known whole: headings, rows, and lines of dashes around the rows."""
    cells = [list(headings), *(list(row) for row in rows)]
    widths = [
        max(len(line) for row in cells for line in _lines(row[index]))
        for index in range(len(headings))
    ]
    heading, *body = [_row(row, widths) for row in cells]
    rule = "-" * max(len(line) for row in (heading, *body) for line in row)
    drawn = [*heading, rule]
    for row in body:
        drawn += row
    return [line.rstrip() for line in [*drawn, rule]]


def _row(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    split = [_lines(cell) for cell in cells]
    height = max(map(len, split))
    return [
        " "
        + " | ".join(
            (lines[index] if index < len(lines) else "").ljust(width)
            for lines, width in zip(split, widths, strict=True)
        )
        + " "
        for index in range(height)
    ]


def _lines(cell: str) -> list[str]:
    return cell.splitlines() or [""]


class Grid:
    """A table whose rows arrive one by one, so that its widths cannot follow them.

    `width` is the terminal's; `column_width` is set by users, or 0. `wraps` says whether a long
    value goes on in the next line or is cut.
    """

    WIDTH_MIN = 5

    def __init__(
        self, headings: Sequence[str], width: int, *, column_width: int = 0, wraps: bool = True
    ) -> None:
        self._headings = headings
        count = max(1, len(headings))
        fitting = (width - 1) // count - 1
        self._width = column_width or max(self.WIDTH_MIN, fitting)
        self._wraps = wraps

    def head(self) -> list[str]:
        """The headings in their frame."""
        rule = "+" + "+".join("-" * self._width for _ in self._headings) + "+"
        return [rule, *self.row(self._headings), rule]

    def row(self, cells: Sequence[str]) -> list[str]:
        """The lines of one row."""
        parts = [self._parts(cell) for cell in cells]
        height = max(map(len, parts), default=0)
        return [
            "|"
            + "|".join(
                (part[index] if index < len(part) else "").ljust(self._width) for part in parts
            )
            + "|"
            for index in range(height)
        ]

    def _parts(self, cell: str) -> list[str]:
        width = self._width
        if not self._wraps:
            line = " ".join(cell.split("\n"))
            return [line if len(line) <= width else line[: width - 3] + "..."]
        parts = []
        for line in _lines(cell):
            parts += [line[start : start + width] for start in range(0, len(line), width)] or [""]
        return parts
