"""Lines that peers cause are bounded, and what is left out is counted."""

from __future__ import annotations

import logging

import pytest

from barnabas.base.peer_lines import LINES_MAX, REASONS_MAX, WINDOW_S, PeerLines, because

FRAME, LOGIN = "closing %s: %s", "login of %s failed"


class Log:
    """A log behind the filter; collects the lines that are written."""

    def __init__(self, *, repeats: bool = True) -> None:
        self._lines = PeerLines(repeats=repeats)
        self.written: list[str] = []

    def add(
        self, at_s: float, text: str, *names: str, level: int = logging.WARNING, reason: str = ""
    ) -> None:
        record = logging.LogRecord("net", level, "", 0, text, names, None)
        record.created = at_s
        record.__dict__.update(because(reason))
        if self._lines.filter(record):
            self.written.append(record.getMessage())


def test_a_flood_of_one_kind_is_cut_and_counted() -> None:
    log = Log()
    for number in range(LINES_MAX + 500):
        log.add(1000.0, FRAME, f"10.0.0.{number}", "no frame")
    assert len(log.written) == LINES_MAX
    log.add(1000.0, LOGIN, "alice")
    assert log.written[-1] == "login of alice failed"
    log.add(1000.0 + WINDOW_S, FRAME, "10.1.1.1", "no frame")
    left_out = "(500 lines like this were left out before)"
    assert log.written[-1] == f"closing 10.1.1.1: no frame {left_out}"
    log.add(1000.0 + WINDOW_S, FRAME, "10.1.1.2", "no frame")
    assert log.written[-1] == "closing 10.1.1.2: no frame"


def test_one_reason_does_not_hide_another() -> None:
    log = Log()
    for _ in range(LINES_MAX + 1):
        log.add(1000.0, FRAME, "10.0.0.1", "expired", reason="expired")
    log.add(1000.0, FRAME, "10.0.0.2", "plain text", reason="plain text")
    assert log.written[-1] == "closing 10.0.0.2: plain text"


def test_reasons_that_peers_make_up_are_bounded_together() -> None:
    log = Log()
    for number in range(10 * LINES_MAX):
        log.add(1000.0, FRAME, "10.0.0.1", str(number), reason=str(number))
    assert len(log.written) == REASONS_MAX + LINES_MAX


@pytest.mark.parametrize("later_s", [WINDOW_S, -1.0], ids=["a minute", "a clock set back"])
def test_another_window_begins(later_s: float) -> None:
    log = Log()
    for at_s in (1000.0, 1000.0 + later_s):
        for _ in range(LINES_MAX):
            log.add(at_s, LOGIN, "alice")
    assert len(log.written) == 2 * LINES_MAX


def test_the_same_text_is_written_once_a_window() -> None:
    log = Log(repeats=False)
    for at_s in range(300):  # a client that tries five times a second, for a minute
        for name in ("alice", "bob"):
            log.add(1000.0 + at_s / 5, LOGIN, name)
    assert log.written == ["login of alice failed", "login of bob failed"]
    log.add(1000.0 + WINDOW_S, LOGIN, "alice")
    assert log.written[-1] == "login of alice failed (598 lines like this were left out before)"


def test_what_is_no_warning_is_not_bounded() -> None:
    log = Log()
    for _ in range(LINES_MAX + 1):
        log.add(1000.0, LOGIN, "alice", level=logging.INFO)
    assert len(log.written) == LINES_MAX + 1
