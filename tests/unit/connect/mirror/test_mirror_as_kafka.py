"""Names, records, syncs and translations are those that Kafka's own classes give."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.connectors.mirror.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    is_cycle,
)
from barnabas.connect.connectors.mirror.records import Checkpoint, Heartbeat, OffsetSync
from barnabas.connect.connectors.mirror.syncs import OffsetTranslation, Runs, SyncPlan
from barnabas.schemas.data.errors import DataError

LINES = (
    (Path(__file__).parents[3] / "golden" / "connect" / "mirror" / "kafka.txt")
    .read_text()
    .splitlines()
)
PLACE = ("orders", 7)
RECORDS: dict[str, OffsetSync | Checkpoint | Heartbeat] = {
    "sync": OffsetSync(PLACE, 123456789012, 42),
    "checkpoint": Checkpoint("grüppe", ("west.orders", 3), 9, 8, "meta"),
    "heartbeat": Heartbeat("west", "east", 1700000000123),
}


def of_kind(kind: str) -> list[str]:
    return [line.removeprefix(f"{kind} ") for line in LINES if line.startswith(f"{kind} ")]


def pairs(text: str) -> list[tuple[int, int]]:
    return [(int(up), int(down)) for up, down in (one.split(":") for one in text.split())]


@pytest.mark.parametrize("kind", RECORDS)
def test_records(kind: str) -> None:
    record = RECORDS[kind]
    (line,) = of_kind(kind)
    key, value = (bytes.fromhex(part) for part in line.split())
    assert (record.key, record.value) == (key, value)
    assert type(record).read(key, value) == record
    for cut in range(len(value)):
        with pytest.raises(DataError):
            type(record).read(key, value[:cut])
    for cut in range(len(key)):
        with pytest.raises(DataError):
            type(record).read(key[:cut], value)


@pytest.mark.parametrize("line", of_kind("policy"))
def test_policies(line: str) -> None:
    kind, topic, *told = line.split(" ")
    policy = DefaultReplicationPolicy() if kind == "default" else IdentityReplicationPolicy()
    policy.configure({"source.cluster.alias": "west"})
    found = [
        policy.format_remote_topic("west", topic),
        policy.topic_source(topic),
        policy.upstream_topic(topic),
        policy.original_topic(topic),
        str(policy.is_internal_topic(topic)).lower(),
        str(policy.is_heartbeats_topic(topic)).lower(),
    ]
    assert ["null" if one is None else one for one in found] == told


@pytest.mark.parametrize("line", of_kind("store"))
def test_translation(line: str) -> None:
    head, syncs, asked = line.split("|")
    only_last, before = head.split()
    translation = OffsetTranslation(only_last=only_last == "true")
    for number, (upstream, downstream) in enumerate(pairs(syncs)):
        if number == int(before):
            translation.is_whole = True
        translation.add(OffsetSync(PLACE, upstream, downstream))
    for upstream, downstream in pairs(asked):
        assert translation.translate(PLACE, upstream) == downstream
    assert translation.translate(("others", 0), 5) is None


@pytest.mark.parametrize("batch", [1, 7, 500])
@pytest.mark.parametrize("line", of_kind("writer"))
def test_syncs_are_due(line: str, batch: int) -> None:
    lag, written, due = line.split("|")
    plan = SyncPlan(int(lag))
    records, found = pairs(written), []
    for start in range(0, len(records), batch):
        runs = Runs()
        for upstream, downstream in records[start : start + batch]:
            runs.add(PLACE, upstream, downstream)
        found += [(one.upstream, one.downstream) for one in plan.add(runs)]
    assert found == pairs(due)
    held = [(one.upstream, one.downstream) for one in plan.promote()]
    assert held == ([] if found[-1] == records[-1] else [records[-1]])
    assert plan.promote() == []


@pytest.mark.parametrize(
    ("topic", "is_one"),
    [
        ("orders", False),
        ("east.orders", True),
        ("north.orders", False),
        ("north.east.orders", True),
        ("heartbeats", False),
        ("east.heartbeats", True),
    ],
)
def test_cycles(topic: str, is_one: bool) -> None:
    assert is_cycle(DefaultReplicationPolicy(), topic, "east") is is_one
