"""Images from batches: transactions, publication, and records that contradict the log."""

from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import ConfigsImage, MetadataImage
from barnabas.node.metadata.loader import ImageLoader, Published, RecordBatch
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.replay import ImageDelta, ReplayError
from barnabas.node.metadata.snapshotter import SnapshotSchedule
from barnabas.protocol.features import UnsupportedFeatureError, check_finalized
from barnabas.protocol.messages import metadata_records as messages
from barnabas.protocol.messages.quotas import EntityData

ID = Uuid(bytes([1] * 16))
OTHER = Uuid(bytes([2] * 16))


class Log:
    """Feeds records at ever higher offsets."""

    def __init__(self) -> None:
        self.loader = ImageLoader(MetadataImage())
        self.offset = 0

    def feed(self, *records: Any) -> list[Published]:
        batch = RecordBatch(self.offset, 3, 50, [MetadataRecord(message) for message in records])
        self.offset += len(records)
        return self.loader.feed([batch])


def topic(name: str, topic_id: Uuid = ID) -> messages.TopicRecord:
    return messages.TopicRecord(name=name, topic_id=topic_id)


def partition(number: int = 0, topic_id: Uuid = ID) -> messages.PartitionRecord:
    return messages.PartitionRecord(
        partition_id=number, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0
    )


BEGIN, END = messages.BeginTransactionRecord(), messages.EndTransactionRecord()
ABORT = messages.AbortTransactionRecord()


def test_a_batch_is_published_once_with_its_offset() -> None:
    log = Log()
    [(delta, image)] = log.feed(topic("a"), partition())
    assert (image.offset, image.epoch, image.timestamp_ms) == (1, 3, 50)
    assert set(image.topics.by_name) == {"a"}
    assert [changed.created for changed in delta.topics.values()] == [True]
    [(delta, _)] = log.feed(partition(1))
    assert [changed.created for changed in delta.topics.values()] == [False]
    assert list(delta.topics[ID].changed) == [1]


def test_a_transaction_becomes_visible_at_its_end() -> None:
    log = Log()
    [(_, before)] = log.feed(topic("a"), BEGIN, topic("b", OTHER))
    assert set(before.topics.by_name) == {"a"}
    assert log.loader.transaction_offset == 1
    assert log.feed(partition(0, OTHER)) == []
    [(_, after)] = log.feed(END)
    assert set(after.topics.by_name) == {"a", "b"}
    assert list(after.topics.by_name["b"].partitions) == [0]
    assert log.loader.transaction_offset == -1


def test_an_aborted_transaction_leaves_nothing() -> None:
    log = Log()
    log.feed(topic("a"))
    log.feed(BEGIN, topic("b", OTHER), messages.RemoveTopicRecord(topic_id=ID))
    [(delta, image)] = log.feed(ABORT, messages.NoOpRecord())
    assert set(image.topics.by_name) == {"a"}
    assert (delta.topics, delta.topics_deleted) == ({}, {})
    assert image.offset == log.offset - 1


def test_older_images_stay_as_they_were() -> None:
    log = Log()
    [(_, first)] = log.feed(topic("a"), partition())
    before = first.topics.by_name["a"]
    log.feed(
        messages.PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[], leader=-1),
        messages.ConfigRecord(resource_type=2, resource_name="a", name="x", value="1"),
    )
    log.feed(messages.RemoveTopicRecord(topic_id=ID))
    assert first.topics.by_name == {"a": before}
    assert before.partitions[0].leader == 1
    assert first.configs.by_resource == {}


def test_a_copy_knows_nothing_of_what_comes_later() -> None:
    log = Log()
    log.feed(topic("a"), partition())
    copy = log.loader.copy()
    change = messages.PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1])
    [(_, changed)] = log.feed(change)
    log.loader = copy
    [(_, again)] = log.feed(change)
    assert again.topics.by_name == changed.topics.by_name


def test_a_topic_made_again_in_one_batch_is_both_deleted_and_created() -> None:
    log = Log()
    log.feed(topic("a"), partition())
    [(delta, image)] = log.feed(
        messages.RemoveTopicRecord(topic_id=ID), topic("a", OTHER), partition(0, OTHER)
    )
    assert list(delta.topics_deleted) == [ID]
    assert list(delta.topics) == [OTHER]
    assert image.topics.by_name["a"].id == OTHER
    assert list(image.topics.by_id) == [OTHER]


def test_a_topic_made_and_removed_in_one_batch_was_never_there() -> None:
    log = Log()
    [(delta, image)] = log.feed(topic("a"), partition(), messages.RemoveTopicRecord(topic_id=ID))
    assert (delta.topics, delta.topics_deleted) == ({}, {})
    assert image.topics.by_name == {}


CONTRADICTIONS: dict[str, list[Any]] = {
    "topic twice": [topic("a"), topic("a", OTHER)],
    "partition of nothing": [partition()],
    "change of no partition": [
        topic("a"),
        messages.PartitionChangeRecord(topic_id=ID, partition_id=4),
    ],
    "change after removal": [
        topic("a"),
        messages.RemoveTopicRecord(topic_id=ID),
        partition(),
    ],
    "removal of nothing": [messages.RemoveTopicRecord(topic_id=ID)],
    "unregistered broker": [messages.UnregisterBrokerRecord(broker_id=1, broker_epoch=1)],
    "fence nobody": [messages.FenceBrokerRecord(id=1, epoch=1)],
    "another epoch": [
        messages.RegisterBrokerRecord(broker_id=1, broker_epoch=5),
        messages.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4, fenced=-1),
    ],
    "clear eligible leaders of nothing": [messages.ClearElrRecord(topic_name="a")],
    "transaction in a transaction": [BEGIN, BEGIN],
    "end of nothing": [END],
    "abortion of nothing": [ABORT],
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_records_that_contradict_the_log(case: str) -> None:
    with pytest.raises(ReplayError):
        Log().feed(*CONTRADICTIONS[case])


def test_everything_that_can_be_removed_is() -> None:
    """ACLs, SCRAM, tokens, quotas, features and controllers: set, then gone."""
    entity = [EntityData(entity_type="user", entity_name=None)]
    log = Log()
    [(_, full)] = log.feed(
        messages.FeatureLevelRecord(name="metadata.version", feature_level=30),
        messages.FeatureLevelRecord(name="group.version", feature_level=1),
        messages.AccessControlEntryRecord(id=ID, principal="User:a"),
        messages.UserScramCredentialRecord(name="a", mechanism=1),
        messages.DelegationTokenRecord(token_id="t"),
        messages.ClientQuotaRecord(entity=entity, key="rate", value=5.0),
        messages.RegisterControllerRecord(controller_id=4),
        messages.RegisterBrokerRecord(broker_id=1, broker_epoch=5),
        messages.UnfenceBrokerRecord(id=1, epoch=5),
        messages.ZkMigrationStateRecord(zk_migration_state=0),
    )
    assert not full.brokers[1].fenced
    assert full.client_quotas == {(("user", None),): {"rate": 5.0}}
    assert (set(full.acls), set(full.scram)) == ({ID}, {(1, "a")})
    [(_, empty)] = log.feed(
        messages.FeatureLevelRecord(name="group.version", feature_level=0),
        messages.RemoveAccessControlEntryRecord(id=ID),
        messages.RemoveUserScramCredentialRecord(name="a", mechanism=1),
        messages.RemoveDelegationTokenRecord(token_id="t"),
        messages.ClientQuotaRecord(entity=entity, key="rate", remove=True),
        messages.UnregisterBrokerRecord(broker_id=1, broker_epoch=5),
    )
    assert empty.features == {"metadata.version": 30}
    for left in (empty.acls, empty.scram, empty.delegation_tokens, empty.client_quotas):
        assert left == {}
    assert empty.brokers == {}
    assert (set(empty.controllers), empty.zk_migration_state) == ({4}, 0)


def test_eligible_leaders_are_cleared_everywhere_or_in_one_topic() -> None:
    def with_elr(topic_id: Uuid) -> messages.PartitionRecord:
        record = partition(0, topic_id)
        record.eligible_leader_replicas = [2]
        record.last_known_elr = [3]
        return record

    log = Log()
    log.feed(topic("a"), with_elr(ID), topic("b", OTHER), with_elr(OTHER))
    [(_, image)] = log.feed(messages.ClearElrRecord(topic_name="a"))
    assert image.topics.by_name["a"].partitions[0].elr == ()
    assert image.topics.by_name["b"].partitions[0].elr == (2,)
    [(_, image)] = log.feed(messages.ClearElrRecord())
    assert image.topics.by_name["b"].partitions[0].last_known_elr == ()


def test_a_delta_without_records_is_the_base() -> None:
    base = MetadataImage(cluster_id="c", offset=4)
    image = ImageDelta(base).image(5, 1)
    assert image.topics is base.topics
    assert (image.offset, image.cluster_id) == (5, "c")


# -- levels this release cannot run


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"metadata.version": 31}, "newer release"),
        ({"metadata.version": 3}, "Upgrade the cluster"),
        ({"metadata.version": 30, "group.version": 2}, "group.version is 2"),
        ({"metadata.version": 30, "shoe.version": 1}, "shoe.version is 1"),
    ],
)
def test_clusters_beyond_this_release(levels: dict[str, int], words: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_finalized(levels)
    assert words in str(caught.value)


# -- configuration that holds


def effective(**values: str) -> EffectiveConfig:
    return EffectiveConfig(
        NodeConfig.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": "PLAINTEXT://localhost:9292,CONTROLLER://localhost:9293",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@localhost:9293",
                "log.dirs": "/data",
                **{name.replace("_", "."): value for name, value in values.items()},
            }
        )
    )


def test_dynamic_values_that_cannot_be_used_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = effective()
    configs = ConfigsImage(
        {
            (4, ""): {
                "log.retention.ms": "soon",
                "no.such.key": "1",
                "log.segment.bytes": "2000000",
            },
            (2, "t"): {"retention.bytes": "many", "segment.ms": "7", "unheard.of": "1"},
        }
    )
    values = config.topic(configs, "t")
    assert (values["segment.bytes"], values["segment.ms"]) == (2000000, 7)
    assert (values["retention.ms"], values["retention.bytes"]) == (604800000, -1)
    assert "log.retention.ms" in caplog.text
    assert config.broker(configs) is config.broker(configs), "remembered"


def test_dynamic_values_that_exclude_each_other_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = effective()
    configs = ConfigsImage({(4, ""): {"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}})
    assert config.broker(configs) is config.static
    assert "cannot be used" in caplog.text


# -- when snapshots are due


def test_snapshots_are_due_by_size_or_by_time() -> None:
    schedule = SnapshotSchedule(bytes_max=100, interval_ms=1000, now_ms=0)
    schedule.committed(40)
    assert not schedule.is_due(999)
    schedule.committed(59)
    assert not schedule.is_due(999)
    schedule.committed(1)
    assert schedule.is_due(0)
    schedule.started(500)
    assert not schedule.is_due(9999), "nothing was committed since"
    schedule.committed(1)
    assert not schedule.is_due(1499)
    assert schedule.is_due(1500)


def test_the_interval_can_be_switched_off() -> None:
    schedule = SnapshotSchedule(bytes_max=100, interval_ms=0, now_ms=0)
    schedule.committed(99)
    assert not schedule.is_due(10**9)
