"""Nothing is left behind by a broker whose terminal is closed, or whose program just ends."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.child_signals import usual_signals
from support.patience import PATIENCE_S

ENDING_PROGRAM = """
import barnabas
cluster = barnabas.Cluster().start()
print(cluster.directory, flush=True)
"""


def _left(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_a_program_that_ends_without_stop_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING_PROGRAM],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(tmp_path))
    assert _left(tmp_path) == []


def _dev(tmp_path: Path, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "barnabas", "dev", "--port", "0", "--json", *arguments]
    return subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
        **options,
    )


@pytest.mark.parametrize("nodes", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_dev_ends_cleanly_with_its_terminal(tmp_path: Path, nodes: int) -> None:
    ours, theirs = pty.openpty()
    with usual_signals():
        process = _dev(tmp_path, "--nodes", str(nodes), stdin=theirs, stderr=theirs)
    with process:
        os.close(theirs)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ready"]
        assert _left(tmp_path) != []
        os.close(ours)
        for _ in range(2):  # the terminal's and the shell's
            process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE_S) == 0
    assert _left(tmp_path) == []


def test_dev_under_nohup_goes_on(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = _dev(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ready"]
        process.send_signal(signal.SIGHUP)
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():
            ignored = next(line for line in status.read_text().splitlines() if "SigIgn" in line)
            assert int(ignored.split()[1], 16) >> (signal.SIGHUP - 1) & 1
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert _left(tmp_path) == []
