"""Apache Kafka's own Connect worker, from the jars in .cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx

from support.apache_kafka import JAVA, LIBS, QUICK_JVM, TELEMETRY, needs_kafka_with
from support.connect.worker import PATIENCE_S, WorkerProcess
from support.node_process import wait_until
from support.ports import free_port

needs_kafka_connect = needs_kafka_with("connect-file")


class KafkaWorker(WorkerProcess):
    """ConnectStandalone, or ConnectDistributed where there is a group. `jvm`: Java's options."""

    says_when_ready = False

    def __init__(self, *arguments: Any, jvm: Sequence[str] = (), **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._jvm = jvm

    def command(self) -> list[str]:
        assert JAVA is not None
        text = self.properties.read_text()
        if "\nlisteners=" not in text:
            port = free_port()
            self.url = f"http://127.0.0.1:{port}"
            text = f"{text}listeners={self.url}\nrest.advertised.host.name=127.0.0.1\n"
            self.properties.write_text(text)
        mode = "ConnectDistributed" if "group.id" in text else "ConnectStandalone"
        return [
            *(JAVA, "-Xmx256m", *QUICK_JVM, *self._jvm),
            f"-Dlog4j2.configurationFile={TELEMETRY}",
            *("-cp", f"{LIBS[0]}/*", f"org.apache.kafka.connect.cli.{mode}", str(self.properties)),
        ]

    def wait(self) -> str:
        self.wait_until(lambda: self.ask("GET", "/connectors")[0] == 200)
        return self.url

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """As WorkerProcess; 0 where it does not answer."""
        try:
            return super().ask(method, path, body)
        except httpx.TransportError:
            return 0, None

    def wait_until(self, until: Callable[[], bool]) -> None:
        """Wait for something, as long as the worker lives."""

        def happens() -> bool:
            if until():
                return True
            assert self.process is not None
            assert self.process.poll() is None, f"Kafka's worker ended: {self.log()[-3000:]}"
            return False

        wait_until(happens, "what the worker is to do", PATIENCE_S, lambda: self.log()[-3000:])
