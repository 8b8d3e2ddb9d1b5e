"""The chart of a result: for each figure, how many times better Barnabas is, as an SVG."""

import math
from typing import Any
from xml.sax.saxutils import escape

from bench.figures import Comparison

WIDTH = 860
ROW_HEIGHT = 26
LABEL_WIDTH = 320
VALUE_WIDTH = 70
TOP = 64
BOTTOM = 42
BETTER = "#2f7d4f"
WORSE = "#b5482f"
INK = "#24292f"
FAINT = "#8b949e"
RANGE_MIN = 4.0
"""The axis reaches at least this many times better and worse."""


def draw_chart(comparisons: list[Comparison], result: dict[str, Any]) -> str:
    """Bars on a logarithmic axis from 'as Kafka': right is better, whatever the unit."""
    gains = [_gain(comparison) for comparison in comparisons]
    reach = max(RANGE_MIN, *(max(gain, 1 / gain) for gain in gains))
    axis = _Axis(reach)
    height = TOP + ROW_HEIGHT * len(comparisons) + BOTTOM
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
        ),
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        (
            f'<text x="16" y="26" font-size="16" font-weight="600">Barnabas beside Apache Kafka '
            f"{escape(str(result['machine']['kafka']))}: times better</text>"
        ),
        *axis.grid(height),
    ]
    for index, (comparison, gain) in enumerate(zip(comparisons, gains, strict=True)):
        parts += _bar(comparison, gain, TOP + ROW_HEIGHT * index, axis)
    machine = result["machine"]
    caption = f"{result['date'][:10]}, {machine['cpu']}, {machine['cores']} cores; medians"
    parts += [
        f'<text x="16" y="{height - 14}" font-size="11" fill="{FAINT}">{escape(caption)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Axis:
    """Positions of gains; 1 is in the place that leaves both sides what they need."""

    def __init__(self, reach: float) -> None:
        self._reach = math.log(reach)
        self._left = LABEL_WIDTH
        self._right = WIDTH - VALUE_WIDTH

    def x(self, gain: float) -> float:
        share = (math.log(gain) / self._reach + 0.35) / 1.35
        return self._left + max(0.0, share) * (self._right - self._left)

    def grid(self, height: int) -> list[str]:
        parts = []
        for gain in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64):
            x = self.x(gain)
            if not self._left < x <= self._right:
                continue
            dash = "" if gain == 1 else ' stroke-dasharray="2 4"'
            label = "as Kafka" if gain == 1 else f"{gain:g}×"
            parts += [
                (
                    f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - BOTTOM + 4}" '
                    f'stroke="{FAINT}"{dash}/>'
                ),
                (
                    f'<text x="{x:.1f}" y="{TOP - 12}" font-size="11" fill="{FAINT}" '
                    f'text-anchor="middle">{label}</text>'
                ),
            ]
        return parts


def _bar(comparison: Comparison, gain: float, y: int, axis: _Axis) -> list[str]:
    start, end = sorted((axis.x(1), axis.x(gain)))
    colour = BETTER if gain >= 1 else WORSE
    value_x = max(end, axis.x(1)) + 6
    return [
        (
            f'<text x="{LABEL_WIDTH - 10}" y="{y + 17}" text-anchor="end">'
            f"{escape(comparison.figure.label)}</text>"
        ),
        (
            f'<rect x="{start:.1f}" y="{y + 5}" width="{max(end - start, 1):.1f}" '
            f'height="{ROW_HEIGHT - 10}" rx="2" fill="{colour}"/>'
        ),
        f'<text x="{value_x:.1f}" y="{y + 17}" font-weight="600">{gain:.2f}×</text>',
    ]


def _gain(comparison: Comparison) -> float:
    """How many times better: the ratio, turned round where less is better."""
    ratio = max(comparison.ratio, 1e-6)
    return ratio if comparison.figure.more_is_better else 1 / ratio
