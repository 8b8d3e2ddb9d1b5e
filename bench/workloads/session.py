"""One server in one round: what the workloads share."""

import os
import time
from dataclasses import dataclass, field

from bench.java_tools import Produced, produced, producer
from bench.measure import cpu_seconds
from bench.server import Server
from bench.settings import Settings
from bench.wire import make_topic


@dataclass(slots=True)
class Session:
    """The running server, the volumes, and topics that were filled already (name → records)."""

    server: Server
    settings: Settings
    filled: dict[str, int] = field(default_factory=dict)

    def settle(self) -> None:
        """Write dirty pages back, so that one workload does not pay for the one before."""
        os.sync()
        self.server.check_alive()

    def topic(self, name: str, partitions: int | None = None) -> None:
        """Create a topic, with the run's number of partitions unless given."""
        make_topic(self.server.port, name, partitions or self.settings.partitions)

    def produce(
        self,
        topic: str,
        records: int,
        record_size: int,
        partitions: int | None = None,
        *,
        transaction_ms: int | None = None,
        bootstrap: str | None = None,
        **properties: object,
    ) -> tuple[Produced, float]:
        """Fill a new topic; returns what the tool measured, and the broker's CPU seconds.

        `bootstrap`: over another listener. The tool's rate leaves the warm-up out; the processor
        time covers all records.
        """
        self.topic(topic, partitions)
        warm_up = int(records * self.settings.warm_up_share)
        self.settle()
        before = cpu_seconds(self.server.pid)
        tool = producer(
            bootstrap or self.server.bootstrap,
            topic,
            records,
            record_size,
            warm_up,
            transaction_ms,
            **properties,
        )
        result = produced(tool.wait(self.settings.timeout_seconds))
        self.filled[topic] = records
        return result, cpu_seconds(self.server.pid) - before

    def fill(self, topic: str, records: int, record_size: int) -> int:
        """Make sure that `topic` is filled; returns its number of records."""
        if topic not in self.filled:
            self.produce(topic, records, record_size)
        return self.filled[topic]

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)
        self.server.check_alive()
