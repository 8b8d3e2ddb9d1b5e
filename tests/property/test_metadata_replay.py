"""Random histories of a cluster: what must hold after every step, and the snapshot of each."""

import random
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.base.config.node import NodeConfig
from barnabas.base.ids import Uuid
from barnabas.metadata.bootstrap import feature_records
from barnabas.metadata.controller.activation import activation_records
from barnabas.metadata.controller.decision import ControllerState
from barnabas.metadata.controller.handlers import DECIDE
from barnabas.metadata.effective_config import EffectiveConfig
from barnabas.metadata.features import FEATURES, METADATA_VERSION, MetadataVersion
from barnabas.metadata.image import NO_LEADER, MetadataImage
from barnabas.metadata.loader import ImageLoader, RecordBatch
from barnabas.metadata.records import MetadataRecord, decode_record, encode_record
from barnabas.metadata.registration import broker_registration, recovery_report
from barnabas.metadata.snapshot import image_records
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest

BROKERS = st.integers(0, 3)
TOPICS = st.sampled_from(["a", "b", "c.d", "c_d"])
LEVELS = st.sampled_from(
    [
        MetadataVersion.IBP_3_3_IV3,
        MetadataVersion.IBP_3_7_IV2,
        MetadataVersion.IBP_4_0_IV3,
        MetadataVersion.IBP_4_3_IV0,
    ]
)
CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"


class ClusterHistory(RuleBasedStateMachine):
    """Brokers come, crash and go; topics are made, grown, configured and deleted."""

    @initialize(level=LEVELS, seed=st.integers(0, 1 << 16))
    def start(self, level: MetadataVersion, seed: int) -> None:
        config = NodeConfig.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": "0",
                "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "0@localhost:9093",
                "log.dirs": "/data",
            }
        )
        self.effective = EffectiveConfig(config)
        self.random = random.Random(seed)
        self.loader = ImageLoader(MetadataImage(cluster_id=CLUSTER_ID))
        self.history: list[RecordBatch] = []
        self.next_offset = 0
        self.incarnations = 0
        self.epochs: dict[tuple[Uuid, int], tuple[int, int]] = {}
        levels = {name: feature.default_level(level) for name, feature in FEATURES.items()}
        levels[METADATA_VERSION] = level
        self.append(activation_records(self.state(), feature_records(levels), -1))

    @property
    def image(self) -> MetadataImage:
        return self.loader.image

    def state(self) -> ControllerState:
        return ControllerState(self.image, self.effective, 0, self.random, self.next_offset)

    def append(self, records: list[MetadataRecord]) -> None:
        if records:
            records = [decode_record(encode_record(record)) for record in records]
            batch = RecordBatch(self.next_offset, 1, 5, records)
            self.history.append(batch)
            self.loader.feed([batch])
            self.next_offset += len(records)

    def do(self, request: object) -> object:
        decision = DECIDE[type(request)](self.state(), request)
        self.append(decision.records)
        return decision.response

    @rule(broker=BROKERS, rack=st.sampled_from([None, "x", "y"]), clean=st.booleans())
    def register(self, broker: int, rack: str | None, clean: bool) -> None:
        self.incarnations += 1
        known = self.image.brokers.get(broker)
        self.do(
            broker_registration(
                broker_id=broker,
                cluster_id=CLUSTER_ID,
                incarnation_id=Uuid(self.incarnations.to_bytes(16, "big")),
                listeners={},
                rack=rack,
                log_dirs=[Uuid(bytes([9] * 15 + [broker]))],
                previous_broker_epoch=known.epoch if known and clean else -1,
            )
        )

    def heartbeat(self, broker: int, *, fence: bool = False, shut_down: bool = False) -> None:
        known = self.image.brokers.get(broker)
        if known is not None:
            self.do(
                BrokerHeartbeatRequest(
                    broker_id=broker,
                    broker_epoch=known.epoch,
                    current_metadata_offset=self.image.offset,
                    want_fence=fence,
                    want_shut_down=shut_down,
                )
            )

    @rule(broker=BROKERS)
    def unfence(self, broker: int) -> None:
        self.heartbeat(broker)

    @rule(broker=BROKERS)
    def fence(self, broker: int) -> None:
        self.heartbeat(broker, fence=True)

    @rule(broker=BROKERS)
    def shut_down(self, broker: int) -> None:
        self.heartbeat(broker, shut_down=True)

    @rule(broker=BROKERS)
    def recover(self, broker: int) -> None:
        known = self.image.brokers.get(broker)
        report = recovery_report(self.image, broker, known.epoch) if known else None
        if report is not None:
            self.do(report)

    @precondition(lambda self: self.image.metadata_version >= 23)
    @rule(broker=BROKERS)
    def unregister(self, broker: int) -> None:
        self.do(UnregisterBrokerRequest(broker_id=broker))

    @rule(
        name=TOPICS,
        partitions=st.integers(1, 4),
        factor=st.integers(1, 4),
        min_isr=st.sampled_from([None, "1", "2", "3"]),
    )
    def create(self, name: str, partitions: int, factor: int, min_isr: str | None) -> None:
        configs = [CreatableTopicConfig(name="min.insync.replicas", value=min_isr)]
        self.do(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=name,
                        num_partitions=partitions,
                        replication_factor=factor,
                        configs=configs if min_isr else [],
                    )
                ]
            )
        )

    @rule(name=TOPICS, count=st.integers(1, 6))
    def grow(self, name: str, count: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        self.do(CreatePartitionsRequest(topics=[topic]))

    @rule(name=TOPICS)
    def delete(self, name: str) -> None:
        self.do(DeleteTopicsRequest(topic_names=[name]))

    @rule(
        name=TOPICS,
        key=st.sampled_from(["min.insync.replicas", "unclean.leader.election.enable"]),
        value=st.sampled_from(["1", "2", "true", "false"]),
        operation=st.integers(0, 1),
    )
    def configure(self, name: str, key: str, value: str, operation: int) -> None:
        config = AlterableConfig(name=key, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=[config])
        self.do(IncrementalAlterConfigsRequest(resources=[resource]))

    @invariant()
    def names_and_ids_agree(self) -> None:
        topics = self.image.topics
        assert {t.name: t for t in topics.by_id.values()} == topics.by_name
        for topic in topics.by_name.values():
            assert list(topic.partitions) == list(range(len(topic.partitions)))

    @invariant()
    def partitions_make_sense(self) -> None:
        brokers = self.image.brokers
        elr_enabled = self.image.features.get("eligible.leader.replicas.version", 0) >= 1
        for topic in self.image.topics.by_id.values():
            for number, part in topic.partitions.items():
                assert set(part.isr) <= set(part.replicas)
                assert set(part.elr) <= set(part.replicas)
                assert not set(part.isr) & set(part.elr)
                assert part.leader == NO_LEADER or part.leader in part.isr
                if part.leader != NO_LEADER:
                    assert brokers[part.leader].is_active
                    assert not part.last_known_elr
                if not elr_enabled:
                    assert part.isr, "without ELR the last in-sync replica is never forgotten"
                    assert not part.elr
                epochs = (part.leader_epoch, part.partition_epoch)
                assert epochs >= self.epochs.get((topic.id, number), (0, 0))
                self.epochs[(topic.id, number)] = epochs

    @invariant()
    def live_eligible_replicas_lead(self) -> None:
        """No partition waits while somebody who has everything is there."""
        for topic in self.image.topics.by_id.values():
            for part in topic.partitions.values():
                if part.leader == NO_LEADER:
                    eligible = part.isr or part.elr
                    live = [b for b in eligible if b in self.image.brokers]
                    assert not any(self.image.brokers[b].is_active for b in live)

    @invariant()
    def a_snapshot_gives_the_image_back(self) -> None:
        records = [decode_record(encode_record(r)) for r in image_records(self.image)]
        loader = ImageLoader(MetadataImage(cluster_id=CLUSTER_ID))
        again = loader.feed([RecordBatch(0, 1, 5, records)])[-1].image
        assert replace(again, offset=self.image.offset) == self.image

    def teardown(self) -> None:
        """Loading the whole history at once, or cut in two, gives the same image."""
        if not self.history:
            return
        for cut in (0, len(self.history) // 2):
            loader = ImageLoader(MetadataImage(cluster_id=CLUSTER_ID))
            loader.feed(self.history[:cut])
            loader.feed(self.history[cut:])
            assert loader.image == self.image


TestClusterHistory = ClusterHistory.TestCase
TestClusterHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
