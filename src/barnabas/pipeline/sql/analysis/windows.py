"""Windows of aggregates and joins: what they can be, and how keys of their results are windowed."""

from __future__ import annotations

from barnabas.pipeline.sql.errors import AnalysisError
from barnabas.pipeline.sql.plan.steps import WindowInfo
from barnabas.pipeline.sql.syntax.tree import Window, WindowKind, Within

WINDOWS_MAX = 100_000
"""How many windows a record may fall into: each of them is one row of state and one record out."""

DURATION_MAX_MS = 2**62
"""Sums of two durations stay within 64 bits."""


def window_of(window: Window | None) -> WindowInfo | None:
    """How the keys of a window's result are windowed."""
    if window is None:
        return None
    return WindowInfo(window.kind, None if window.kind is WindowKind.SESSION else window.size_ms)


def check_window(window: Window) -> None:
    """Raise AnalysisError for a WINDOW clause that makes no windows, or too many."""
    what = "The gap of a session" if window.kind is WindowKind.SESSION else "The size of a window"
    if window.size_ms <= 0:
        raise AnalysisError(f"{what} must be larger than zero.", window.place)
    if not 0 < window.advance_ms <= window.size_ms:
        raise AnalysisError(
            "The advance of a hopping window must be larger than zero, and not larger than its "
            "size.",
            window.place,
        )
    if window.size_ms // window.advance_ms > WINDOWS_MAX:
        raise AnalysisError(
            f"A record would fall into more than {WINDOWS_MAX} windows. Use a larger advance.",
            window.place,
        )
    for name, duration_ms in (
        ("size", window.size_ms),
        ("retention", window.retention_ms),
        ("grace period", window.grace_ms),
    ):
        _check_duration(f"The {name} of a window", duration_ms, window)


def check_within(within: Within) -> None:
    """Raise AnalysisError for a WITHIN clause in which no two records can meet."""
    for duration_ms in (within.before_ms, within.after_ms, within.grace_ms):
        _check_duration("A duration of WITHIN", duration_ms, within)


def _check_duration(what: str, duration_ms: int | None, clause: Window | Within) -> None:
    if duration_ms is not None and not 0 <= duration_ms <= DURATION_MAX_MS:
        problem = "be negative" if duration_ms < 0 else "be so long"
        raise AnalysisError(f"{what} must not {problem}.", clause.place)
