"""The format of a line of telemetry, as text and JSON, with any content."""

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from barnabas.base.telemetry import JsonFormatter, LineFormatter, Logs


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


def event(message: str, *arguments: object, **more: object) -> dict[str, Any]:
    record = logging.LogRecord("barnabas.x", logging.WARNING, "", 0, message, arguments, None)
    record.__dict__.update(more)
    text = JsonFormatter().format(record)
    assert text.isprintable()
    found: dict[str, Any] = json.loads(text)
    return found


def test_an_event_as_json() -> None:
    assert event("topic %s", "Grüße", created=1.5, msecs=500) == {
        "timestamp": "1970-01-01T00:00:01.500Z",
        "level": "WARNING",
        "logger": "barnabas.x",
        "message": "topic Grüße",
    }


@pytest.mark.parametrize(
    "trick", ["\n", "\r\n", "\x1b[2K", "\u2028", "\x85", '"', "\\", "\U000e0001"]
)
def test_what_a_client_says_stays_in_its_field(trick: str) -> None:
    assert event("group %s is empty", f'a{trick}", "level": "X')["message"] == (
        f'group a{trick}", "level": "X is empty'
    )


def test_a_traceback_is_a_field() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        found = event("failed", exc_info=sys.exc_info())
    assert found["message"] == "failed"
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith("ValueError: wrong")


def test_warnings_of_other_packages_are_json_too() -> None:
    program = """
import logging, warnings
from barnabas.base.telemetry import Logs, configure
configure(Logs("info", "json"))
logging.getLogger("barnabas.a").info("one")
logging.getLogger("barnabas.a").debug("not shown")
logging.getLogger("asyncio").error("two")
logging.getLogger("asyncio").info("not shown")
warnings.warn("three")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    events = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [(each["logger"], each["level"]) for each in events] == [
        ("barnabas.a", "INFO"),
        ("asyncio", "ERROR"),
        ("py.warnings", "WARNING"),
    ]


def test_flags_of_a_child_command() -> None:
    assert Logs().flags() == ["--log-level", "info", "--log-format", "text"]
    assert Logs(format="json").quieter() == Logs("warning", "json")
    assert Logs("debug").quieter() == Logs("debug")
