"""The processing log as a topic, and as a stream over it, as ksqlDB's settings ask for.

    ksql.logging.processing.topic.auto.create    make the topic at the start
    ksql.logging.processing.topic.name           its name: <service id>ksql_processing_log
    ksql.logging.processing.stream.auto.create   make the stream at the start
    ksql.logging.processing.stream.name          its name: KSQL_PROCESSING_LOG

An entry waits for the broker in the producer's queue. Where that is full, entries are dropped and
counted: queries never wait for their log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from barnabas.base.clock import now_ms
from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.sql.engine import config
from barnabas.sql.engine.cluster import Cluster, ClusterError, NewTopic
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.session import Session
from barnabas.sql.errors import SqlError
from barnabas.sql.processing_log import COLUMNS, PREFIX, Entry, encode_entry, log_entry
from barnabas.sql.server.config import ServerConfigError

_log = logging.getLogger(__name__)
_QUEUE_MAX = 10_000
_QUEUE_KIB_MAX = 16 * 1024
_DELIVERY_MS = 30_000
_CLOSE_S = 3.0


class ProcessingLogSettings:
    """The server's settings of the processing log. Raises ServerConfigError."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        def of(name: str, default: Any) -> str:
            value = settings.get(PREFIX + name)
            return str(default if value in (None, "") else value)

        self.creates_topic = of("topic.auto.create", False).lower() == "true"
        self.creates_stream = of("stream.auto.create", False).lower() == "true"
        service_id = settings.get(config.SERVICE_ID) or config.DEFAULTS[config.SERVICE_ID]
        self.topic = of("topic.name", f"{service_id}ksql_processing_log")
        self.stream = of("stream.name", "KSQL_PROCESSING_LOG")
        self.partitions = _positive("topic.partitions", of("topic.partitions", 1))
        self.replicas = _positive("topic.replication.factor", of("topic.replication.factor", 1))
        self.is_written = (
            self.creates_topic
            or self.creates_stream
            or settings.get(f"{PREFIX}topic.name") not in (None, "")
        )

    @property
    def statement(self) -> str:
        """The statement that creates the stream."""
        return (
            f"CREATE STREAM {self.stream} ({COLUMNS}) WITH (KAFKA_TOPIC="
            f"'{self.topic}', VALUE_FORMAT='JSON', KEY_FORMAT='KAFKA');"
        )


def _positive(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ServerConfigError(f"{PREFIX}{name} is a positive number, not {text}")
    return int(text)


class ProcessingTopic:
    """`note` takes entries, in any thread. `written`, `dropped`: how many there were."""

    def __init__(self, settings: ProcessingLogSettings, kafka: Mapping[str, Any]) -> None:
        self._settings = settings
        self.written = 0
        self.dropped = 0
        self._engine: KsqlEngine | None = None
        self._producer: Producer | None = None
        if settings.is_written:
            self._producer = Producer(
                {
                    "log_level": 2,
                    **kafka,
                    **JAVA_PARTITIONER,
                    "queue.buffering.max.messages": _QUEUE_MAX,
                    "queue.buffering.max.kbytes": _QUEUE_KIB_MAX,
                    "message.timeout.ms": _DELIVERY_MS,
                    "allow.auto.create.topics": False,
                }
            )

    def note(self, query_id: str, entry: Entry) -> None:
        """Take an entry: it is written later, or dropped."""
        log_entry(query_id, entry)
        if self._producer is None or self._reads_log(query_id):
            return
        try:
            data = encode_entry(query_id, entry, now_ms())
            self._producer.produce(self._settings.topic, data, on_delivery=self._delivered)
            self._producer.poll(0)
        except (BufferError, KafkaException, ValueError):
            self.dropped += 1

    def _reads_log(self, query_id: str) -> bool:
        """Return whether it is a query over this topic: each entry would make it write another."""
        engine = self._engine
        if engine is None:
            return False
        running, pushed = engine.queries.get(query_id), engine.asking.push_queries.get(query_id)
        names = running.query.plan.sources if running else pushed.plan.sources if pushed else ()
        sources = [engine.metastore.source(name) for name in names]
        return any(
            source is not None and source.topic == self._settings.topic for source in sources
        )

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.written += 1
        else:
            self.dropped += 1

    def make_topic(self, cluster: Cluster) -> None:
        """Make the topic, if it is asked for. A server without it serves all the same."""
        own = self._settings
        if own.creates_topic:
            try:
                cluster.create_topic(NewTopic(own.topic, own.partitions, own.replicas))
            except ClusterError as error:
                _log.warning("cannot create the topic %s: %s", own.topic, error)

    def make_stream(self, engine: KsqlEngine) -> None:
        """Make the stream, if it is asked for and not there. Entries are of this engine."""
        self._engine = engine
        own = self._settings
        if not own.creates_stream:
            return
        try:
            for parsed, session in engine.parse(own.statement, Session(engine.settings)):
                if engine.metastore.source(getattr(parsed.statement, "name", "")) is None:
                    engine.execute(parsed, session)
        except (SqlError, ClusterError) as error:
            _log.warning("cannot create the stream %s: %s", own.stream, error)

    def close(self) -> None:
        """Write what can be written in a moment."""
        if self._producer is not None:
            self.dropped += self._producer.flush(_CLOSE_S)
