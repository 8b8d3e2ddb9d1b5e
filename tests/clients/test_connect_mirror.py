"""Mirroring between two clusters: records, topics, settings, rights and group offsets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, NewPartitions

from barnabas.app.cluster import Cluster
from barnabas.connect.connectors.mirror.dedicated import DedicatedMirror
from barnabas.connect.connectors.mirror.records import Checkpoint, Heartbeat, OffsetSync
from barnabas.connect.tasks.local import LocalEngine
from barnabas.schemas.data.errors import ConnectError
from support.connect.mirror import OFFSETS, QUICK, MirrorRun
from support.connect.mirror_side import Side
from support.connect.tasks import WAIT_SECONDS, read_messages
from support.node_process import wait_until

ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Side, Side]]:
    with (
        Cluster(config=ACLS) as west,
        Cluster(config=ACLS) as east,
        closing(Side(west.bootstrap_servers)) as west_side,
        closing(Side(east.bootstrap_servers)) as east_side,
    ):
        for side in (west_side, east_side):
            side.create(OFFSETS, cleanup_policy="compact")
        yield west_side, east_side


@pytest.fixture
def west(clusters: tuple[Side, Side]) -> Side:
    return clusters[0]


@pytest.fixture
def east(clusters: tuple[Side, Side]) -> Side:
    return clusters[1]


def test_topics_settings_rights_and_groups(west: Side, east: Side, engine: LocalEngine) -> None:
    west.create("orders", 2, retention_ms="1234567890123", unclean_leader_election_enable="true")
    west.create("hidden.internal")
    west.produce("orders", range(600), 2)
    west.commit("shop", ("orders", 0, 300, "half"), ("orders", 1, 150, ""))
    west.give_right("orders", AclOperation.ALL)
    west.give_right("orders", AclOperation.WRITE, "User:w")
    west.give_right("orders", AclOperation.DESCRIBE, "User:d")
    run = MirrorRun(engine, west.servers, east.servers, {"topics.exclude": "hidden.*, mm2.*"})
    try:
        run.wait_until(lambda: len(east.records("west.orders")) == 600)
        assert sorted(east.records("west.orders"), key=repr) == sorted(
            west.records("orders"), key=repr
        )
        assert east.topics()["west.orders"] == 2
        assert "west.hidden.internal" not in east.topics()
        assert east.config("west.orders", "retention.ms").value == "1234567890123"
        assert east.config("west.orders", "unclean.leader.election.enable").value == "false"

        # Group offsets are translated exactly at the end of a partition, else never too far.
        run.wait_until(lambda: east.committed("shop", "west.orders", 0) == (300, "half"))
        run.wait_until(lambda: 0 < east.committed("shop", "west.orders", 1)[0] <= 150)

        def notes() -> list[Checkpoint]:
            found = read_messages(east.servers, "west.checkpoints.internal")
            return [Checkpoint.read(m.key(), m.value()) for m in found]

        run.wait_until(lambda: Checkpoint("shop", ("west.orders", 0), 300, 300, "half") in notes())
        syncs = [
            OffsetSync.read(m.key(), m.value())
            for m in read_messages(west.servers, "mm2-offset-syncs.east.internal")
        ]
        assert all(sync.upstream == sync.downstream for sync in syncs)
        assert {sync.upstream for sync in syncs if sync.place == ("orders", 0)} >= {0, 101, 202}
        run.wait_until(lambda: "heartbeats" in east.topics() and east.records("heartbeats"))
        beat = read_messages(east.servers, "heartbeats")[0]
        assert Heartbeat.read(beat.key(), beat.value()).source == "west"

        def counts() -> dict[str, float]:
            return {
                dict(labels)["partition"]: value
                for name, labels, value in run.runs[0].tasks[0].task.own_metrics()
                if name == "mirror_mirrorsourceconnector_record-count"
                and dict(labels)["topic"] == "west.orders"
            }

        run.wait_until(lambda: counts() == {"0": 300, "1": 300})
        latencies = [
            value
            for name, labels, value in run.runs[1].tasks[0].task.own_metrics()
            if name == "mirror_mirrorcheckpointconnector_checkpoint-latency-ms"
            and dict(labels)["group"] == "shop"
        ]
        assert len(latencies) == 2
        assert min(latencies) >= 0

        # Settings and partitions that change are followed.
        west.set_config("orders", "retention.ms", "76543210987")
        west.admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(WAIT_SECONDS)
        run.wait_until(lambda: east.topics()["west.orders"] == 3)
        west.produce("orders", range(600, 900), 3)
        run.wait_until(lambda: len(east.records("west.orders")) == 900)
        assert len({record[1] for record in east.records("west.orders")}) == 900
        run.wait_until(lambda: east.config("west.orders", "retention.ms").value == "76543210987")
        run.wait_until(lambda: len(east.rights("west.orders")) == 2)
        assert east.rights("west.orders") == {
            ("User:r", AclOperation.READ),
            ("User:d", AclOperation.DESCRIBE),
        }
    finally:
        run.stop()


@pytest.mark.parametrize("is_exactly_once", [pytest.param(False, marks=pytest.mark.slow), True])
def test_goes_on_after_a_stop(
    west: Side, east: Side, engine: LocalEngine, is_exactly_once: bool
) -> None:
    topic = f"steps{is_exactly_once}"
    west.create(topic)
    more = {"topics": topic, "source.consumer.isolation.level": "read_committed"}
    producer = Producer({"bootstrap.servers": west.servers, "transactional.id": topic})
    producer.init_transactions(WAIT_SECONDS)
    expected: list[bytes] = []
    for step in range(3):
        for is_kept in (False, True):
            producer.begin_transaction()
            for number in range(50):
                value = f"{step} {number}".encode()
                producer.produce(topic, value, partition=0)
                if is_kept:
                    expected.append(value)
            assert producer.flush(WAIT_SECONDS) == 0  # what is not sent yet would not be aborted
            (producer.commit_transaction if is_kept else producer.abort_transaction)(WAIT_SECONDS)
        run = MirrorRun(
            engine,
            west.servers,
            east.servers,
            more,
            connectors=("Source",),
            is_exactly_once=is_exactly_once,
        )
        try:
            run.wait_until(lambda: len(east.records(f"west.{topic}")) >= len(expected))
        finally:
            run.stop()
        assert [record[2] for record in east.records(f"west.{topic}")] == expected
    syncs = [
        OffsetSync.read(m.key(), m.value())
        for m in read_messages(west.servers, "mm2-offset-syncs.east.internal")
    ]
    last = [sync for sync in syncs if sync.place == (topic, 0)][-1]
    # Each transaction has a marker, of an aborted one the records are not mirrored.
    assert last.upstream == 3 * 102 - 2
    there = read_messages(east.servers, f"west.{topic}")[-1].offset()
    assert last.downstream == there


@pytest.mark.slow
def test_both_ways_ends(west: Side, east: Side, engine: LocalEngine) -> None:
    west.create("twoway")
    east.create("twoway")
    west.produce("twoway", range(3))
    east.produce("twoway", range(3, 8))
    only = {"topics": ".*twoway"}
    there = MirrorRun(engine, west.servers, east.servers, only, connectors=("Source",))
    back = MirrorRun(
        engine,
        east.servers,
        west.servers,
        only,
        aliases=("east", "west"),
        connectors=("Source",),
    )
    try:
        there.wait_until(lambda: len(east.records("west.twoway")) == 3)
        back.wait_until(lambda: len(west.records("east.twoway")) == 5)
        assert {name for name in west.topics() if name.endswith("twoway")} == {
            "twoway",
            "east.twoway",
        }
    finally:
        there.stop()
        back.stop()


@pytest.mark.slow
def test_names_kept_and_records_transformed(west: Side, east: Side, engine: LocalEngine) -> None:
    west.create("plain")
    west.produce("plain", range(20))
    run = MirrorRun(
        engine,
        west.servers,
        east.servers,
        {
            "topics": "plain",
            "replication.policy.class": "IdentityReplicationPolicy",
            "offset-syncs.topic.location": "target",
            "transforms": "route",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": "(.*)",
            "transforms.route.replacement": "$1",
        },
        connectors=("Source",),
    )
    try:
        run.wait_until(lambda: len(east.records("plain")) == 20)
        assert east.records("plain") == west.records("plain")
        run.wait_until(lambda: "mm2-offset-syncs.west.internal" in east.topics())
        run.wait_until(
            lambda: (
                OffsetSync(("plain", 0), 19, 19)
                in [
                    OffsetSync.read(m.key(), m.value())
                    for m in read_messages(east.servers, "mm2-offset-syncs.west.internal")
                ]
            )
        )
    finally:
        run.stop()


def test_a_lost_source_is_told(east: Side, engine: LocalEngine) -> None:
    more = {"admin.timeout.ms": "500", "source.admin.request.timeout.ms": "500"}
    with pytest.raises(ConnectError, match="bootstrap"):
        MirrorRun(engine, "", east.servers, more, connectors=("Source",))
    run = MirrorRun(engine, "127.0.0.1:1", east.servers, more, connectors=("Source",))
    assert run.runs[0].tasks == []
    run.stop()


@pytest.mark.slow
def test_a_mirror_makers_file(west: Side, east: Side) -> None:
    west.create("filed", 2)
    west.produce("filed", range(100), 2)
    given = {
        "clusters": "west, east",
        "west.bootstrap.servers": west.servers,
        "east.bootstrap.servers": east.servers,
        "west->east.enabled": "true",
        "west->east.topics": "filed",
        "east->west.emit.heartbeats.enabled": "false",
        "tasks.max": "2",
        **QUICK,
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
    }
    mirror = DedicatedMirror(given)
    try:
        mirror.start()
        wait_until(
            lambda: len(east.records("west.filed")) >= 100,
            "100 records in the mirror",
            WAIT_SECONDS,
            mirror.states,
        )
        assert sorted(east.records("west.filed"), key=repr) == sorted(
            west.records("filed"), key=repr
        )
        assert set(mirror.states()["west->east"]) == {
            "MirrorSourceConnector",
            "MirrorCheckpointConnector",
            "MirrorHeartbeatConnector",
        }
    finally:
        mirror.close()
    assert "mm2-configs.west.internal" in east.topics()
