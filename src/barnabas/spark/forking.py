"""Python processes on Spark's driver, forked instead of started.

For each stateful operator of a new query Spark starts Python on the driver, which imports PySpark
for a second of CPU time and is asked once which state the operator has. The daemon that forks the
workers of tasks imports all of that, too. So Spark gets a launcher instead of Python: it asks the
daemon for such a process, and runs Python itself if there is no daemon, or for anything else. A
daemon that is still importing is waited for: both importing would take longer.

    Spark ─▶ launcher ─▶ client.py ══ socket ══▶ the daemon's thread, which forks

The client lives as long as that process: when it ends, the JVM closes what the process prints to.

The launcher and the socket are in a directory that only this user can enter.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import runpy
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from barnabas.base.private_files import write_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOCKET: Final = "BARNABAS_SPARK_FORK_SOCKET"
"""Tells the daemon where to listen."""
MODULE: Final = "pyspark.sql.streaming.transform_with_state_driver_worker"
_PREFIX: Final = "barnabas-fork-"
_STREAMS: Final = 3
_FORKED: Final = b"f"
_ENDED: Final = b"e"
_ASKED_BYTES_MAX: Final = 1_000_000
_CLIENT: Final = """\
import array, json, os, socket, sys
at, python, *words = sys.argv[1:]
forked = b""
try:
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(60)  # the daemon may still be reading its modules
        asked.connect(at)
        streams = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (0, 1, 2)))
        asked.sendmsg([json.dumps(dict(os.environ)).encode()], [streams])
        asked.shutdown(socket.SHUT_WR)
        forked = asked.recv(1)
        if forked:
            asked.settimeout(None)
            asked.recv(1)
except OSError:
    pass
if not forked:
    os.execv(python, [python, *words])
"""


def fork_driver_processes(session: SparkSession) -> None:
    """Have a session fork them from now on, if its Python runs on this machine."""
    context = session.sparkContext
    if not str(context.master).startswith("local") or os.name != "posix":
        return
    if os.path.basename(os.path.dirname(context.pythonExec)).startswith(_PREFIX):
        return
    directory = tempfile.mkdtemp(prefix=_PREFIX)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    context.pythonExec = write_launcher(directory, context.pythonExec)


def write_launcher(directory: str, python: str) -> str:
    """Write it into a directory; returns its path."""
    found = shutil.which(python) or python
    at, client = os.path.join(directory, "socket"), os.path.join(directory, "client.py")
    launcher = os.path.join(directory, "python")
    write_private(client, _CLIENT)
    asking = shlex.join((found, "-I", "-S", client, at, found))
    lines = (
        "#!/bin/sh",
        f'if [ "$2" = {MODULE} ] && [ -S {shlex.quote(at)} ]; then exec {asking} "$@"; fi',
        f"{SOCKET}={shlex.quote(at)}; export {SOCKET}",
        f'exec {shlex.quote(found)} "$@"',
    )
    write_private(launcher, "\n".join(lines) + "\n")
    os.chmod(launcher, 0o700)
    return launcher


def listen_for_clients(at: str) -> socket.socket | None:
    """Let clients connect, who wait for `serve_forks`; None where another daemon of the session
    does."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(at)
    except OSError:
        listening.close()
        return None
    listening.listen()
    return listening


def serve_forks(listening: socket.socket) -> threading.Thread:
    """Fork what clients ask for, in a thread."""
    thread = threading.Thread(target=_serve, args=(listening,), name="forks", daemon=True)
    thread.start()
    return thread


def _serve(listening: socket.socket) -> None:
    while True:
        asked, _ = listening.accept()
        with asked, suppress(OSError, ValueError):
            data, streams = _received(asked)
            try:
                environment = json.loads(data)
                if len(streams) == _STREAMS:
                    if os.fork() == 0:
                        _become(environment, streams, listening, asked)
                    asked.sendall(_FORKED)
            finally:
                for stream in streams:
                    os.close(stream)


def _received(asked: socket.socket) -> tuple[bytes, list[int]]:
    room = socket.CMSG_SPACE(_STREAMS * array.array("i").itemsize)
    data, ancillary, _, _ = asked.recvmsg(_ASKED_BYTES_MAX, room)
    streams = array.array("i")
    for _, _, rights in ancillary:
        streams.frombytes(rights)
    while more := asked.recv(_ASKED_BYTES_MAX):
        data += more
    return data, list(streams)


def _become(
    environment: dict[str, str], streams: list[int], listening: socket.socket, asked: socket.socket
) -> None:
    """Be the process that was asked for, and end."""
    code = 1
    try:
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        for one in streams:
            os.close(one)
        listening.close()
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [MODULE]
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
        code = 0
    except BaseException:  # noqa: BLE001  the process ends with it
        traceback.print_exc()
    finally:
        for text in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                text.flush()
        with suppress(OSError):
            asked.sendall(_ENDED)
        os._exit(code)
