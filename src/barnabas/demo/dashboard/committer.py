"""Commits to Kafka how far two of Spark's queries have read `user-activity`.

Spark keeps its offsets in its checkpoints and commits none. Three readers share the topic without
sharing its records: this page, the recommendations and the warehouse of activity. For the latter
two, the offsets that the pipeline reports after each micro-batch are committed here, to a group
per query, so that each one's lag is its own and any Kafka tool shows it. Nothing reads them back.
"""

from __future__ import annotations

import json
import os
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from barnabas.demo.contract import PipelineProgress
from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import DashboardState

RECOMMENDATIONS_GROUP = "recommendations"
WAREHOUSE_GROUP = "warehouse"

GROUP_OF_QUERY = {
    "interest-totals": RECOMMENDATIONS_GROUP,
    "activity-minutes": WAREHOUSE_GROUP,
}
_EVERY_SECONDS = 0.5


class ProgressCommitter(ReaderThread):
    """Looks at the pipeline's progress file twice a second."""

    def __init__(self, bootstrap: str, state: DashboardState, progress_path: str) -> None:
        super().__init__("progress-committer", bootstrap, state)
        self._progress_path = progress_path

    def read(self) -> None:
        """Commit what is new until `stopping` is set."""
        consumers: dict[str, Consumer] = {}
        committed: dict[str, Any] = {}
        try:
            while not self.stopping.is_set():
                for group, (topic, offsets) in reported_offsets(self._progress_path).items():
                    if committed.get(group) == offsets:
                        continue
                    if group not in consumers:
                        consumers[group] = self.consumer(group)
                    places = [TopicPartition(topic, p, offset) for p, offset in offsets.items()]
                    consumers[group].commit(offsets=places, asynchronous=False)
                    committed[group] = offsets
                self.stopping.wait(_EVERY_SECONDS)
        finally:
            for consumer in consumers.values():
                consumer.close()


def reported_offsets(progress_path: str) -> dict[str, tuple[str, dict[int, int]]]:
    """Return by group its topic and the next offset of each partition; empty at first."""
    if not os.path.exists(progress_path):
        return {}
    with open(progress_path, encoding="utf-8") as source:
        progress: PipelineProgress = json.load(source)
    reported = {}
    for name, query in progress["queries"].items():
        if name in GROUP_OF_QUERY and query["offsets"]:
            offsets = {int(partition): offset for partition, offset in query["offsets"].items()}
            reported[GROUP_OF_QUERY[name]] = (query["topic"], offsets)
    return reported
