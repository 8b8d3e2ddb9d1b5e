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
SPARK = "barnabas.sql.runner=spark"
EARLIEST = {"ksql.streams.auto.offset.reset": "earliest"}


class SqlServer:
    """A server over a cluster, which may be ended and started again with all it had."""

    def __init__(
        self, bootstrap_servers: str, settings: Sequence[str] = LOCAL, *, suffix: str = ""
    ) -> None:
        self.suffix = suffix or uuid.uuid4().hex[:8]
        self.patience_s = PATIENCE_S * (4 if SPARK in settings else 1)
        """On a busy machine Spark needs more than a minute to start, and again for a query."""
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
            base_url=self.url, http1=False, http2=True, trust_env=False, timeout=self.patience_s
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.client.close()
        self.process.send_signal(number)
        code = self.process.wait(self.patience_s)
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
        answer = self._pull(text)
        assert answer.status_code == 200, answer.text
        return _rows(answer)

    def _pull(self, text: str) -> httpx.Response:
        return self.client.post("/query-stream", json={"sql": text, "properties": EARLIEST})

    def wait_for_rows(self, text: str, rows: list[list[Any]]) -> None:
        """Wait for the rows of a pull query; until the query behind it runs, it is refused."""
        last: list[object] = []

        def are_there() -> bool:
            answer = self._pull(text)
            last[:] = [answer.text]
            return answer.status_code == 200 and sorted(_rows(answer)) == rows

        wait_until(are_there, text, self.patience_s, lambda: str(last))


def _rows(answer: httpx.Response) -> list[list[Any]]:
    _, *rows = map(json.loads, answer.text.splitlines())
    return rows


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
