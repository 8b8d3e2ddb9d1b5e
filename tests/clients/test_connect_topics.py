"""The three topics of a group of workers, on a cluster."""

import contextlib
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from barnabas.app.testing import Kafka
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.clients import Clients, read_clients
from barnabas.connect.worker.distributed.config_log import ConnectorChanged, Update
from barnabas.connect.worker.distributed.config_topic import ConfigTopic, FencedError
from barnabas.connect.worker.distributed.kafka_log import Kind, WorkerTopic, topic_plan
from barnabas.connect.worker.distributed.records import SessionKey
from barnabas.connect.worker.distributed.store import (
    OffsetTopic,
    StatusTopic,
    TopicOffsets,
    TopicStore,
)
from barnabas.connect.worker.state import Status, TopicStatus
from barnabas.schemas.data.errors import ConfigError
from support.patience import PATIENCE_S


@pytest.fixture
def clients(kafka: Kafka) -> Clients:
    return read_clients({"bootstrap.servers": kafka.bootstrap_servers})


def plan(kafka: Kafka, kind: Kind, **settings: str) -> WorkerTopic:
    prefix = f"{kind}.storage."
    given = {"topic": kafka.name(kind), "replication.factor": "-1", **settings}
    return topic_plan(
        {prefix + name.replace("_", "."): value for name, value in given.items()}, kind
    )


def topic_config(kafka: Kafka, name: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = kafka.admin.describe_configs([resource])[resource].result()
    return {key: entry.value for key, entry in found.items()}


@contextlib.contextmanager
def running(*topics: ConfigTopic | StatusTopic | OffsetTopic) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for topic in topics:
            topic.start()
            stack.callback(topic.stop)
        yield


def ignore(_update: Update) -> None:
    pass


def test_configurations_are_read_by_every_worker(kafka: Kafka, clients: Clients) -> None:
    where = plan(kafka, "config", segment_bytes="1048576")
    heard: list[Update] = []
    has_heard = threading.Event()

    def hear(update: Update) -> None:
        heard.append(update)
        has_heard.set()

    one, two = ConfigTopic(clients, where, ignore), ConfigTopic(clients, where, hear)
    with running(one, two):
        config = topic_config(kafka, where.name)
        assert (config["cleanup.policy"], config["segment.bytes"]) == ("compact", "1048576")
        one.put_connector("a", {"name": "a"}, "STOPPED")
        assert one.snapshot().target_states == {"a": "STOPPED"}
        assert has_heard.wait(PATIENCE_S)
        assert heard[0] == ConnectorChanged("a")
        one.put_tasks("a", [{"n": "0"}, {"n": "1"}])
        one.put_session_key(SessionKey(b"k" * 32, "HmacSHA256", 1))
        one.put_target_state("a", "STARTED")
        two.refresh(PATIENCE_S)
        late = ConfigTopic(clients, where, ignore)
        with running(late):
            assert late.snapshot() == two.snapshot()
            assert late.snapshot().tasks("a") == (TaskId("a", 0), TaskId("a", 1))


@pytest.mark.slow
def test_an_older_leader_is_fenced(kafka: Kafka, clients: Clients) -> None:
    where = plan(kafka, "config")
    id_ = kafka.name("connect-cluster")
    one, two = (
        ConfigTopic(clients, where, ignore, is_committed_only=True, transactional_id=id_)
        for _ in range(2)
    )
    with running(one, two):
        with pytest.raises(FencedError, match="without claiming write privileges first"):
            one.put_connector("a", {})
        one.claim_writes()
        one.put_connector("a", {"v": "1"})
        two.claim_writes()
        with pytest.raises(FencedError):
            one.put_connector("a", {"v": "2"})
        two.put_connector("a", {"v": "3"})
        one.refresh(PATIENCE_S)
        assert one.snapshot().connectors == {"a": {"v": "3"}}


def test_a_topic_that_is_not_compacted_is_refused(kafka: Kafka, clients: Clients) -> None:
    name = kafka.topic("statuses", config={"cleanup.policy": "delete"})
    where = topic_plan({"status.storage.topic": name}, "status")
    with pytest.raises(ConfigError, match=r"'cleanup\.policy=compact' to guarantee consistency"):
        StatusTopic(clients, where).start()


def test_a_config_topic_of_many_partitions_is_refused(kafka: Kafka, clients: Clients) -> None:
    name = kafka.topic("configs", 2, config={"cleanup.policy": "compact"})
    where = topic_plan({"config.storage.topic": name}, "config")
    with pytest.raises(ConfigError, match=r"required to have a single partition .* found 2"):
        ConfigTopic(clients, where, ignore).start()


@pytest.mark.slow
def test_states_are_known_to_every_worker(kafka: Kafka, clients: Clients) -> None:
    where = plan(kafka, "status", partitions="2")
    one, two = StatusTopic(clients, where), StatusTopic(clients, where)
    task = TaskId("a", 0)
    with running(one, two):
        one.put("a", Status("RUNNING", "one:8083", 2))
        one.put(task, Status("FAILED", "one:8083", 2, "it broke"))
        one.put_topic(TopicStatus("t", "a", 0, 5))
        one.flush()
        two.refresh(PATIENCE_S)
        assert two.get("a") == Status("RUNNING", "one:8083", 2)
        assert two.tasks("a") == {0: Status("FAILED", "one:8083", 2, "it broke")}
        assert list(two.topics("a")) == ["t"]
        two.put_safe("a", Status("UNASSIGNED", "two:8083", 1))
        two.put("a", Status("DESTROYED", "two:8083", 3))
        two.remove_topic("a", "t")
        two.flush()
        one.refresh(PATIENCE_S)
        assert one.get("a") is None
        assert not one.topics("a")


@pytest.mark.slow
def test_offsets_are_known_to_every_worker(kafka: Kafka, clients: Clients) -> None:
    where = plan(kafka, "offset", partitions="3")
    one, two = OffsetTopic(clients, where), OffsetTopic(clients, where)
    with running(one, two):
        one.store("a", [({"file": str(n)}, {"position": n}) for n in range(9)])
        reader = TopicOffsets("a", [two])
        assert reader.offset({"file": "4"}) == {"position": 4}
        one.store("a", [({"file": "4"}, None)])
        assert reader.offset({"file": "4"}) is None
        assert len(reader.all()) == 8
        assert TopicOffsets("b", [two]).all() == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, 'Missing required configuration "status.storage.topic"'),
        ({"topic": "t", "partitions": "many"}, "Invalid value many .* Not a number of type INT"),
        ({"topic": "t", "replication.factor": "0"}, "Invalid value 0 .* Replication factor"),
    ],
)
def test_settings_of_topics_are_checked(settings: dict[str, str], words: str) -> None:
    given = {f"status.storage.{name}": value for name, value in settings.items()}
    with pytest.raises(ConfigError, match=words):
        topic_plan(given, "status")


def test_a_connectors_own_offsets_topic_wins(kafka: Kafka, clients: Clients) -> None:
    settings = {"group.id": kafka.name()}
    for kind in ("config", "offset", "status"):
        settings[f"{kind}.storage.topic"] = kafka.name(kind)
        settings[f"{kind}.storage.replication.factor"] = "-1"
    settings |= {"offset.storage.partitions": "1", "status.storage.partitions": "1"}
    store = TopicStore(clients, settings, ignore)
    store.start()
    with contextlib.closing(store):
        own = {"offsets.storage.topic": kafka.name("own")}
        one, two = {"file": "1"}, {"file": "2"}
        store.put_offsets("a", {}, [(one, {"at": 1}), (two, {"at": 2})])
        assert store.offsets("a", own).offset(one) == {"at": 1}
        store.put_offsets("a", own, [(one, {"at": 3})])
        assert sorted(store.offsets("a", own).all(), key=str) == [
            (one, {"at": 3}),
            (two, {"at": 2}),
        ]
        store.put_offsets("a", own, [(one, None), (two, None)])
        assert store.offsets("a", own).all() == store.offsets("a", {}).all() == []
