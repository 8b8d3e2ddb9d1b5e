"""Apache Kafka as a KRaft node, with the options of its own start script, heap 1 GB."""

from pathlib import Path

from bench.kafka_jars import java, kafka_classpath
from bench.server import Seat, Server
from bench.settings import KAFKA_VERSION

LOG4J = """\
status=error
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""
HEAP = ["-Xmx1g", "-Xms1g"]
PERFORMANCE = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]


class KafkaServer(Server):
    """Apache Kafka from the jars that Maven fetched."""

    name = "kafka"
    version = KAFKA_VERSION

    def __init__(self, directory: Path, seat: Seat | None = None, *, tls: bool = False) -> None:
        super().__init__(directory, seat, tls=tls)
        self._log4j = directory / "log4j2.properties"
        self._log4j.write_text(LOG4J)

    def format_command(self, cluster_id: str) -> list[str]:
        return [
            *self._java(), "kafka.tools.StorageTool",
            "format", "-t", cluster_id, "-c", str(self.properties),
        ]  # fmt: skip

    def start_command(self) -> list[str]:
        return [*self._java(*HEAP, *PERFORMANCE), "kafka.Kafka", str(self.properties)]

    def _java(self, *options: str) -> list[str]:
        log4j = f"-Dlog4j2.configurationFile={self._log4j}"
        return [java(), *options, log4j, "-cp", kafka_classpath()]
