"""Mirroring between Barnabas and Apache Kafka, beside Kafka's own MirrorMaker."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.app.cluster import Cluster
from barnabas.connect.connectors.mirror.records import Checkpoint, OffsetSync
from barnabas.connect.tasks.local import LocalEngine
from support.apache_kafka import JAVA, LIBS, QUICK_JVM, TELEMETRY, ApacheKafka, needs_kafka_with
from support.cluster_processes import ClusterProcesses
from support.connect.mirror import OFFSETS, MirrorRun
from support.connect.mirror_side import Side
from support.connect.tasks import read_messages

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
START_SECONDS = 180.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    needs_kafka_with("connect-mirror"),
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    directory = tmp_path_factory.mktemp("kafka")
    program = ApacheKafka()
    with (
        Cluster() as barnabas,
        ClusterProcesses(directory, 1, SETTINGS, program=program) as kafka,
        closing(Side(barnabas.bootstrap_servers)) as ours,
        closing(Side(kafka.bootstrap_servers)) as theirs,
    ):
        for side in (ours, theirs):
            side.create(OFFSETS, cleanup_policy="compact")
        yield ours, theirs


@pytest.mark.parametrize("is_from_kafka", [False, True])
def test_either_way(sides: tuple[Side, Side], engine: LocalEngine, is_from_kafka: bool) -> None:
    source, target = reversed(sides) if is_from_kafka else sides
    topic = f"either{is_from_kafka}"
    source.create(topic, 2, retention_ms="1234567890123")
    source.produce(topic, range(1000), 2)
    source.commit(topic, (topic, 0, 500, "all"), (topic, 1, 250, ""))
    more = {"topics": topic, "groups": topic, "source.consumer.isolation.level": "read_committed"}
    run = MirrorRun(engine, source.servers, target.servers, more, is_exactly_once=True)
    copy = f"west.{topic}"
    try:
        run.wait_until(lambda: len(target.records(copy)) == 1000)
        assert sorted(target.records(copy), key=repr) == sorted(source.records(topic), key=repr)
        assert target.config(copy, "retention.ms").value == "1234567890123"
        run.wait_until(lambda: target.committed(topic, copy, 0) == (500, "all"))
        run.wait_until(lambda: 0 < target.committed(topic, copy, 1)[0] <= 250)
        run.wait_until(lambda: target.records("heartbeats"))
    finally:
        run.stop()


def syncs(side: Side, topic: str) -> dict[tuple[str, int], OffsetSync]:
    """Return the last sync of each partition."""
    if topic not in side.topics():
        return {}
    found = [OffsetSync.read(m.key(), m.value()) for m in read_messages(side.servers, topic)]
    return {one.place: one for one in found}


def checkpoints(side: Side, alias: str) -> dict[tuple[str, str, int], tuple[int, int, str]]:
    """Return the last checkpoint of each group and partition, under the source's names."""
    topic = f"{alias}.checkpoints.internal"
    if topic not in side.topics():
        return {}
    found = [Checkpoint.read(m.key(), m.value()) for m in read_messages(side.servers, topic)]
    return {
        (one.group, one.place[0].removeprefix(f"{alias}."), one.place[1]): (
            one.upstream,
            one.downstream,
            one.metadata.rstrip("\0"),  # librdkafka ends texts that it commits with a zero byte
        )
        for one in found
    }


@pytest.mark.parametrize("is_from_kafka", [False, True])
def test_the_same_as_mirror_maker(
    sides: tuple[Side, Side], engine: LocalEngine, tmp_path: Path, is_from_kafka: bool
) -> None:
    source, target = reversed(sides) if is_from_kafka else sides
    topic, alias = f"same{is_from_kafka}", f"mm{int(is_from_kafka)}"
    ours = f"our{int(is_from_kafka)}"
    source.create(topic, 2, retention_ms="1234567890123")
    source.produce(topic, range(1000), 2)
    source.commit(topic, (topic, 0, 500, "all"), (topic, 1, 250, ""))
    properties = tmp_path / "mm2.properties"
    properties.write_text(
        f"""
clusters={alias},there
{alias}.bootstrap.servers={source.servers}
there.bootstrap.servers={target.servers}
{alias}->there.enabled=true
there->{alias}.emit.heartbeats.enabled=false
{alias}->there.topics={topic}
{alias}->there.groups={topic}
{alias}->there.sync.group.offsets.enabled=true
{alias}->there.sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
emit.heartbeats.interval.seconds=1
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.replication.factor=1
status.storage.partitions=1
config.storage.replication.factor=1
there.offset.flush.interval.ms=1000
"""
    )
    assert JAVA is not None
    with (tmp_path / "mm2.log").open("wb") as log:
        maker = subprocess.Popen(
            [
                *(JAVA, "-Xmx256m", *QUICK_JVM),
                f"-Dlog4j2.configurationFile={TELEMETRY}",
                *("-cp", f"{LIBS[0]}/*", "org.apache.kafka.connect.mirror.MirrorMaker"),
                str(properties),
            ],
            stdout=log,
            stderr=log,
        )
    more = {"topics": topic, "groups": topic}
    run = MirrorRun(engine, source.servers, target.servers, more, aliases=(ours, f"{ours}x"))
    try:

        def is_same() -> bool:
            assert maker.poll() is None, (tmp_path / "mm2.log").read_text()[-3000:]
            mine, theirs = (target.records(f"{one}.{topic}") for one in (ours, alias))
            return len(mine) == len(theirs) == 1000 and sorted(mine, key=repr) == sorted(
                theirs, key=repr
            )

        def is_translated_the_same() -> bool:
            mine, theirs = checkpoints(target, ours), checkpoints(target, alias)
            return len(mine) == len(theirs) == 2 and mine == theirs

        run.wait_until(is_same, START_SECONDS)
        names = [f"mm2-offset-syncs.{one}.internal" for one in (f"{ours}x", "there")]
        run.wait_until(
            lambda: syncs(source, names[0]) == syncs(source, names[1]) != {}, START_SECONDS
        )
        run.wait_until(is_translated_the_same, START_SECONDS)
        for name in ("retention.ms", "cleanup.policy"):
            both = [target.config(f"{one}.{topic}", name).value for one in (ours, alias)]
            assert both[0] == both[1]
        run.wait_until(
            lambda: (
                target.committed(topic, f"{ours}.{topic}", 0)
                == target.committed(topic, f"{alias}.{topic}", 0)
                == (500, "all")
            )
        )
    finally:
        maker.terminate()
        run.stop()
        try:
            maker.wait(30)
        except subprocess.TimeoutExpired:
            maker.kill()
            maker.wait()
