"""Runs tests in several processes: pytest collects once, and forks then.

Collecting this project's tests takes half a minute of a core. So each process begins with what was
collected, before a fixture is set up or a thread runs.

The tests of a group run in one process, in their order. The parent gives a process its next group
when the last one is done: one that needs a fixture which this process has started, and not one that
needs a fixture of another process, as long as there are others. It passes reports on to pytest,
whose summary, `-x`, `--durations` and so on work as in one process. If a process dies, the test
that it ran fails, and a new process runs the rest of the group.

Each process leads a process group, so Ctrl-C in a terminal reaches only the parent, which ends the
others by SIGTERM: their fixtures stop what they have started. For Linux: a signal tells a process
that its parent was killed.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest import junitxml
from _pytest.config import create_terminal_writer
from _pytest.tmpdir import TempPathFactory

from support.ended_by_sigterm import end_by_sigterm
from support.leftovers import kill_what_outlives_us

ONE_OF_SEVERAL = "TEST_PROCESS"
"""A variable of the environment: the number of a process that runs tests beside others."""
END_S = 180
"""The limit for a process to stop the fixtures of its session, and itself."""
INTERRUPTED_S = 20
"""The same where the whole run is interrupted."""
YIELDING = 5
"""The niceness of processes beside that with the longest group: they get a third of its share."""
PR_SET_PDEATHSIG = 1
"""Linux's prctl(2): the signal that a process gets when its parent ends."""


@dataclass(slots=True)
class Group:
    """Tests that run in one process, one after another."""

    indices: list[int] = field(default_factory=list)
    """Of the session's items."""
    needs: set[str] = field(default_factory=set)
    """Fixtures that take long to start, and last as long as the process."""
    is_longest: bool = False
    """The other processes yield to the longest group, which is the first one."""


@dataclass(slots=True)
class Process:
    """A process that runs tests, as the parent sees it."""

    number: int
    pid: int
    connection: Connection
    has: set[str] = field(default_factory=set)
    """The needs of the groups that were given to it."""
    left: deque[int] = field(default_factory=deque)
    """The indices of the tests of its group that have not ended. The first one runs."""
    has_longest: bool = False
    """Its group is the longest one."""
    is_ending: bool = False
    ends_by_s: float | None = None
    """When it is killed if it has not ended by then."""

    @property
    def node(self) -> SimpleNamespace:
        """The name of the process, as pytest looks it up in a report."""
        name = f"p{self.number}"
        return SimpleNamespace(gateway=SimpleNamespace(id=name), _workerinfocache=f"[{name}]")


def run(session: pytest.Session, groups: Sequence[Group], count: int) -> None:
    """Run groups of tests in up to `count` processes.

    Returns in the parent when all processes have ended, and in each of them when it has no more
    tests to run. Raises what pytest's own loop does to end a session early.
    """
    threads = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
    assert not threads, f"threads run after collection, and a fork would lack them: {threads}"
    parent = _Parent(session, groups)
    try:
        parent.run(count)
    except BaseException:
        parent.interrupt()
        raise


def next_group(groups: Sequence[Group], has: set[str], elsewhere: set[str]) -> Group:
    """Choose the group that a process runs next, from what it and the others have started."""
    for group in groups:
        if group.needs & has:
            return group
    for group in groups:
        if not group.needs & elsewhere:
            return group
    return groups[0]


class _Parent:
    def __init__(self, session: pytest.Session, groups: Sequence[Group]) -> None:
        self._session, self._config, self._groups = session, session.config, list(groups)
        self._processes: list[Process] = []
        self._started = 0
        self._is_parent = True

    def run(self, count: int) -> None:
        """Hand out groups until all have run, or until pytest wants to stop."""
        while self._groups and len(self._processes) < count:
            self._start()
            if not self._is_parent:
                return
        while self._processes:
            ready = wait([process.connection for process in self._processes], self._timeout_s())
            for process in [one for one in self._processes if one.connection in ready]:
                self._receive(process)
                if not self._is_parent:
                    return
            self._kill_what_does_not_end()
            self._stop_if_wanted()
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def interrupt(self) -> None:
        """End all processes now, after they have stopped what they have started."""
        for process in self._processes:
            os.kill(process.pid, signal.SIGTERM)
        limit_s = time.monotonic() + INTERRUPTED_S
        for process in self._processes:
            with suppress(EOFError, OSError):
                while process.connection.poll(max(0.0, limit_s - time.monotonic())):
                    process.connection.recv_bytes()
                os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)
        self._processes.clear()

    def _start(self) -> None:
        """Fork a process for the next group. Returns in it, too, once it has run its tests."""
        here, there = Pipe()
        for stream in (sys.stdout, sys.stderr, self._config.get_terminal_writer()):
            stream.flush()
        factory: TempPathFactory = self._config._tmp_path_factory  # type: ignore[attr-defined]
        directory = factory.getbasetemp() / f"process-{self._started}"
        process = Process(self._started, os.getpid(), here)
        self._started += 1
        yields = not self._groups[0].is_longest
        pid = os.fork()
        if pid:
            there.close()
            process.pid = pid
            self._processes.append(process)
            self._give(process)
            return
        self._is_parent = False
        for one in (process, *self._processes):
            one.connection.close()
        self._processes.clear()
        child = _Child(self._session, there)
        child.begin(process.pid, process.number, directory)
        if yields:
            os.nice(YIELDING)
        child.run()

    def _stop_if_wanted(self) -> None:
        if self._session.shouldfail or self._session.shouldstop:
            self._groups.clear()
            for process in self._processes:
                self._end(process)

    def _timeout_s(self) -> float | None:
        limits_s = [one.ends_by_s for one in self._processes if one.ends_by_s is not None]
        return max(0.0, min(limits_s) - time.monotonic()) if limits_s else None

    def _kill_what_does_not_end(self) -> None:
        for process in self._processes:
            if process.ends_by_s is not None and time.monotonic() > process.ends_by_s:
                os.kill(process.pid, signal.SIGKILL)
                process.ends_by_s = None

    def _receive(self, process: Process) -> None:
        """Act on a message, or on the end of a process."""
        try:
            kind, data = process.connection.recv()
        except (EOFError, OSError):
            self._replace(process)
            return
        if kind == "warning":
            self._warn(**data)
            return
        reports, stop = data
        for serialized in reports:
            self._report(process, self._from_serialized(serialized))
        if stop and not self._session.shouldfail:
            self._session.shouldfail = stop
        self._stop_if_wanted()
        if kind == "done":
            self._log_finish(process.left.popleft())
            if process.is_ending:
                process.ends_by_s = time.monotonic() + END_S
            elif process.left:
                self._log_start(process)
            elif self._groups:
                self._give(process)
            else:
                self._end(process)

    def _from_serialized(self, data: dict[str, Any]) -> pytest.TestReport:
        hook = self._config.hook.pytest_report_from_serializable
        report: pytest.TestReport = hook(config=self._config, data=data)
        return report

    def _report(self, process: Process, report: pytest.TestReport) -> None:
        report.node = process.node  # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logreport(report=report)

    def _warn(self, text: str, category: str, filename: str, line: int, **data: object) -> None:
        warning = warnings.WarningMessage(text, type(category, (Warning,), {}), filename, line)
        self._config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": warning, **data}
        )

    def _replace(self, process: Process) -> None:
        """Report how a process has ended, unless it was told to, and start one for what is left."""
        process.connection.close()
        self._processes.remove(process)
        code = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with {code}"
        is_well = code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if process.left and not (process.is_ending and is_well):
            index = process.left.popleft()
            item = self._session.items[index]
            text = f"the process that ran {item.nodeid} ended {how}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            self._report(process, report)
            self._log_finish(index)
            if process.left:
                left = Group(list(process.left), process.has, process.has_longest)
                self._groups.insert(0, left)
        elif not is_well:
            self._session.shouldfail = f"process p{process.number} ended {how} after its tests"
        self._stop_if_wanted()
        if self._groups:
            self._start()

    def _give(self, process: Process) -> None:
        elsewhere = {
            need for other in self._processes if other is not process for need in other.has
        }
        group = next_group(self._groups, process.has, elsewhere)
        self._groups.remove(group)
        process.has |= group.needs
        process.left = deque(group.indices)
        process.has_longest = group.is_longest
        self._send(process, group.indices)
        self._log_start(process)

    def _end(self, process: Process) -> None:
        """Tell a process to end after the test that it runs."""
        if not process.is_ending:
            process.is_ending = True
            process.ends_by_s = None if process.left else time.monotonic() + END_S
            self._send(process, [])

    def _send(self, process: Process, group: list[int]) -> None:
        with suppress(OSError):  # it has died, as reading from it will show
            process.connection.send(group)

    def _log_start(self, process: Process) -> None:
        item = self._session.items[process.left[0]]
        self._config.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)

    def _log_finish(self, index: int) -> None:
        item = self._session.items[index]
        self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class _Child:
    """A process that runs tests: pytest's plugin that sends reports and warnings to the parent."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session, self._config, self._connection = session, session.config, connection
        self._capture = self._config.pluginmanager.getplugin("capturemanager")
        self._reports: list[dict[str, Any]] = []
        self._begins = True

    def begin(self, parent: int, number: int, directory: Path) -> None:
        """Become independent of the parent's files and signals, but end if it does."""
        os.setpgid(0, 0)
        end_by_sigterm()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            raise KeyboardInterrupt  # it has just been killed
        os.environ[ONE_OF_SEVERAL] = str(number)
        kill_what_outlives_us()
        self._take_own_files(directory)
        self._leave_the_terminal_to_the_parent()
        self._config.pluginmanager.register(self)
        self._begins = False

    def _take_own_files(self, directory: Path) -> None:
        self._capture.stop_global_capturing()
        self._capture.start_global_capturing()
        self._capture.suspend_global_capture()
        factory: TempPathFactory = self._config._tmp_path_factory  # type: ignore[attr-defined]
        atexit.unregister(factory._exit_stack.close)  # the parent's, which removes old directories
        self._config.option.basetemp = str(directory)
        factory = TempPathFactory.from_config(self._config, _ispytest=True)
        self._config._tmp_path_factory = factory  # type: ignore[attr-defined]

    def _leave_the_terminal_to_the_parent(self) -> None:
        plugins = self._config.pluginmanager
        silent = self._config.get_terminal_writer()
        silent._file = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        plugins.unregister(name="terminalreporter")
        if plugins.has_plugin("terminalprogress-plugin"):
            plugins.unregister(name="terminalprogress-plugin")
        # pytest-timeout shows here what threads do.
        errors = os.fdopen(os.dup(2), "w", buffering=1)
        writer = create_terminal_writer(self._config, errors)
        plugins.register(SimpleNamespace(_tw=writer), "terminalreporter")
        junitxml.pytest_unconfigure(self._config)
        self._config.workerinput = {}  # type: ignore[attr-defined]
        """Has pytest's own plugins leave their files to the parent, as for pytest-xdist."""

    def run(self) -> None:
        """Run groups of tests until the parent sends an empty one, or is gone."""
        item = None
        try:
            while group := self._connection.recv():
                for position, index in enumerate(group, 1):
                    item = self._session.items[index]
                    # The session is nobody's next item, but stands for any: its fixtures stay.
                    following: Any = self._session
                    if position < len(group):
                        following = self._session.items[group[position]]
                    self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    self._send("done")
                    if self._connection.poll() or self._wants_to_stop():
                        break
        except EOFError:
            raise KeyboardInterrupt from None
        if item is not None:
            self._stop_fixtures(item)

    def _stop_fixtures(self, last: pytest.Item) -> None:
        """Stop those of the session; an error is one of the last test, as in a single process."""
        with self._capture.item_capture("teardown", last):
            call = pytest.CallInfo.from_call(
                lambda: self._session._setupstate.teardown_exact(None), "teardown"
            )
        report = pytest.TestReport.from_item_and_call(last, call)
        self._config.hook.pytest_runtest_logreport(report=report)
        self._send("session's end")

    def _send(self, kind: str) -> None:
        reports, self._reports = self._reports, []
        self._connection.send((kind, (reports, self._wants_to_stop())))

    def _wants_to_stop(self) -> bool | str:
        """Why no other test should run; the parent, which counts all failures, will agree."""
        return self._session.shouldfail or self._session.shouldstop

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report until the test is done."""
        hook = self._config.hook.pytest_report_to_serializable
        self._reports.append(hook(config=self._config, report=report))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Send a warning, as text: its class may not be known by name."""
        if self._begins:
            return  # pytest repeats to new plugins what was recorded before
        data = {
            "text": str(warning_message.message),
            "category": warning_message.category.__name__,
            "filename": warning_message.filename,
            "line": warning_message.lineno,
            "when": when,
            "nodeid": nodeid,
            "location": location,
        }
        self._connection.send(("warning", data))
