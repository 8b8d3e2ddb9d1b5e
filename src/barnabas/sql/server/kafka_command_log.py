"""The command log as a topic: one partition, written in transactions, kept for ever.

A server that writes takes the topic's transactional id, which ends the transactions of any other,
and looks whether others wrote since it read the topic: then its statement is tried again. So it is
if another server takes the id before this one has written: commands of two servers cannot cross.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.kafka.fenced_writer import AppendError, FencedError
from barnabas.kafka.planned_topics import TopicCreationError, TopicLogError, TopicPlan
from barnabas.kafka.topic_log import LogRecord, TopicLog
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.command_log import CommandLogError, LogEntry, OvertakenError, topic_name

TIMEOUT_S = 30.0
_PARTITION: Final = 0
_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
}


class KafkaCommandLog:
    """The command topic of a service; it is made if it is not there."""

    step = 2
    """After each record there is the marker that its transaction is committed."""

    def __init__(
        self, settings: Mapping[str, Any], service_id: str, replicas: int | None = None
    ) -> None:
        """Raises ClusterError where the topic can be neither made nor found."""
        self.topic = topic_name(service_id)
        self._service_id = service_id
        self._unread: list[LogEntry] = []
        self._log = TopicLog(settings, self.topic, self._take, is_committed_only=True)
        plan = TopicPlan(self.topic, 1, -1 if replicas is None else replicas, _CONFIG)
        try:
            self._log.open(plan, TIMEOUT_S)
        except TopicCreationError as error:
            raise ClusterError(str(error.error.str())) from error
        except TopicLogError as error:
            raise ClusterError(str(error)) from error

    def _take(self, record: LogRecord) -> None:
        self._unread.append(LogEntry(record.offset, record.key or b"", record.value or b""))

    def read_new(self) -> list[LogEntry]:
        # Records read before a failure stay in `_unread`.
        try:
            self._log.read_to_end(TIMEOUT_S)
        except TopicLogError as error:
            raise CommandLogError(f"cannot read {self.topic}: {error}") from error
        entries, self._unread = self._unread, []
        return entries

    def next_sequence(self) -> int:
        try:
            end = self._log.ends(TIMEOUT_S)[_PARTITION]
        except TopicLogError as error:
            raise CommandLogError(f"cannot read {self.topic}: {error}") from error
        return max(self._log.positions[_PARTITION], end)

    def append(self, key: bytes, value: bytes) -> int:
        try:
            self._log.lead(self._service_id, TIMEOUT_S)
            if self._unread:
                raise OvertakenError(f"another server has written to {self.topic}")
            (offset,) = self._log.append([(key, value)], TIMEOUT_S)
        except FencedError as error:
            raise OvertakenError(f"another server writes to {self.topic}") from error
        except AppendError as error:
            raise CommandLogError(str(error)) from error
        except TopicLogError as error:
            raise CommandLogError(f"cannot read {self.topic}: {error}") from error
        self._log.pass_over(_PARTITION, offset + 1)
        return offset

    def close(self) -> None:
        self._log.close()
