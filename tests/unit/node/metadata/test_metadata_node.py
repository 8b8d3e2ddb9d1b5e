"""A node's metadata at work: started, asked, killed, started again."""

import asyncio
import os
import shutil
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest
from node_harness import CLUSTER_ID, NodeHarness

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.bootstrap import feature_records, write_bootstrap
from barnabas.node.metadata.controller.activation import BootstrapError
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.meta_properties import (
    MetaProperties,
    MetaPropertiesError,
    write_meta_properties,
)
from barnabas.node.metadata.records import MetadataRecord, encode_record
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.raft.interfaces import NotLeaderError
from barnabas.node.raft.snapshot_files import SnapshotId, list_snapshots
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import GROUP_VERSION, KRAFT_VERSION, UnsupportedFeatureError
from barnabas.protocol.messages.metadata_records import FeatureLevelRecord
from barnabas.protocol.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)

METADATA_LOG = "__cluster_metadata-0"


@pytest.mark.parametrize("standalone", [True, False])
async def test_a_fresh_node_leads_and_knows_its_cluster(tmp_path: Path, standalone: bool) -> None:
    async with NodeHarness(str(tmp_path), standalone=standalone) as harness:
        node = harness.node
        assert (node.cluster_id, node.image.cluster_id) == (CLUSTER_ID, CLUSTER_ID)
        assert (node.controller_id, node.raft.epoch) == (1, 1)
        assert node.image.features["metadata.version"] == 30
        assert set(node.image.controllers) == {1}
        assert ("kraft.version" in node.finalized_features) == standalone
        epoch = await harness.join()
        assert node.image.brokers[1].epoch == epoch == node.broker_epoch
        assert node.image.brokers[1].is_active


async def test_metadata_survives_a_clean_stop(tmp_path: Path) -> None:
    async with NodeHarness(str(tmp_path)) as harness:
        epoch = await harness.join()
        await harness.create("kept", 3)
        await harness.create("gone")
        await harness.node.handle(DeleteTopicsRequest(topic_names=["gone"]))
        await harness.node.controlled_shutdown()
        before = harness.node.image
    async with NodeHarness(str(tmp_path)) as harness:
        assert harness.node.raft.epoch == 2
        assert harness.node.image.topics == before.topics
        assert await harness.join(previous_broker_epoch=epoch) > epoch
        partitions = harness.node.image.topics.by_name["kept"].partitions.values()
        assert [partition.leader for partition in partitions] == [1, 1, 1]
        assert {partition.leader_recovery_state for partition in partitions} == {0}


async def test_metadata_survives_a_kill(tmp_path: Path) -> None:
    """A copy of the directory, taken while the node runs, has all that was acknowledged."""
    live, copy = str(tmp_path / "live"), str(tmp_path / "copy")
    async with NodeHarness(live) as harness:
        await harness.join()
        await harness.create("kept", 2)
        shutil.copytree(live, copy)
    log = os.path.join(copy, METADATA_LOG, "00000000000000000000.log")
    with open(log, "ab") as file:  # noqa: ASYNC230  a torn append
        file.write(bytes(37))
    async with NodeHarness(copy) as harness:
        await harness.join()
        partitions = harness.node.image.topics.by_name["kept"].partitions.values()
        assert [partition.leader for partition in partitions] == [1, 1]
        assert {partition.leader_recovery_state for partition in partitions} == {0}
        assert (await harness.create("after")).error_code == 0


async def test_nothing_is_answered_or_published_before_it_is_on_the_medium(
    tmp_path: Path,
) -> None:
    async with NodeHarness(str(tmp_path)) as harness:
        await harness.join()
        seen: list[set[str]] = []
        harness.node.add_listener(
            lambda delta, image: seen.append({topic.name for topic in delta.topics.values()})
        )
        harness.disk.gate.clear()
        fsyncs = harness.disk.fsync_count
        first = asyncio.ensure_future(harness.create("a"))
        second = asyncio.ensure_future(harness.create("b"))
        again = asyncio.ensure_future(harness.create("a"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert [task.done() for task in (first, second, again)] == [False] * 3
        assert "a" not in harness.node.image.topics.by_name
        assert seen == []
        harness.disk.gate.set()
        assert (await first).error_code == 0
        assert (await second).error_code == 0
        assert (await again).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert seen == [{"a"}, {"b"}], "in the order of the log"
        assert harness.disk.fsync_count <= fsyncs + 2, "decisions share fsyncs"


async def test_the_quorums_own_level_is_raised_and_stays(tmp_path: Path) -> None:
    """It is the quorum's record and no controller's, and answered once it is on the medium."""
    async with NodeHarness(str(tmp_path), standalone=False) as harness:
        await harness.join()
        harness.disk.gate.clear()
        updates = [
            FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=1, upgrade_type=1),
            FeatureUpdateKey(feature=GROUP_VERSION, max_version_level=0, upgrade_type=2),
        ]
        request = UpdateFeaturesRequest(feature_updates=updates)
        raising = asyncio.ensure_future(harness.node.handle(request))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not raising.done()
        harness.disk.gate.set()
        assert (await raising).error_code == 0
        assert harness.node.finalized_features[KRAFT_VERSION] == 1
        assert (await harness.create("after")).error_code == 0
        voters = harness.node.raft.voters
        assert voters.by_id[1].key.directory_id != ZERO_UUID
    async with NodeHarness(str(tmp_path), standalone=False) as harness:
        assert harness.node.finalized_features[KRAFT_VERSION] == 1
        assert GROUP_VERSION not in harness.node.finalized_features
        assert harness.node.raft.voters == voters
        assert "after" in harness.node.image.topics.by_name
        refused = await harness.node.handle(
            UpdateFeaturesRequest(
                feature_updates=[
                    FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=0, upgrade_type=2)
                ]
            )
        )
        assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION


async def test_a_refusal_waits_for_what_it_rests_on(tmp_path: Path) -> None:
    async with NodeHarness(str(tmp_path)) as harness:
        await harness.join()
        harness.disk.gate.clear()
        first = asyncio.ensure_future(harness.create("a"))
        await asyncio.sleep(0)
        refused = asyncio.ensure_future(harness.create("a"))
        await asyncio.sleep(0)
        assert not refused.done()
        harness.disk.gate.set()
        assert (await refused).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert (await first).error_code == 0


async def test_a_requester_that_will_not_wait_is_told_so(tmp_path: Path) -> None:
    async with NodeHarness(str(tmp_path)) as harness:
        await harness.join()
        harness.disk.gate.clear()
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="slow", num_partitions=1, replication_factor=1)]
        )
        response = await harness.node.handle(request, timeout_ms=1)
        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        harness.disk.gate.set()
        assert (await harness.create("slow")).error_code == ErrorCode.TOPIC_ALREADY_EXISTS


async def test_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    given: list[int] = []
    for _ in range(2):
        async with NodeHarness(str(tmp_path)) as harness:
            await harness.join()
            tasks = [harness.node.allocate_producer_id() for _ in range(1500)]
            given += await asyncio.gather(*tasks)
    assert len(set(given)) == 3000
    assert max(given) < 4000


async def test_a_failing_disk_ends_the_node(tmp_path: Path) -> None:
    async with NodeHarness(str(tmp_path)) as harness:
        await harness.join()
        harness.disk.failure = OSError(EIO, "the medium is gone")
        with pytest.raises(LogDirFailure, match="the medium is gone"):
            await harness.create("a")
        assert [type(failure) for failure in harness.failures] == [LogDirFailure]
        with pytest.raises(LogDirFailure):
            await harness.create("b")
        assert "a" not in harness.node.image.topics.by_name


async def test_a_stopped_node_is_no_controller(tmp_path: Path) -> None:
    harness = NodeHarness(str(tmp_path))
    async with harness:
        await harness.join()
    result = await harness.create("late")
    assert result.error_code == ErrorCode.NOT_CONTROLLER
    with pytest.raises(NotLeaderError):
        await harness.node.raft.wait_committed(0)


async def test_the_log_is_closed_whatever_ends_badly_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = NodeHarness(str(tmp_path))
    harness.format()
    await harness.start()
    logs: list[PartitionLog] = []
    close = PartitionLog.close

    def close_and_note(log: PartitionLog, *, clean: bool = True) -> None:
        close(log, clean=clean)
        logs.append(log)

    async def failing() -> None:
        raise RuntimeError("of our own making")

    monkeypatch.setattr(PartitionLog, "close", close_and_note)
    monkeypatch.setattr(harness.node.lifecycle, "close", failing)
    with pytest.raises(RuntimeError, match="of our own making"):
        await harness.node.stop()
    assert [(Path(log.directory).name, log.is_closed) for log in logs] == [(METADATA_LOG, True)]
    harness.disk.close()


# -- snapshots


async def wait_for_snapshots(harness: NodeHarness, directory: Path, count: int) -> None:
    """Make changes until `count` snapshots were seen; an older one may be cleaned at any time."""
    seen: set[SnapshotId] = set()
    for number in range(200):
        seen |= set(list_snapshots(harness.disk, str(directory)))
        if len(seen) >= count:
            return
        await harness.create(f"filler-{count}-{number}")
    raise AssertionError("no snapshot was written")


async def test_snapshots_are_written_loaded_and_cleaned(tmp_path: Path) -> None:
    log_directory = tmp_path / METADATA_LOG
    limits: dict[str, Any] = {
        "metadata_log_max_record_bytes_between_snapshots": "3000",
        "metadata_max_retention_bytes": "1",
    }
    async with NodeHarness(str(tmp_path), **limits) as harness:
        await harness.join()
        await harness.create("first", 3)
        await wait_for_snapshots(harness, log_directory, 1)
        await wait_for_snapshots(harness, log_directory, 2)
    async with NodeHarness(str(tmp_path), **limits) as harness:
        assert len(list_snapshots(harness.disk, str(log_directory))) <= 2
        snapshot = harness.node.raft.snapshot_id
        assert snapshot is not None
        assert snapshot.end_offset > 50
        topics = set(harness.node.image.topics.by_name)
        assert "first" in topics
        await harness.join()
    # Older snapshots and segments may be lost: the newest snapshot stands for them.
    async with NodeHarness(str(tmp_path)) as harness:
        assert set(harness.node.image.topics.by_name) == topics
        assert harness.node.image.features["metadata.version"] == 30


async def test_a_damaged_snapshot_costs_nothing_while_the_log_is_whole(tmp_path: Path) -> None:
    log_directory = tmp_path / METADATA_LOG
    async with NodeHarness(
        str(tmp_path), metadata_log_max_record_bytes_between_snapshots="2000"
    ) as harness:
        await harness.join()
        await wait_for_snapshots(harness, log_directory, 2)
        topics = set(harness.node.image.topics.by_name)
    newest = max(log_directory.glob("*.checkpoint"))
    os.chmod(newest, 0o644)
    newest.write_bytes(newest.read_bytes()[:-40])
    async with NodeHarness(str(tmp_path)) as harness:
        assert set(harness.node.image.topics.by_name) == topics


# -- what is refused at start


async def test_a_directory_that_is_not_formatted(tmp_path: Path) -> None:
    harness = NodeHarness(str(tmp_path))
    with pytest.raises(MetaPropertiesError, match="storage format"):
        await harness.start()
    harness.disk.close()


async def test_a_directory_of_another_node(tmp_path: Path) -> None:
    async with NodeHarness(str(tmp_path)):
        pass
    other_id: dict[str, Any] = {"node.id": "2"}
    other = NodeHarness(str(tmp_path), **other_id)
    with pytest.raises(MetaPropertiesError, match="Stored node id 1"):
        await other.start()
    other.disk.close()


async def test_a_directory_of_another_disk(tmp_path: Path) -> None:
    """The voter's metadata directory was replaced: it must not vote with an empty log."""
    harness = NodeHarness(str(tmp_path))
    harness.format()
    stranger = MetaProperties(CLUSTER_ID, 1, Uuid(bytes(range(16))))
    write_meta_properties(harness.disk, str(tmp_path), stranger)
    async with harness.started():
        assert not harness.node.raft.is_voter
        await no_controller_is_found(harness)


async def test_one_voter_of_two_decides_nothing(tmp_path: Path) -> None:
    voters = {"controller.quorum.voters": "1@localhost:9293,2@localhost:9294"}
    harness = NodeHarness(str(tmp_path), standalone=False, **voters)
    harness.format()
    async with harness.started():
        assert harness.node.raft.is_voter
        await no_controller_is_found(harness)


async def no_controller_is_found(harness: NodeHarness) -> None:
    topic = CreatableTopic(name="never", num_partitions=1, replication_factor=1)
    response = await harness.node.handle(CreateTopicsRequest(topics=[topic]), timeout_ms=50)
    assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT


# -- DescribeQuorum


async def test_the_quorum_describes_itself(tmp_path: Path) -> None:
    async with NodeHarness(str(tmp_path)) as harness:
        response = await harness.node.handle(
            DescribeQuorumRequest(
                topics=[
                    DescribeQuorumRequestTopicData(
                        topic_name=name,
                        partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
                    )
                    for name in ("__cluster_metadata", "other")
                ]
            )
        )
        quorum, other = (topic.partitions[0] for topic in response.topics)
        assert (quorum.error_code, quorum.leader_id, quorum.leader_epoch) == (0, 1, 1)
        assert quorum.high_watermark == harness.node.image.offset + 1
        [voter] = quorum.current_voters
        assert voter.log_end_offset == quorum.high_watermark
        assert voter.replica_directory_id == harness.node.directories.ids[str(tmp_path)]
        assert other.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        [described] = response.nodes
        assert [(end.name, end.port) for end in described.listeners] == [("CONTROLLER", 9293)]


async def test_listeners_see_each_change_once(tmp_path: Path) -> None:
    changes: list[tuple[ImageDelta, MetadataImage]] = []
    async with NodeHarness(str(tmp_path)) as harness:
        harness.node.add_listener(lambda delta, image: changes.append((delta, image)))
        await harness.join()
        await harness.create("t", 2)
        await harness.node.handle(DeleteTopicsRequest(topic_names=["t"]))
    offsets = [image.offset for _, image in changes]
    assert offsets == sorted(set(offsets))
    created = [delta for delta, _ in changes if delta.topics]
    assert [list(next(iter(delta.topics.values())).changed) for delta in created] == [[0, 1]]
    assert [
        [topic.name for topic in delta.topics_deleted.values()]
        for delta, _ in changes
        if delta.topics_deleted
    ] == [["t"]]


async def test_a_disk_that_is_full_costs_the_snapshot_not_the_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with NodeHarness(
        str(tmp_path), metadata_log_max_record_bytes_between_snapshots="1000"
    ) as harness:
        await harness.join()
        open_file = harness.disk.open

        def no_space_for_snapshots(path: str, *, create: bool = False) -> object:
            if path.endswith(".part"):
                raise OSError(ENOSPC, "no space left")
            return open_file(path, create=create)

        monkeypatch.setattr(harness.disk, "open", no_space_for_snapshots)
        for number in range(30):
            assert (await harness.create(f"t-{number}")).error_code == 0
        assert "snapshot" in caplog.text
        assert harness.failures == []


async def test_a_cluster_of_a_later_release_is_refused(tmp_path: Path) -> None:
    harness = NodeHarness(str(tmp_path))
    harness.format()
    levels = feature_records({"metadata.version": 30, "group.version": 9})
    write_bootstrap(harness.disk, str(tmp_path), levels, now_ms=1)
    with pytest.raises(BootstrapError, match=r"group\.version is 9"):
        await harness.start()
    harness.disk.close()


async def test_a_log_of_a_later_release_is_refused(tmp_path: Path) -> None:
    async with NodeHarness(str(tmp_path)) as harness:
        record = FeatureLevelRecord(name="group.version", feature_level=9)
        appended = harness.node.raft.append([encode_record(MetadataRecord(record))])
        await harness.node.raft.wait_committed(appended.last_offset)
    harness = NodeHarness(str(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match=r"group\.version is 9"):
        await harness.start()
    harness.disk.close()
