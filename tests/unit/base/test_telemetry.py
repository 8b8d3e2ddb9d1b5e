"""How a line of telemetry looks, whatever is in it."""

import logging
import sys

import pytest

from barnabas.base.telemetry import LineFormatter


def line(message: str, *arguments: object, **more: object) -> str:
    record = logging.LogRecord("barnabas.x", logging.INFO, "", 0, message, arguments, None)
    record.__dict__.update(more)
    return LineFormatter().format(record)


@pytest.mark.parametrize("trick", ["\n", "\r\n", "\x1b[2K", "\u2028", "\x85", "\b"])
def test_what_a_client_says_makes_no_line_of_its_own(trick: str) -> None:
    told = line("group %s is empty", f"a{trick}2026-01-01T00:00:00+0000 CRITICAL barnabas: gone")
    assert len(told.splitlines()) == 1
    assert told.isprintable()


def test_letters_stay_as_they_are() -> None:
    assert line("topic %s", "Grüße 訂單").endswith("barnabas.x: topic Grüße 訂單")


def test_a_traceback_has_lines() -> None:
    try:
        raise ValueError
    except ValueError:
        assert len(line("failed", exc_info=sys.exc_info()).splitlines()) > 1
