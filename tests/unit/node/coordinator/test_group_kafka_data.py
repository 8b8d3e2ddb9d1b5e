"""`__consumer_offsets` as Apache Kafka 4.3.1 wrote it, with a classic and a KIP-848 group."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.records import RECORD_TYPES
from barnabas.node.coordinator.record_codec import decode_record, encode_record
from barnabas.node.coordinator.runtime import partition_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import GroupMetadataValue, OffsetCommitValue
from barnabas.protocol.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from barnabas.protocol.records.batch import iterate_headers
from barnabas.protocol.records.records import Record, decode_records
from support.group_world import GroupWorld

KAFKA_DATA = Path(__file__).resolve().parents[5] / "shared" / "kafka-data"
ARCHIVE = KAFKA_DATA / "data.tar.gz"

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="no ../shared/kafka-data here")


@pytest.fixture(scope="module")
def segments() -> dict[int, bytes]:
    """The bytes of each partition of `__consumer_offsets`."""
    found = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            directory, _, name = member.name.rpartition("/")
            if "__consumer_offsets-" in directory and name.endswith(".log"):
                file = archive.extractfile(member)
                assert file is not None
                found[int(directory.rpartition("-")[2])] = file.read()
    return found


@pytest.fixture(scope="module")
def manifest() -> dict:
    return json.loads((KAFKA_DATA / "MANIFEST.json").read_text())


def raw_records(segment: bytes) -> list[Record]:
    return [
        record
        for position, _ in iterate_headers(segment)
        for record in decode_records(segment, position)
    ]


@pytest.fixture
def world(segments) -> GroupWorld:
    """A coordinator that took the directory over."""
    world = GroupWorld(offsets_topic_num_partitions=len(segments))
    for partition, segment in segments.items():
        log = world.log[partition]
        log.batches = [bytearray(segment)] if segment else []
        log.end_offset = log.committed_offset = len(raw_records(segment))
    world.reload()
    return world


def test_groups_lie_where_kafka_put_them(segments):
    for partition, segment in segments.items():
        for raw in raw_records(segment):
            record = decode_record(raw, RECORD_TYPES)
            group = getattr(record.key, "group", None) or record.key.group_id
            assert partition_of(group, len(segments)) == partition


def test_our_bytes_are_kafkas_bytes(segments):
    count = 0
    for segment in segments.values():
        for raw in raw_records(segment):
            record: Any = decode_record(raw, RECORD_TYPES)
            again = encode_record(record)
            assert again == (raw.key, raw.value)
            count += 1
    assert count > 0


def test_the_committed_offsets_are_those_of_the_manifest(world, manifest):
    assert manifest["groups"]["readers"]["protocol"] == "classic"
    assert sum(world.offsets("readers").values()) == manifest["groups"]["readers"]["codec-none"]
    assert world.offsets("new-protocol") == {("txn", 0): 252}


def test_both_groups_are_listed(world):
    listed = world.coordinator.list_groups(ListGroupsRequest()).groups
    assert {
        (group.group_id, group.protocol_type, group.group_state, group.group_type)
        for group in listed
    } == {
        ("readers", "consumer", "Empty", "classic"),
        ("new-protocol", "consumer", "Empty", "consumer"),
    }


def test_the_classic_group_goes_on_from_its_generation(world):
    _, joining = world.join_fully("a", group_id="readers")
    world.clock.advance(3_000)
    assert joining.response.generation_id == 3


def test_classic_members_may_take_the_empty_groups_id(world):
    (member,) = world.stable_group("a", group_id="new-protocol", topics=("txn",))
    assert world.offsets("new-protocol") == {("txn", 0): 252}
    error = world.commit_error({("txn", 0): 253}, member, 1, group_id="new-protocol")
    assert error is ErrorCode.NONE
    world.reload()
    partition = world.coordinator.partition_for("new-protocol")
    group = world.coordinator.runtime.shard(partition).groups.get("new-protocol")
    assert isinstance(group, ClassicGroup)
    assert group.generation_id == 1
    assert world.offsets("new-protocol") == {("txn", 0): 253}


def test_the_new_group_can_be_deleted(world):
    request = DeleteGroupsRequest(groups_names=["new-protocol"])
    (result,) = world.coordinator.delete_groups(request).results
    assert result.error_code == ErrorCode.NONE
    world.reload()
    assert world.offsets("new-protocol") == {}
    listed = world.coordinator.list_groups(ListGroupsRequest()).groups
    assert [group.group_id for group in listed] == ["readers"]


@pytest.fixture
def live_world(segments) -> GroupWorld:
    """As `world`, taken over when the new group's member was still there."""
    world = GroupWorld(offsets_topic_num_partitions=len(segments))
    partition = partition_of("new-protocol", len(segments))
    batches = [
        segments[partition][position : position + header.size_bytes]
        for position, header in iterate_headers(segments[partition])
    ]
    kept = [batch for batch in batches if next(iterate_headers(batch))[1].base_offset < 6]
    log = world.log[partition]
    log.batches = [bytearray(batch) for batch in kept]
    log.end_offset = log.committed_offset = 6
    world.reload()
    return world


def test_a_live_group_of_the_new_protocol(live_world):
    world = live_world
    shard = world.coordinator.runtime.shard(world.coordinator.partition_for("new-protocol"))
    group = shard.groups.get("new-protocol")
    assert isinstance(group, ConsumerGroup)
    (member,) = group.members
    assert (group.epoch, group.assignment_epoch, group.members[member].member_epoch) == (2, 2, 2)
    joined = world.join("a", group_id="new-protocol")
    assert joined.error is ErrorCode.MEMBER_ID_REQUIRED
    options = {"group_id": "new-protocol"}
    offsets = {("txn", 0): 253}
    assert world.commit_error(offsets, **options) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit_error(offsets, member, 1, **options) is ErrorCode.STALE_MEMBER_EPOCH
    assert world.commit_error(offsets, member, 2, **options) is ErrorCode.NONE
    fetched = world.fetch(member_id=member, member_epoch=1, **options)
    assert fetched.error is ErrorCode.STALE_MEMBER_EPOCH
    assert world.fetch(member_id=member, member_epoch=2, **options).error is ErrorCode.NONE
    assert world.offsets("new-protocol") == {("txn", 0): 253}
    request = DeleteGroupsRequest(groups_names=["new-protocol"])
    assert world.coordinator.delete_groups(request).results[0].error_code == 68


def test_members_that_cannot_send_heartbeats_here_are_gone_after_their_session(live_world):
    world = live_world
    world.clock.advance(45_000)
    _, joining = world.join_fully("a", group_id="new-protocol")
    world.clock.advance(3_000)
    assert joining.response.generation_id == 1


def test_our_sequence_of_records_is_kafkas(segments):
    """One member joins, reads, commits and leaves: what Kafka wrote for the group `readers`."""
    world = GroupWorld()
    (member,) = world.stable_group("a")
    world.commit({("t", 0): 5}, member, 1, leader_epoch=0)
    world.leave((member, None))
    theirs = [
        decode_record(raw, RECORD_TYPES)
        for raw in raw_records(segments[partition_of("readers", len(segments))])
    ]
    assert _shape(world.log.records()) == _shape(theirs)


def _shape(records) -> list[tuple]:
    shape: list[Any] = []
    for record in records:
        value = record.value
        entry: tuple[Any, ...]
        if isinstance(value, GroupMetadataValue):
            entry = (
                record.value_version,
                value.protocol_type,
                value.generation,
                value.protocol,
                value.leader is None,
                len(value.members),
            )
        else:
            assert isinstance(value, OffsetCommitValue)
            entry = (record.value_version, value.leader_epoch, value.metadata)
        if not shape or shape[-1] != entry:
            shape.append(entry)
    return shape
