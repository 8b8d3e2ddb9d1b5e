"""Identity of operating-system processes: a pid alone may have been reused.

A process is known by its pid together with its start time (and the boot it belongs to), so a pid
file left behind by a killed run can be trusted, or seen to be stale. Linux is read from /proc;
elsewhere `ps` answers the same questions.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass

_POLL_SECONDS = 0.05


@dataclass(slots=True, frozen=True)
class ProcessIdentity:
    """A process that leads its own group: `pid` is its process group's id too."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Identify a live process, or return None where it has ended."""
        started = start_time(pid)
        return None if started is None else cls(pid, started)

    def alive(self) -> bool:
        """Return whether this very process still runs (a zombie does not)."""
        return start_time(self.pid) == self.started


def start_time(pid: int) -> str | None:
    """Return an opaque start time of a running process, None if it is gone (or a zombie)."""
    if os.path.isdir("/proc/self"):
        fields = _stat_fields(pid)
        if fields is None or fields[0] in {"Z", "X"}:
            return None
        return f"{_boot_id()}:{fields[19]}"
    answer = _ps("-p", str(pid), "-o", "stat=,lstart=").split(maxsplit=1)
    return None if len(answer) < 2 or answer[0].startswith("Z") else answer[1].strip()


def group_members(group_id: int) -> list[int]:
    """Return the pids of the live processes in a process group."""
    if not os.path.isdir("/proc/self"):
        rows = (line.split() for line in _ps("-A", "-o", "pid=,pgid=,stat=").splitlines())
        return [int(r[0]) for r in rows if int(r[1]) == group_id and not r[2].startswith("Z")]
    members = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat_fields(int(name))
            if fields and fields[0] not in {"Z", "X"} and int(fields[2]) == group_id:
                members.append(int(name))
    return members


def end_group(identity: ProcessIdentity, grace_seconds: float) -> str:
    """End a process and all of its group; returns how it went: 'gone', 'ended' or 'killed'.

    The leader is asked first (SIGTERM), since it knows how to end its own children in order; what
    is left of the group after `grace_seconds` is killed. A group whose leader is gone is only
    touched where a member carries our pid as its group, which the kernel keeps reserved for it.
    """
    if not identity.alive():
        if start_time(identity.pid) is not None:
            return "gone"  # the pid is someone else's now, so the group is too
        if not group_members(identity.pid):
            return "gone"
        _kill_group(identity.pid)
        return "killed"
    with contextlib.suppress(ProcessLookupError):
        os.kill(identity.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    outcome = "ended"
    while identity.alive():
        if time.monotonic() > deadline:
            outcome = "killed"
            break
        time.sleep(_POLL_SECONDS)
    # A JVM notices the end of its Python parent by itself: leave it a moment.
    deadline = time.monotonic() + min(grace_seconds, 3.0)
    while outcome == "ended" and group_members(identity.pid) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    if group_members(identity.pid):
        _kill_group(identity.pid)
    return outcome


def _kill_group(group_id: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group_id, signal.SIGKILL)
    deadline = time.monotonic() + 5.0
    while group_members(group_id) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/<pid>/stat from the third, the state, on."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return boot.read().strip()
    except OSError:
        return ""


def _ps(*arguments: str) -> str:
    return subprocess.run(
        ["ps", *arguments], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    ).stdout
