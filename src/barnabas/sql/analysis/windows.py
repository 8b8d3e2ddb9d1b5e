"""Durations in WINDOW and WITHIN clauses: which make sense."""

from __future__ import annotations

from dataclasses import replace

from barnabas.sql.errors import AnalysisError
from barnabas.sql.syntax.tree import Emit, Query, Window, WindowKind, Within

WINDOWS_MAX = 100_000
"""The number of windows that a record may fall into. Each is a row of state and a record out."""

DURATION_MAX_MS = 2**62
"""A time and a duration together stay within 64 bits."""


def checked_window(query: Query) -> Window | None:
    """The query's window; with EMIT FINAL, one without GRACE PERIOD closes at once. Raises
    AnalysisError for one that no record or every record would be in."""
    window = query.window
    if window is None:
        return None
    is_session = window.kind is WindowKind.SESSION
    if window.size_ms <= 0:
        what = "Gap time of a session" if is_session else "Window size"
        raise AnalysisError(f"{what} must be larger than zero.", window.place)
    if not 0 < window.advance_ms <= window.size_ms:
        raise AnalysisError(
            "Window advancement interval should be more than zero and no more than window duration "
            f"which is {window.size_ms} ms, but given advancement interval is: "
            f"{window.advance_ms} ms",
            window.place,
        )
    if window.size_ms // window.advance_ms > WINDOWS_MAX:
        raise AnalysisError(
            f"A record would fall into more than {WINDOWS_MAX} windows. Use a larger advance.",
            window.place,
        )
    for duration_ms in (window.size_ms, window.retention_ms, window.grace_ms):
        _check_length(duration_ms, window)
    _check_grace(window.grace_ms, window)
    if window.retention_ms is not None and window.retention_ms <= 0:
        raise AnalysisError("Retention must be larger than zero.", window.place)
    if query.emit is Emit.FINAL and window.grace_ms is None:
        return replace(window, grace_ms=0)
    return window


def check_within(within: Within | None) -> None:
    """Raise AnalysisError for a join window that no two records could be in."""
    if within is None:
        return
    if within.before_ms + within.after_ms < 0:
        raise AnalysisError("Window interval of a join must not be negative.", within.place)
    for duration_ms in (within.before_ms, within.after_ms, within.grace_ms):
        _check_length(duration_ms, within)
    _check_grace(within.grace_ms, within)


def _check_grace(grace_ms: int | None, clause: Window | Within) -> None:
    if grace_ms is not None and grace_ms < 0:
        raise AnalysisError("Grace period must not be negative.", clause.place)


def _check_length(duration_ms: int | None, clause: Window | Within) -> None:
    if duration_ms is not None and abs(duration_ms) > DURATION_MAX_MS:
        raise AnalysisError("A duration is too long.", clause.place)
