"""Lag of pipeline and dashboard, from the brokers and from their own reports."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.demo.contract import PipelineProgress
from barnabas.demo.dashboard.groups import end_offsets
from barnabas.demo.topics import INPUT_TOPICS, OUTPUT_TOPICS


@dataclass(slots=True, frozen=True)
class Backlog:
    """What is left to do, in records; `known` is False where something did not answer."""

    pipeline: int
    """Records that the slowest query of each input topic has not processed."""
    dashboard: int
    """Result records that the dashboard has not read."""
    groups: int
    """Sum of the lags of the consumer groups on the page."""
    known: bool

    @property
    def nothing(self) -> bool:
        """Whether everything published is processed and shown."""
        return self.known and not (self.pipeline or self.dashboard or self.groups)


UNKNOWN = Backlog(0, 0, 0, known=False)


def read_json(path: str) -> Any:
    """Return a JSON file's content, None where it does not exist (yet)."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as source:
        return json.load(source)


def measure(
    admin: AdminClient, progress: PipelineProgress | None, page: dict[str, Any] | None
) -> Backlog:
    """Compare end offsets with the pipeline's progress and the page's own account."""
    if progress is None or page is None:
        return UNKNOWN
    try:
        ends = end_offsets(admin, [*INPUT_TOPICS, *OUTPUT_TOPICS])
    except KafkaException:
        return UNKNOWN
    lags = [group["lag"] for group in page["groups"]]
    read = page["outputs_read"]
    output_ends = dict.fromkeys(OUTPUT_TOPICS, 0)
    for (name, _), end in ends.items():
        if name in output_ends:
            output_ends[name] += end
    return Backlog(
        pipeline=pipeline_backlog(ends, progress),
        dashboard=sum(max(0, end - read.get(name, 0)) for name, end in output_ends.items()),
        groups=sum(lag or 0 for lag in lags),
        known=bool(lags) and None not in lags,
    )


def pipeline_backlog(ends: dict[tuple[str, int], int], progress: PipelineProgress) -> int:
    """Sum over input topics of what the slowest query that reads it has not processed."""
    behind: dict[str, int] = {}
    for query in progress["queries"].values():
        topic = query["topic"]
        left = sum(
            max(0, end - query["offsets"].get(str(partition), 0))
            for (name, partition), end in ends.items()
            if name == topic
        )
        behind[topic] = max(behind.get(topic, 0), left)
    return sum(behind.values())
