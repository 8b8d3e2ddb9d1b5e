"""The `barnabas` command within the test's process.

It logs in at the servers of `-b` where `client_logins` says how.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from barnabas.base import telemetry
from barnabas.cli import connection
from barnabas.cli.main import run
from support import client_logins
from support.child_signals import usual_signals
from support.node_process import wait_until
from support.patience import PATIENCE_S

SERVERS, COMMAND_CONFIG = "-b", "--command-config"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one command line."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_cli(*arguments: str, stdin: bytes = b"") -> Result:
    """Run a command line; exceptions that it lets through are the test's."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with (
        _own_lines(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch("sys.stdin", given),
    ):
        code = run(with_login(arguments))
    assert isinstance(out.buffer, io.BytesIO)
    assert "Traceback" not in err.getvalue()
    return Result(int(code), out.buffer.getvalue(), err.getvalue())


@contextlib.contextmanager
def _own_lines() -> Iterator[None]:
    """Keep log lines of threads that ran before out of a command's standard error.

    Logging is afterwards as it was before.
    """
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
    logger, root, configure = (
        logging.getLogger(telemetry.ROOT),
        logging.getLogger(),
        telemetry.configure,
    )
    before = logger.handlers, logger.level, logger.propagate, root.handlers

    def configured(logs: telemetry.Logs) -> None:
        configure(logs)
        for handler in logger.handlers:
            handler.addFilter(lambda record: record.thread not in others)

    try:
        with mock.patch.object(telemetry, "configure", configured):
            yield
    finally:
        logger.handlers, level, logger.propagate, root.handlers = before
        logger.setLevel(level)


def with_login(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command with the login that the servers of `-b` ask for."""
    if SERVERS not in arguments or COMMAND_CONFIG in arguments:
        return list(arguments)
    at = arguments.index(SERVERS) + 2
    file = client_logins.java_file(arguments[at - 1])
    login = () if file is None else (COMMAND_CONFIG, file)
    return [*arguments[:at], *login, *arguments[at:]]


class ClusterCli:
    """Commands against one cluster; `ok` fails where the command does."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def run(self, *arguments: str, stdin: bytes = b"") -> Result:
        """A node that answers late is there, too: a starved one needs more than the usual 3 s."""
        with mock.patch.object(connection, "PROBE_TIMEOUT_S", PATIENCE_S):
            return run_cli(*arguments, "-b", self.bootstrap_servers, stdin=stdin)

    def ok(self, *arguments: str, stdin: bytes = b"") -> Result:
        result = self.run(*arguments, stdin=stdin)
        assert result.code == 0, result.err
        return result

    def json(self, *arguments: str, stdin: bytes = b"") -> Any:
        return self.ok(*arguments, "--json", stdin=stdin).json

    def json_lines(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self.ok(*arguments, "--json").lines]

    def wait_until_each(self, sees: Callable[[ClusterCli], bool], what: str) -> None:
        """Wait until commands see what was changed, whichever node they ask.

        The controller answers a change when it is committed; nodes apply it some time later.
        """
        for server in self.bootstrap_servers.split(","):
            asked = ClusterCli(server)
            wait_until(lambda asked=asked: sees(asked), f"{what} at {server}")


@contextlib.contextmanager
def following(cli: ClusterCli, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process, which Ctrl-C ends; it must have nothing more to say."""
    words = with_login([*arguments, "-b", cli.bootstrap_servers])
    command = [sys.executable, "-m", "barnabas", *words]
    with usual_signals():
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    with process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE_S)
            assert errors == ""
        finally:
            process.kill()
