"""Apache Kafka's own Connect worker, from the jars in .cache."""

from __future__ import annotations

import time

import httpx

from support.apache_kafka import JAVA, LIBS, TELEMETRY, needs_kafka_with
from support.connect.worker import PATIENCE_S, WorkerProcess
from support.ports import free_port

needs_kafka_connect = needs_kafka_with("connect-file")
_PAUSE_S = 0.2


class KafkaWorker(WorkerProcess):
    """ConnectStandalone, or ConnectDistributed where there is a group."""

    def command(self) -> list[str]:
        assert JAVA is not None
        text = self.properties.read_text()
        if "\nlisteners=" not in text:
            port = free_port()
            self.url = f"http://127.0.0.1:{port}"
            self.properties.write_text(f"{text}listeners={self.url}\n")
        mode = "ConnectDistributed" if "group.id" in text else "ConnectStandalone"
        return [
            *(JAVA, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Dlog4j2.configurationFile={TELEMETRY}",
            *("-cp", f"{LIBS[0]}/*", f"org.apache.kafka.connect.cli.{mode}", str(self.properties)),
        ]

    def wait(self) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process is not None
            assert self.process.poll() is None, f"Kafka's worker ended: {self.log()[-2000:]}"
            try:
                if self.client.get(f"{self.url}/connectors").status_code == 200:
                    return self.url
            except httpx.HTTPError:
                pass  # it is not there yet
            time.sleep(_PAUSE_S)
        raise AssertionError(f"Kafka's worker did not answer: {self.log()[-2000:]}")
