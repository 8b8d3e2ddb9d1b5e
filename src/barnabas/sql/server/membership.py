"""This server among those of its service: a member of a consumer group, which has slots.

Each member's client id holds its address, as `barnabas-sql@http://host:port`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from barnabas.base.peer_lines import repeating_logger
from barnabas.kafka.admin import Admin
from barnabas.sql.engine.cluster import Cluster, ClusterError, NewTopic
from barnabas.sql.engine.ownership import SLOTS, Lease
from barnabas.sql.server.hosts import SESSION_TIMEOUT_MS
from barnabas.sql.server.kafka_follower import asked

_log = logging.getLogger(__name__)
_outages = repeating_logger(f"{__name__}.outages")
_POLL_S = 0.1
_PULSE_S = 0.1
_WAIT_S = 10.0
"""Time that a request for the servers waits."""
_ASK_S = 3600.0
"""Time to look for the group's coordinator. librdkafka (2.16) aborts the process where it is
found after a request for it has timed out."""
_MARK = "barnabas-sql@"


def topic_of(service_id: str) -> str:
    """The topic whose partitions are the slots."""
    return f"_confluent-ksql-{service_id}_slots"


def group_of(service_id: str) -> str:
    """The group of a service's servers."""
    return f"_confluent-ksql-{service_id}_servers"


def _tell(error: KafkaError) -> None:
    """What the client library reports beside its answers; a second client would say the same."""
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        _outages.warning("no broker answers: statements and results wait")


class Membership:
    """`own` is called with the slots that this server has, whenever they change."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Mapping[str, Any],
        service_id: str,
        url: str,
        own: Callable[[frozenset[int]], None],
        *,
        replicas: int | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        self._topic, self._group = topic_of(service_id), group_of(service_id)
        self._own = own
        self._slots: frozenset[int] = frozenset()
        self._change = threading.Condition()
        self._calls = threading.Lock()
        self._asking = threading.Lock()
        self._question: Future[Any] | None = None
        self._has_won = False
        self._is_closed = False
        self._told = ""
        self._lease = Lease(session_timeout_ms / 1000, time.monotonic())
        self._admin = Admin(settings)
        cluster.create_topic(NewTopic(self._topic, SLOTS, replicas))
        self._consumer = Consumer(
            {
                **settings,
                "client.id": f"{_MARK}{url}",
                "error_cb": _tell,
                "group.id": self._group,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": session_timeout_ms,
                "heartbeat.interval.ms": min(3_000, session_timeout_ms // 3),
            }
        )
        self._threads = [
            threading.Thread(target=target, name=f"sql {target.__name__}", daemon=True)
            for target in (self._follow, self._start_won, self._pulse)
        ]

    def start(self) -> None:
        """Join the group; slots come later."""
        self._lease.begin(time.monotonic())
        for thread in self._threads:
            thread.start()

    def may_write(self) -> bool:
        """Return whether no other server can have this one's slots yet."""
        return self._lease.is_held(time.monotonic())

    # --- slots -------------------------------------------------------------------------------

    def _follow(self) -> None:
        self._subscribe()
        while not self._is_closed:
            self._poll()
            if not self._lease.is_held(time.monotonic()) and not self._is_closed:
                _log.warning("this server was paused for too long: it rejoins its group")
                self._join_anew()
        self._set(frozenset())
        self._consumer.close()

    def _poll(self) -> None:
        """Let changes of slots come in, and tell what keeps them away."""
        try:
            message = self._consumer.poll(_POLL_S)
        except KafkaException:
            _log.exception("this server's slots are not known: it rejoins its group")
            self._join_anew()
            return
        failure = None if message is None else message.error()
        if failure is not None and failure.str() != self._told:
            self._told = failure.str()
            _log.warning("the group %s: %s", self._group, self._told)

    def _join_anew(self) -> None:
        self._set(frozenset())
        self._consumer.unsubscribe()
        self._lease.begin(time.monotonic())
        self._subscribe()

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            [self._topic],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.incremental_assign(places)
        consumer.pause(places)
        with self._change:
            self._slots |= {place.partition for place in places}
            self._has_won = True
            self._change.notify_all()

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        # Before this returns, nobody else gets the slots: their queries stop here.
        self._set(self._slots - {place.partition for place in places})

    def _set(self, slots: frozenset[int]) -> None:
        with self._change:
            self._slots = slots
        self._tell()

    def _tell(self) -> None:
        with self._calls:
            try:
                self._own(self._slots)
            except Exception:  # noqa: BLE001  a query must not end the membership
                _log.exception("queries could not be started or stopped")

    def _start_won(self) -> None:
        """Start queries of new slots apart, as it may take long."""
        while not self._is_closed:
            with self._change:
                self._change.wait_for(lambda: self._is_closed or self._has_won)
                self._has_won = False
            if not self._is_closed:
                self._tell()

    def _pulse(self) -> None:
        while not self._is_closed:
            self._lease.renew(time.monotonic())
            time.sleep(_PULSE_S)

    # --- the others --------------------------------------------------------------------------

    def servers(self) -> dict[str, frozenset[int]]:
        """The slots of each server of the service, by its address. Raises ClusterError."""

        slots: dict[str, frozenset[int]] = {}
        for member in self._describe().members:
            if member.client_id.startswith(_MARK):
                places = member.assignment.topic_partitions if member.assignment else []
                url = member.client_id.removeprefix(_MARK)
                slots[url] = slots.get(url, frozenset()) | {place.partition for place in places}
        return slots

    def _describe(self) -> Any:
        """Return the group. A question that is not answered yet is not asked again."""
        with self._asking:
            if self._question is None:
                self._question = self._admin.client.describe_consumer_groups(
                    [self._group], request_timeout=_ASK_S
                )[self._group]
            question = self._question
        done, _ = wait([question], _WAIT_S)
        if not done:
            raise ClusterError(f"the coordinator of the group {self._group} does not answer")
        with self._asking:
            if self._question is question:
                self._question = None
        return asked(question.result)

    def close(self) -> None:
        """Stop this server's queries and leave the group."""
        with self._change:
            self._is_closed = True
            self._change.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
