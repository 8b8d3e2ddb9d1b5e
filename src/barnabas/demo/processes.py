"""The demo's child processes: started with a log and a pid file each, ended in order.

Each child leads its own session, so Ctrl-C in the terminal reaches the orchestrator only,
which then ends the children one after the other. What survives a killed orchestrator is ended by
the guardian (see guardian.py) or, at the latest, by the next run through the pid files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field

from barnabas.demo.identity import ProcessIdentity, end_group

LOG_TAIL_LINES = 15
_TAIL_BYTES_MAX = 64 * 1024


@dataclass(slots=True, frozen=True)
class ChildSpec:
    """The program to run: `name` is also the name of its log and pid file."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    grace_seconds: float = 10.0
    advice: str = ""
    """A hint for users when it fails, one sentence."""
    niceness: int = 0
    """Its niceness: higher yields to the others."""


class Child:
    """One started process."""

    def __init__(self, spec: ChildSpec, process: subprocess.Popen[bytes], log_path: str) -> None:
        self.spec = spec
        self.log_path = log_path
        self._process = process
        identity = ProcessIdentity.of(process.pid)
        self.identity = identity or ProcessIdentity(process.pid, "ended at once")

    def exit_code(self) -> int | None:
        """Return None while it runs, its exit code, or minus the number of the signal."""
        return self._process.poll()

    def end(self) -> str:
        """End it and its group; returns 'gone', 'ended' or 'killed'."""
        outcome = end_group(self.identity, self.spec.grace_seconds)
        self._process.wait()
        return outcome

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait()

    def interrupt(self) -> None:
        """Ask it to end by itself (SIGTERM), without waiting."""
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGTERM)

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """Return the last lines of its log."""
        return tail(self.log_path, lines)


class Children:
    """The children of one run, in the order in which they were started."""

    def __init__(self, log_directory: str, pid_directory: str) -> None:
        self._log_directory = log_directory
        self._pid_directory = pid_directory
        self._children: dict[str, Child] = {}
        self._guardian: subprocess.Popen[bytes] | None = None
        for directory in (log_directory, pid_directory):
            os.makedirs(directory, exist_ok=True)

    def get(self, name: str) -> Child | None:
        """Return the child of that name, running or ended."""
        return self._children.get(name)

    def start(self, spec: ChildSpec) -> Child:
        """Start a process; its output goes to `<name>.log`, its pid to `<name>.pid`."""
        log_path = os.path.join(self._log_directory, f"{spec.name}.log")
        with open(log_path, "ab") as log:
            process = subprocess.Popen(
                spec.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **spec.environment},
                start_new_session=True,
            )
        if spec.niceness:
            own = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, process.pid, own + spec.niceness)
        child = Child(spec, process, log_path)
        self._children.pop(spec.name, None)  # a restarted one moves to the end of the order
        self._children[spec.name] = child
        self._entrust(child)
        self._write_pid_file(child)
        return child

    def ended(self) -> list[Child]:
        """Return the children that ended although nobody asked them to."""
        return [child for child in self._children.values() if child.exit_code() is not None]

    def end(self, name: str) -> str:
        """End one child and forget it; returns 'gone', 'ended' or 'killed'."""
        child = self._children.pop(name)
        outcome = child.end()
        self._remove_pid_file(name)
        return outcome

    def end_all(self) -> None:
        """End all of them, the last one started first, then the guardian."""
        for name in reversed(list(self._children)):
            self.end(name)
        self._dismiss_guardian()

    def end_leftovers(self, grace_seconds: float = 10.0) -> list[str]:
        """End what a killed run left behind, by its pid files; returns the names of those ended."""
        ended = []
        for file_name in sorted(os.listdir(self._pid_directory)):
            name, extension = os.path.splitext(file_name)
            if extension != ".pid":
                continue
            identity = _read_pid_file(os.path.join(self._pid_directory, file_name))
            if identity is not None and end_group(identity, grace_seconds) != "gone":
                ended.append(name)
            self._remove_pid_file(name)
        return ended

    def _entrust(self, child: Child) -> None:
        """Name a child to the guardian; one that was killed is replaced, and told of them all."""
        if self._guardian is not None and self._guardian.poll() is None:
            self._tell(child)
            return
        self._dismiss_guardian()
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", "barnabas.demo.guardian"],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        for ward in self._children.values():
            self._tell(ward)

    def _tell(self, child: Child) -> None:
        identity = child.identity
        self._write(f"{child.spec.grace_seconds} {identity.pid} {identity.started}\n")

    def _write(self, line: str) -> None:
        assert self._guardian is not None
        assert self._guardian.stdin is not None
        # A guardian killed this moment is replaced with the next child; pid files do till then.
        with contextlib.suppress(BrokenPipeError):
            self._guardian.stdin.write(line.encode())
            self._guardian.stdin.flush()

    def _dismiss_guardian(self) -> None:
        if self._guardian is not None:
            self._write("done\n")
            assert self._guardian.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._guardian.stdin.close()
            self._guardian.wait()
            self._guardian = None

    def _write_pid_file(self, child: Child) -> None:
        path = os.path.join(self._pid_directory, f"{child.spec.name}.pid")
        content = {"pid": child.identity.pid, "started": child.identity.started}
        with open(f"{path}.new", "w", encoding="utf-8") as out:
            json.dump(content, out)
        os.replace(f"{path}.new", path)

    def _remove_pid_file(self, name: str) -> None:
        path = os.path.join(self._pid_directory, f"{name}.pid")
        if os.path.exists(path):
            os.remove(path)


def _read_pid_file(path: str) -> ProcessIdentity | None:
    """Return what a pid file names; None where the file is torn."""
    with open(path, encoding="utf-8") as source:
        try:
            content = json.load(source)
            return ProcessIdentity(int(content["pid"]), str(content["started"]))
        except (ValueError, KeyError, TypeError):
            return None


def describe_exit(code: int) -> str:
    """Say how a process ended: 'exit code 3' or 'signal SIGKILL'."""
    if code >= 0:
        return f"exit code {code}"
    return f"signal {signal.Signals(-code).name}"


def tail(path: str, lines: int) -> str:
    """Return the last lines of a text file, reading at most its last 64 KiB."""
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as source:
        source.seek(0, os.SEEK_END)
        source.seek(max(0, source.tell() - _TAIL_BYTES_MAX))
        text = source.read().decode("utf-8", errors="replace")
    return "\n".join(text.splitlines()[-lines:])
