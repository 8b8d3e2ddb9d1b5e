"""One cluster in one round: what its workloads share."""

import os
import time
from dataclasses import dataclass

from bench.cluster import Cluster
from bench.java_tools import Produced, produced, producer
from bench.settings import Settings


@dataclass(slots=True)
class ClusterSession:
    """The running cluster and the volumes."""

    cluster: Cluster
    settings: Settings

    def settle(self) -> None:
        """Write dirty pages back, so that one workload does not pay for the one before."""
        os.sync()
        self.cluster.check_alive()

    def rest(self) -> None:
        time.sleep(self.settings.idle_seconds)
        self.cluster.check_alive()

    def produce(self, topic: str, records: int) -> Produced:
        """Fill a topic that exists with 1000-byte records; the client's settings are defaults."""
        warm_up = int(records * self.settings.warm_up_share)
        self.settle()
        tool = producer(self.cluster.bootstrap, topic, records, 1000, warm_up)
        return produced(tool.wait(self.settings.timeout_seconds))
