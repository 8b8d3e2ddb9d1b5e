"""The environment of a pipeline that runs: a cluster, a registry, a Spark session."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.errors import ConfigError
from barnabas.kafka.settings import java_settings, librdkafka_settings
from barnabas.streams.errors import PipelineError
from barnabas.streams.formats import Binding, Schemas
from barnabas.streams.steps import Environment, ReadTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOOTSTRAP_VARIABLE: Final = "BARNABAS_BOOTSTRAP_SERVERS"
REGISTRY_VARIABLE: Final = "BARNABAS_SCHEMA_REGISTRY_URL"
DEFAULT_BOOTSTRAP: Final = "localhost:9092"
FIRST_START: Final = "first-start"
"""The directory of what later starts must find, beside the checkpoints of the queries."""
_ASK_TIMEOUT_SECONDS: Final = 10.0

_connected: list[Environment] = []
"""That of the last `connect`: for all threads, and for each cell of a notebook."""


def current() -> Environment:
    """Return what `.df` is built in: that of `connect`, else one of the environment variables."""
    return _connected[-1] if _connected else connect()


def connect(
    bootstrap_servers: str | None = None,
    schema_registry_url: str | None = None,
    spark: SparkSession | None = None,
) -> Environment:
    """Say what cluster, registry and session `.df` reads, in a notebook or a shell.

    By default the environment variables BARNABAS_BOOTSTRAP_SERVERS (localhost:9092 without it) and
    BARNABAS_SCHEMA_REGISTRY_URL, and a session that runs, or is started now.
    """
    environment = Cluster(
        spark or active_session(),
        bootstrap_servers or default_bootstrap(),
        registry_of(schema_registry_url or os.environ.get(REGISTRY_VARIABLE)),
    )
    _connected[:] = [environment]
    return environment


def active_session() -> SparkSession:
    """Return the session of this process; starts one if none exists."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        from barnabas.spark.session import SessionOptions, start_session

        session = start_session(SessionOptions(app_name="barnabas-pipeline"))
    return session


def default_bootstrap() -> str:
    """Return the cluster of the environment variable, else this machine's."""
    return os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP


def registry_of(url: str | None) -> Schemas | None:
    """Return the registry at a URL; None without one."""
    if url is None:
        return None
    from barnabas.schemas.registry_client import RegistryClient

    return RegistryClient(url)


@dataclass
class Cluster:
    """The environment of a pipeline on a cluster.

    `directory` keeps what later starts must find as the first did; None for frames that are only
    looked at. `client` are settings of Kafka's clients (`security.protocol`, …).
    """

    spark: SparkSession
    bootstrap_servers: str
    registry: Schemas | None = None
    directory: str | None = None
    dead_letters: str | None = "dead-letters"
    is_committed_only: bool = False
    records_per_batch_max: int | None = None
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    learned: dict[int, str | None] = field(default_factory=dict)

    def records(self, source: ReadTopic) -> DataFrame:
        """Stream a topic."""
        reader = self.spark.readStream.format("kafka").option("startingOffsets", source.starting)
        # A table is read whole before the first row joins it.
        if self.records_per_batch_max is not None and not source.is_table:
            reader = reader.option("maxOffsetsPerTrigger", self.records_per_batch_max)
        return _columns(reader.options(**self._options(source)).load())

    def records_now(self, source: ReadTopic) -> DataFrame:
        """Read a topic to its end, once."""
        reader = self.spark.read.format("kafka")
        return _columns(reader.options(**self._options(source)).load())

    def binding(self, topic: str, part: str) -> Binding:
        """Return what binds a format to a topic."""
        return Binding(f"{topic}-{part}", self.registry, self.learned, self._pinned)

    def first_ends(self, topic: str) -> dict[int, int]:
        """Return where a topic ended at the first start."""
        pinned = self._pinned(f"{topic}.ends", lambda: json.dumps(self._ends(topic)))
        return {int(partition): end for partition, end in json.loads(pinned).items()}

    def learn(self, schema_id: int) -> None:
        """Take up a schema that came after the start; unreadable where it is not Avro."""
        if self.registry is not None:
            self.learned[schema_id] = self.registry.resolved_avro(schema_id)

    def client_settings(self) -> dict[str, str]:
        """Return settings of confluent-kafka's clients. Raises PipelineError."""
        settings = _translated(librdkafka_settings, self.client)
        return {"bootstrap.servers": self.bootstrap_servers, **settings}

    def _options(self, source: ReadTopic) -> dict[str, Any]:
        options: dict[str, Any] = {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": source.topic,
            "includeHeaders": "true",
        }
        if self.is_committed_only:
            options["kafka.isolation.level"] = "read_committed"
        settings = _translated(java_settings, self.client)
        options |= {f"kafka.{name}": value for name, value in settings.items()}
        return options | source.options

    def _ends(self, topic: str) -> dict[int, int]:
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        settings = {"group.id": "barnabas-pipeline", "enable.auto.commit": False, "log_level": 2}
        consumer = Consumer({**self.client_settings(), **settings})
        try:
            known = consumer.list_topics(topic, _ASK_TIMEOUT_SECONDS).topics[topic]
            if known.error is not None:
                raise PipelineError(f"the topic {topic} cannot be read: {known.error.str()}")
            return {
                partition: consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), _ASK_TIMEOUT_SECONDS
                )[1]
                for partition in known.partitions
            }
        except KafkaException as error:
            raise PipelineError(
                f"{self.bootstrap_servers} does not answer: {error.args[0].str()}"
            ) from error
        finally:
            consumer.close()

    def _pinned(self, name: str, make: Callable[[], str]) -> str:
        if self.directory is None:
            return make()
        path = os.path.join(self.directory, FIRST_START, name)
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            text = make()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.partial", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.partial", path)
        return text


def _translated(
    translate: Callable[[Mapping[str, str]], dict[str, Any]], settings: Mapping[str, str]
) -> dict[str, Any]:
    try:
        return translate(settings)
    except ConfigError as error:
        raise PipelineError(str(error)) from error


def _columns(records: DataFrame) -> DataFrame:
    return records.select("key", "value", "topic", "partition", "offset", "timestamp", "headers")


SETTINGS: Final = {
    # Timers and joins with tables need it.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A window ends when the watermark passes it, and not only with the next record.
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
_lock = threading.Lock()


@contextmanager
def query_settings(
    spark: SparkSession, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[None]:
    """Set them while queries start: each query copies its session's settings then."""
    settings = {**SETTINGS, **more}
    with _lock:
        before = {name: spark.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                spark.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)
