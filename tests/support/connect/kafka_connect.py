"""Apache Kafka's own Connect worker, from the jars in .cache."""

from __future__ import annotations

import httpx

from support.apache_kafka import JAVA, LIBS, TELEMETRY, needs_kafka_with
from support.connect.worker import PATIENCE_S, WorkerProcess
from support.node_process import wait_until
from support.ports import free_port

needs_kafka_connect = needs_kafka_with("connect-file")


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
        def answers() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, f"Kafka's worker ended: {self.log()[-2000:]}"
            try:
                return self.client.get(f"{self.url}/connectors").status_code == 200
            except httpx.HTTPError:
                return False  # it is not there yet

        wait_until(answers, "an answer of Kafka's worker", PATIENCE_S, lambda: self.log()[-2000:])
        return self.url
