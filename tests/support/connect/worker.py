"""Workers of connectors as processes of their own: ours here, Kafka's in `kafka_connect`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

PATIENCE_S = 90.0
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


class WorkerProcess(ABC):
    """A worker. `tag` makes its names its own; `group` gives it distributed mode.

    `settings` are the worker's, over those that all have here.
    """

    says_when_ready = True
    """On standard output, which goes to the log otherwise."""

    def __init__(
        self,
        folder: Path,
        bootstrap_servers: str,
        tag: str,
        group: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.tag = folder, tag
        folder.mkdir(parents=True, exist_ok=True)
        values = {
            "bootstrap.servers": bootstrap_servers,
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
            "offset.flush.interval.ms": "200",
            "barnabas.connect.plugins": "FileStreamSource,FileStreamSink,FilesSource,FilesSink",
            "barnabas.connect.paths": "/",
            **({"offset.storage.file.filename": str(folder / "offsets")} if group is None else {}),
            **(_group_settings(group) if group is not None else {}),
            **(settings or {}),
        }
        self.properties = folder / "worker.properties"
        self.properties.write_text("".join(f"{key}={one}\n" for key, one in values.items()))
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.client = httpx.Client(trust_env=False, timeout=PATIENCE_S)

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that runs it."""

    @abstractmethod
    def wait(self) -> str:
        """Return its URL once it answers."""

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.launch()
        self.url = self.wait()

    def launch(self) -> None:
        """Start it."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=subprocess.PIPE if self.says_when_ready else log,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON of an answer."""
        answer = self.client.request(method, self.url + path, json=body)
        # While Kafka's worker starts, Jetty answers by itself, with a page.
        is_page = answer.content[:1] == b"<"
        return answer.status_code, answer.json() if answer.content and not is_page else None

    def kill(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code

    def close(self) -> None:
        """End it in any case."""
        self.client.close()
        if self.process is not None:
            self.kill()

    def log(self) -> str:
        """Return what it has logged."""
        return (self.folder / "log").read_text(errors="replace")


def _group_settings(group: str) -> dict[str, str]:
    topics = {
        f"{kind}.storage.{what}": value
        for kind in ("config", "offset", "status")
        for what, value in (("topic", f"{group}-{kind}"), ("replication.factor", "1"))
    }
    return {
        "group.id": group,
        **topics,
        "offset.storage.partitions": "3",
        "status.storage.partitions": "2",
        "scheduled.rebalance.max.delay.ms": "0",
    }


class OurWorker(WorkerProcess):
    """`barnabas connect start`, on a port that it chooses, with the local engine.

    `files` describe a connector each.
    """

    def __init__(
        self, *arguments: Any, engine: str = "local", files: Sequence[Path] = (), **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._engine = engine
        self._files = files

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "barnabas", "connect", "start", str(self.properties)),
            *map(str, self._files),
            *("--json", "-l", self.url or "http://127.0.0.1:0"),
            *("-o", f"barnabas.connect.engine={self._engine}"),
        ]

    def wait(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the worker ended before it served: {self.log()[-2000:]}"
        url: str = json.loads(line)["listeners"][0]
        return url
