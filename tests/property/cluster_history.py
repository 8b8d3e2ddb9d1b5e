"""Random histories of a cluster as its controller decides them, and what must hold after each step.

Run by test_metadata_replay.py, and by test_metadata_defects.py over a controller that was broken
on purpose.
"""

import random
from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.bootstrap import feature_records
from barnabas.node.metadata.controller.activation import activation_records
from barnabas.node.metadata.controller.decision import ControllerState
from barnabas.node.metadata.controller.elections import balance_leaders, elect_unclean_leaders
from barnabas.node.metadata.controller.handlers import DECIDE
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import (
    NO_LEADER,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsIndex,
)
from barnabas.node.metadata.loader import ImageLoader, RecordBatch
from barnabas.node.metadata.records import MetadataRecord, decode_record, encode_record
from barnabas.node.metadata.registration import broker_registration, recovery_report
from barnabas.node.metadata.snapshot import image_records
from barnabas.protocol.features import FEATURES, METADATA_VERSION, MetadataVersion
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest, UnregisterBrokerRequest
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)

BROKERS = st.integers(0, 3)
TOPICS = st.sampled_from(["a", "b", "c.d", "c_d"])
PARTITIONS = st.integers(0, 63)
"""One of those there are, counted round."""
LEVELS = st.sampled_from(
    [
        MetadataVersion.IBP_3_3_IV3,
        MetadataVersion.IBP_3_7_IV2,
        MetadataVersion.IBP_4_0_IV3,
        MetadataVersion.IBP_4_3_IV0,
    ]
)
CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"
Key = tuple[Uuid, int]


class Target(NamedTuple):
    """The requested replicas of a partition; a move ends when all of them are in sync."""

    replicas: tuple[int, ...]
    is_move: bool


class ClusterHistory(RuleBasedStateMachine):
    """Brokers come, crash and go; topics are made, grown, configured, moved and deleted."""

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
        self.partitions: dict[Key, PartitionImage] = {}
        self.targets: dict[Key, Target] = {}
        levels = {name: feature.default_level(level) for name, feature in FEATURES.items()}
        levels[METADATA_VERSION] = level
        self.append(activation_records(self.state(), feature_records(levels), -1))
        for broker in range(4):
            self.register(broker, None, clean=True)
            self.unfence(broker)
        self.create("a", 2, 3, "2")
        self.create("b", 1, 2, None)

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

    def do(self, request: object) -> Any:
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
        elr_enabled = self.image.features.get("eligible.leader.replicas.version", 0) >= 1
        if elr_enabled and not (known and clean):
            for topic in self.image.topics.by_id.values():
                for part in topic.partitions.values():
                    assert broker not in (*part.isr, *part.elr), "a crash may have lost records"

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

    @rule(broker=BROKERS, clean=st.booleans())
    def come_back(self, broker: int, clean: bool) -> None:
        self.register(broker, None, clean)
        self.unfence(broker)

    @rule(clean=st.booleans())
    def all_come_back(self, clean: bool) -> None:
        for broker in range(4):
            known = self.image.brokers.get(broker)
            if known is None or not known.is_active:
                self.come_back(broker, clean)

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

    @precondition(lambda self: len(self.image.topics.by_id) > 2)
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

    def find(self, which: int) -> tuple[TopicImage, int, PartitionImage]:
        """One of the partitions; there is one."""
        found = [
            (topic, number, partition)
            for topic in self.image.topics.by_id.values()
            for number, partition in topic.partitions.items()
        ]
        return found[which % len(found)]

    @precondition(lambda self: self.image.topics.by_id)
    @rule(which=PARTITIONS, wanted=st.sets(BROKERS))
    def alter_partition(self, which: int, wanted: set[int]) -> None:
        """The leader finds that those replicas, and it, are in sync."""
        self.propose(which, wanted)

    @precondition(lambda self: self.image.topics.by_id)
    @rule(which=PARTITIONS)
    def catch_up(self, which: int) -> None:
        """The leader finds that all live replicas are in sync."""
        self.propose(which, {b.id for b in self.image.brokers.values() if b.is_active})

    def propose(self, which: int, wanted: set[int]) -> None:
        topic, number, partition = self.find(which)
        leader = partition.leader
        if leader == NO_LEADER:
            return
        self.do(
            AlterPartitionRequest(
                broker_id=leader,
                broker_epoch=self.image.brokers[leader].epoch,
                topics=[
                    AlterPartitionRequestTopicData(
                        topic_id=topic.id,
                        partitions=[
                            AlterPartitionRequestPartitionData(
                                partition_index=number,
                                leader_epoch=partition.leader_epoch,
                                partition_epoch=partition.partition_epoch,
                                new_isr_with_epochs=[
                                    BrokerState(broker_id=replica)
                                    for replica in partition.replicas
                                    if replica in wanted | {leader}
                                ],
                            )
                        ],
                    )
                ],
            )
        )

    def reassignment(self, name: str, number: int, target: list[int] | None) -> bool:
        response = self.do(
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name=name,
                        partitions=[ReassignablePartition(partition_index=number, replicas=target)],
                    )
                ]
            )
        )
        return bool(response.responses[0].partitions[0].error_code == 0)

    @precondition(lambda self: self.image.topics.by_id)
    @rule(
        which=PARTITIONS,
        replicas=st.one_of(
            st.permutations([0, 1, 2, 3]).flatmap(
                lambda order: st.integers(1, 4).map(lambda count: order[:count])
            ),
            st.lists(BROKERS, max_size=5),
        ),
    )
    def reassign(self, which: int, replicas: list[int]) -> None:
        topic, number, partition = self.find(which)
        if self.reassignment(topic.name, number, replicas):
            assert replicas
            # The same replicas in another order are no move: that is done at once.
            original = set(partition.replicas) - set(partition.adding)
            is_move = set(replicas) != original
            self.targets[(topic.id, number)] = Target(tuple(replicas), is_move)
        # A partition without a leader may now have a live replica: left to the next round.
        decision = elect_unclean_leaders(self.state())
        self.append(decision.records if decision else [])

    @precondition(lambda self: self.image.topics.index.reassigning)
    @rule(which=PARTITIONS)
    def cancel(self, which: int) -> None:
        topic, number, partition = self.find(which)
        if self.reassignment(topic.name, number, None):
            stays = tuple(r for r in partition.replicas if r not in partition.adding)
            self.targets[(topic.id, number)] = Target(stays, is_move=False)

    @rule(kind=st.integers(0, 1))
    def elect(self, kind: int) -> None:
        before = self.image
        response = self.do(ElectLeadersRequest(election_type=kind, topic_partitions=None))
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                now = self.image.topics.by_name[topic.topic].partitions[result.partition_id]
                if result.error_code:
                    was = before.topics.by_name[topic.topic].partitions[result.partition_id]
                    assert was == now
                elif kind == 0:
                    assert now.leader == now.replicas[0]
                else:
                    assert now.leader != NO_LEADER

    @rule()
    def balance(self) -> None:
        """After it every preferred replica that could lead does, and no more is to be done."""
        decision = balance_leaders(self.state())
        if decision is not None:
            assert not decision.response
            assert decision.records
            self.append(decision.records)
        assert balance_leaders(self.state()) is None
        for topic in self.image.topics.by_id.values():
            for part in topic.partitions.values():
                first = self.image.brokers.get(part.replicas[0])
                if first is not None and first.is_active and first.id in part.isr:
                    assert part.leader == first.id

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
            for part in topic.partitions.values():
                replicas = set(part.replicas)
                assert len(replicas) == len(part.replicas) > 0
                assert len(part.directories) == len(part.replicas)
                assert set(part.adding) <= replicas
                assert set(part.removing) <= replicas
                assert not set(part.adding) & set(part.removing)
                assert set(part.isr) <= replicas
                assert set(part.elr) <= replicas
                assert not set(part.isr) & set(part.elr)
                assert part.leader == NO_LEADER or part.leader in part.isr
                if part.leader != NO_LEADER:
                    assert all(brokers[member].is_active for member in part.isr)
                if part.leader != NO_LEADER:
                    assert brokers[part.leader].is_active, "a fenced broker leads"
                    assert not part.last_known_elr
                if not elr_enabled:
                    assert part.isr, "without ELR the last in-sync replica is never forgotten"
                    assert not part.elr

    @invariant()
    def epochs_rise_with_every_change(self) -> None:
        before, self.partitions = self.partitions, {}
        for topic in self.image.topics.by_id.values():
            for number, part in topic.partitions.items():
                key = (topic.id, number)
                self.partitions[key] = part
                was = before.get(key, part)
                if was is part:
                    continue
                assert part.leader_epoch >= was.leader_epoch
                if part.leader != was.leader or not set(was.replicas) <= set(part.replicas):
                    assert part.leader_epoch > was.leader_epoch
                # ClearElrRecord alone changes a partition within its epoch.
                if replace(was, elr=(), last_known_elr=()) != replace(
                    part, elr=(), last_known_elr=()
                ):
                    assert part.partition_epoch > was.partition_epoch
                else:
                    assert part.partition_epoch >= was.partition_epoch

    @invariant()
    def reassignments_end_with_exactly_their_target(self) -> None:
        for key, target in list(self.targets.items()):
            topic = self.image.topics.by_id.get(key[0])
            part = topic.partitions[key[1]] if topic else None
            if part is None:  # deleted
                del self.targets[key]
                continue
            stays = tuple(replica for replica in part.replicas if replica not in part.removing)
            assert stays == target.replicas
            all_in_sync = set(target.replicas) <= set(part.isr)
            if part.adding or part.removing:
                assert not all_in_sync, "a reassignment ends once all that stay are in sync"
            else:
                assert all_in_sync or not target.is_move, "and not before"
                del self.targets[key]

    @invariant()
    def nobody_waits_who_would_rather_lose(self) -> None:
        """If unclean elections are allowed, one live replica is enough to have a leader."""
        assert elect_unclean_leaders(self.state()) is None

    @invariant()
    def the_index_is_up_to_date(self) -> None:
        fresh = TopicsIndex(self.image.topics.by_id.values())
        for name in TopicsIndex.__slots__:
            assert getattr(self.image.topics.index, name) == getattr(fresh, name), name

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
