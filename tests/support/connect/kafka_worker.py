"""Apache Kafka's own distributed worker, as a process with a REST interface."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support.apache_kafka import JAVA, LIBS, TELEMETRY
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.ports import free_port

_JSON = "org.apache.kafka.connect.json.JsonConverter"
START_S = 120.0


class KafkaWorker:
    """`settings` are the worker's, as in its file. Stopped by `close`."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        given = {
            "key.converter": _JSON,
            "value.converter": _JSON,
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "listeners": f"http://127.0.0.1:{self.port}",
            "rest.advertised.host.name": "127.0.0.1",
            "plugin.discovery": "only_scan",
            **settings,
        }
        properties = folder / f"connect-{self.port}.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        self.output = folder / f"connect-{self.port}.log"
        assert JAVA is not None
        command = [
            JAVA, "-Xmx256m", f"-Dlog4j2.configurationFile={TELEMETRY}", "-cp", f"{LIBS[0]}/*",
            "org.apache.kafka.connect.cli.ConnectDistributed", str(properties),
        ]  # fmt: skip
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True
            )

    def wait_until_ready(self) -> None:
        """Wait until it answers."""
        self.wait(lambda: self.ask("GET", "connectors")[0] == 200, START_S)

    def wait(self, until: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait for something, as long as the worker lives."""

        def told() -> str:
            return self.output.read_text()[-3000:]

        def happens() -> bool:
            if until():
                return True
            assert self._process.poll() is None, told()
            return False

        wait_until(happens, "what the worker is to do", patience_s, told)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON; 0 where it does not answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                content = answer.read()
                return answer.status, json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            with error:
                content = error.read()
                # While it starts, Jetty answers by itself.
                return error.code, json.loads(content) if content[:1] == b"{" else None
        except OSError:
            return 0, None

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Stop it as its user would."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
