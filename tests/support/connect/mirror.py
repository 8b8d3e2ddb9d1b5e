"""A flow of mirroring between two clusters, run by our connectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.connect.tasks.base import TaskEngine
from support.connect.connectors import ConnectorRun
from support.connect.tasks import WAIT_SECONDS, TopicOffsets
from support.node_process import wait_until

PACKAGE = "org.apache.kafka.connect.mirror."
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
OFFSETS = "mm2-offsets.internal"
QUICK = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
}


class MirrorRun:
    """The connectors of one flow."""

    def __init__(
        self,
        engine: TaskEngine,
        source: str,
        target: str,
        more: Mapping[str, str] | None = None,
        *,
        aliases: tuple[str, str] = ("west", "east"),
        connectors: tuple[str, ...] = ("Source", "Checkpoint", "Heartbeat"),
        is_exactly_once: bool = False,
    ) -> None:
        worker = {
            "bootstrap.servers": target,
            "group.id": f"{aliases[0]}-mm2",
            "key.converter": BYTES,
            "value.converter": BYTES,
            "header.converter": BYTES,
        }
        settings = {
            **QUICK,
            "source.cluster.alias": aliases[0],
            "target.cluster.alias": aliases[1],
            "source.cluster.bootstrap.servers": source,
            "target.cluster.bootstrap.servers": target,
            **(more or {}),
        }
        self.runs: list[ConnectorRun] = []
        for kind in connectors:
            name = f"Mirror{kind}Connector"
            self.runs.append(
                ConnectorRun(
                    engine,
                    name,
                    {**settings, "connector.class": f"{PACKAGE}{name}"},
                    worker,
                    TopicOffsets(target, OFFSETS, name),
                    offsets_topic=OFFSETS if is_exactly_once else None,
                    is_exactly_once=is_exactly_once and kind == "Source",
                )
            )

    def wait_until(self, is_so: Callable[[], Any], seconds: float = WAIT_SECONDS) -> None:
        """Wait for a condition, following what the connectors ask for."""

        def happens() -> bool:
            if is_so():
                return True
            for run in self.runs:
                run.follow()
            return False

        wait_until(happens, "what the connectors are to do", seconds)

    def stop(self) -> None:
        """Stop all."""
        for run in self.runs:
            run.stop()
