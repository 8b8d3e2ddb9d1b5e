"""Findings of `barnabas doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is; a FAULT makes the command's exit code 5."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's outcome, and what to do about it where something is to be done."""

    level: Level
    check: str
    detail: str
    advice: str = ""


def ok(check: str, detail: str) -> Finding:
    """Nothing to do."""
    return Finding(Level.OK, check, detail)


def note(check: str, detail: str, advice: str = "") -> Finding:
    """It works, and should be known."""
    return Finding(Level.NOTE, check, detail, advice)


def fault(check: str, detail: str, advice: str = "") -> Finding:
    """It does not work."""
    return Finding(Level.FAULT, check, detail, advice)
