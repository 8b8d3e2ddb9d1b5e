"""The lock of a log directory holds against record locks, as Java takes them, and against our own.

`tests/clients/test_java_directory_lock.py` asks Kafka's own class.
"""

import errno
import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.disk import DirectoryInUseError
from barnabas.base.local_disk import LocalDisk

RECORD_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "r+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("refused", flush=True)
else:
    print("taken", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / ".lock"
    file.touch()
    return str(file)


def _outsider(path: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RECORD_LOCK, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _is_refused(path: str) -> bool:
    with _outsider(path) as outsider:
        return outsider.communicate()[0] == "refused\n"


def test_who_holds_a_record_lock_is_seen(path: str) -> None:
    disk = LocalDisk()
    with _outsider(path) as outsider:
        assert outsider.stdout is not None
        assert outsider.stdout.readline() == "taken\n"
        with pytest.raises(DirectoryInUseError):
            disk.lock(path)
        outsider.communicate()
    disk.lock(path)
    disk.close()


def test_a_record_lock_is_refused_while_we_hold_ours(path: str) -> None:
    disk, second = LocalDisk(), LocalDisk()
    disk.lock(path)
    assert _is_refused(path)
    with pytest.raises(DirectoryInUseError):
        second.lock(path)  # a second node of this process
    with open(path, "rb") as file:  # it is the closing that matters
        file.read()
    assert _is_refused(path), "closing the file elsewhere in the process has dropped the lock"
    disk.close()
    assert not _is_refused(path)
    second.lock(path)
    second.close()


def test_a_lock_that_the_system_cannot_give_is_not_held_by_half(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks left")

    disk, second = LocalDisk(), LocalDisk()
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "fcntl", fail)
        with pytest.raises(OSError, match="no locks left"):
            disk.lock(path)
    second.lock(path)
    second.close()
    disk.close()
