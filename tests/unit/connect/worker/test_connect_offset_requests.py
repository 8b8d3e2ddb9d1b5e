"""Offsets that users give for connectors, with the texts of Kafka's worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.errors.requests import BadRequestError
from barnabas.connect.worker import offset_requests
from barnabas.schemas.data.errors import ConnectError
from support.connect.herder_world import SINK, HerderWorld

CONFIG = {"connector.class": SINK, "topics": "t"}
HELD = {("t", 0): 5}


class Group:
    """A sink's consumer group, as far as it is asked to change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Any] = []
        monkeypatch.setattr(offset_requests, "_admin", lambda *_: None)
        monkeypatch.setattr(offset_requests, "_committed", lambda *_: HELD)
        monkeypatch.setattr(offset_requests, "_delete", lambda *_: self.calls.append("delete"))
        monkeypatch.setattr(offset_requests, "_alter", lambda *given: self.calls.append(given[3]))
        monkeypatch.setattr(offset_requests, "_forget", lambda *given: self.calls.append(given[3]))
        monkeypatch.setattr(offset_requests, "admin_settings", lambda *_: {})


def given(topic: Any, partition: Any, offset: Any) -> Any:
    there = None if offset is None else {"kafka_offset": offset}
    return {"kafka_topic": topic, "kafka_partition": partition}, there


def modify(*offsets: Any) -> str:
    nowhere: Any = None
    return offset_requests.modify(nowhere, {}, "c", CONFIG, offsets)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (("t", 1, -1), "Failed to modify offsets for sink connector c"),
        (("t", -1, 1), "Failed to alter consumer group offsets for connector c"),
        (("", 1, 1), "Failed to alter consumer group offsets for connector c"),
    ],
)
def test_what_no_group_can_hold_does_not_cost_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, int, int], text: str
) -> None:
    group = Group(monkeypatch)
    with pytest.raises(ConnectError, match=f"^{text}$"):
        modify(given("t", 0, None), given(*wrong))
    assert group.calls == []
    modify(given("t", 0, None), given("t", 1, 7), given("t", 2, None))
    assert group.calls == [{("t", 1): 7}, [("t", 0)]]


@pytest.mark.parametrize("number", ["1 ", "1_0", 1.0, True, 2**63, "x", [1]])
def test_offsets_of_sinks_are_numbers_as_java_reads_them(
    monkeypatch: pytest.MonkeyPatch, number: Any
) -> None:
    group = Group(monkeypatch)
    with pytest.raises(BadRequestError, match="Offset values for sink connectors need to be int"):
        modify(given("t", 0, number))
    assert group.calls == []


def test_partitions_have_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(monkeypatch)
    with pytest.raises(BadRequestError, match=r"'2147483648'\. Partition values for sink"):
        modify(given("t", 2**31, 1))
    modify(given("t", "7", "1"))
    assert group.calls == [{("t", 7): 1}]


def test_offsets_of_sources_have_64_bits(tmp_path: Path) -> None:
    world = HerderWorld(tmp_path)
    try:
        world.create("c", path="elsewhere")
        world.herder.stop("c")
        for fields in ({"position": 2**63}, {"position": -(2**63) - 1}):
            with pytest.raises(ConnectError, match="field position contains class java"):
                world.herder.modify_offsets("c", [({"file": "x"}, fields)])
        world.herder.modify_offsets("c", [({"file": "x"}, {"position": 2**63 - 1})])
    finally:
        world.herder.close()
