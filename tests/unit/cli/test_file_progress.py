"""The bar of `barnabas produce FILE`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from barnabas.cli.records.produce import STEP_SIZE_BYTES, FileProgress

LINE = b"x" * 99 + b"\n"
LINES = 5 * STEP_SIZE_BYTES // len(LINE)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "records.txt"
    path.write_bytes(LINE * LINES)
    return path


def read(path: Path) -> tuple[int, FileProgress]:
    progress = FileProgress([str(path)])
    with path.open("rb") as file, progress:
        return sum(1 for _ in progress.counted(file, str(path))), progress


def test_a_terminal_sees_how_far_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    count, progress = read(path)
    assert count == LINES
    (task,) = progress._bar.tasks
    assert (task.completed, task.total) == (path.stat().st_size, path.stat().st_size)
    assert "records.txt" in shown.getvalue()


def test_nobody_else_does(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    assert read(path)[0] == LINES
    assert shown.getvalue() == ""
