"""A SQL server over a real node, as a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from support.node_process import wait_until
from support.patience import PATIENCE_S

LOCAL = ("barnabas.sql.runner=local",)
EARLIEST = {"ksql.streams.auto.offset.reset": "earliest"}


class SqlServer:
    """A server over a cluster, which may be ended and started again with all it had."""

    def __init__(
        self, bootstrap_servers: str, settings: Sequence[str] = LOCAL, *, suffix: str = ""
    ) -> None:
        self.suffix = suffix or uuid.uuid4().hex[:8]
        self._arguments = [
            *(sys.executable, "-m", "barnabas", "sql", "server", "--json"),
            *("-b", bootstrap_servers, "-o", "listeners=http://127.0.0.1:0"),
            *("-o", f"ksql.service.id=test_{self.suffix}_"),
            *(word for setting in settings for word in ("-o", setting)),
        ]
        self.process: subprocess.Popen[str] | None = None
        self.client = httpx.Client()
        self.url = ""

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._arguments,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server ended before it served"
        self.urls: list[str] = json.loads(line)["listeners"]
        self.url = self.urls[0]
        self.client = httpx.Client(
            base_url=self.url, http1=False, http2=True, trust_env=False, timeout=PATIENCE_S
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.client.close()
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code

    def ksql(self, text: str) -> list[dict[str, Any]]:
        """The answers to statements that must be taken."""
        answer = self.client.post("/ksql", json={"ksql": text, "streamsProperties": EARLIEST})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()
        return found

    def rows(self, text: str) -> list[list[Any]]:
        """The rows of a pull query."""
        answer = self.client.post("/query-stream", json={"sql": text, "properties": EARLIEST})
        assert answer.status_code == 200, answer.text
        _, *rows = map(json.loads, answer.text.splitlines())
        return rows

    def wait_for_rows(self, text: str, rows: list[list[Any]]) -> None:
        wait_until(
            lambda: sorted(self.rows(text)) == rows, text, shown=lambda: f"{self.rows(text)}"
        )


@contextmanager
def running(bootstrap_servers: str, settings: Sequence[str] = LOCAL) -> Iterator[SqlServer]:
    """A server that is killed at the end, if it still runs."""
    server = SqlServer(bootstrap_servers, settings)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.stop(signal.SIGKILL)
