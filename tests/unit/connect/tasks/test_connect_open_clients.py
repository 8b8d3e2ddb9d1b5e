"""What stays open between micro-batches: it is bounded, and threads do not disturb each other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.tasks import kafka_ranges, kafka_transport
from barnabas.connect.tasks.kafka_ranges import close_readers, read_range, trim_readers
from barnabas.connect.tasks.kafka_transport import OUTPUTS_MAX, KafkaTransport, trim_outputs


class Closing:
    """An output or a reader."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_outputs_of_tasks_that_have_ended_are_closed_on_executors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_transport, "KafkaOutput", Closing)
    outputs: OrderedDict[Any, Any] = OrderedDict()
    monkeypatch.setattr(kafka_transport, "_OUTPUTS", outputs)
    worker = {"bootstrap.servers": "127.0.0.1:1"}
    made = []
    first = KafkaTransport("c", 0, {}, worker, None, "run 0")
    for number in range(OUTPUTS_MAX + 2):
        transport = KafkaTransport("c", 0, {}, worker, None, f"run {number}")
        made.append(transport.output())
        first.output()  # is used all the time
        trim_outputs()
    assert len(outputs) == OUTPUTS_MAX
    assert [number for number, one in enumerate(made) if one.is_closed] == [1, 2]  # type: ignore[attr-defined]


def test_readers_are_closed_while_another_task_opens_one(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: OrderedDict[Any, Any] = OrderedDict()
    monkeypatch.setattr(kafka_ranges, "_READERS", readers)

    class Opens(str):
        """The name of a task that opens a reader just when it is looked at."""

        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            readers[0, "third", "t", len(readers)] = Closing()
            return False

        def __hash__(self) -> int:
            return 0

    mine = Closing()
    readers[0, Opens(), "t", 0] = Closing()
    readers[0, "mine", "t", 0] = mine
    close_readers("mine")
    assert mine.is_closed


class Reader(Closing):
    """Has nothing to read."""

    made: ClassVar[list[tuple[str, int]]] = []

    def __init__(self, _: object, topic: str, partition: int) -> None:
        super().__init__()
        self.made.append((topic, partition))
        self.used_s = 0.0

    def pieces(self, start: int, end: int) -> Iterator[Any]:
        return iter(())


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> OrderedDict[Any, Any]:
    found: OrderedDict[Any, Any] = OrderedDict()
    monkeypatch.setattr(kafka_ranges, "_READERS", found)
    monkeypatch.setattr(kafka_ranges, "RangeReader", Reader)
    monkeypatch.setattr(Reader, "made", [])
    return found


def read_in_turn(partitions: int) -> None:
    for number in range(partitions):
        assert not list(read_range("task", {}, SinkRange("t", number, 0, 1)))


def test_partitions_that_are_read_in_turn_stay_open(readers: OrderedDict[Any, Any]) -> None:
    limit = kafka_ranges.CONSUMERS_MAX
    for _ in range(3):
        read_in_turn(limit)
    assert len(Reader.made) == limit
    # Of more than stay open, only those are opened again.
    for _ in range(3):
        read_in_turn(limit + 2)
    assert Reader.made[limit:] == [("t", limit), ("t", limit + 1)] * 3
    assert len(readers) == limit


def test_readers_are_few_on_executors(readers: OrderedDict[Any, Any]) -> None:
    read_in_turn(20)
    opened = list(readers.values())
    trim_readers()
    assert list(readers.values()) == opened[-kafka_ranges.EXECUTOR_CONSUMERS_MAX :]
    assert all(one.is_closed for one in opened[: -kafka_ranges.EXECUTOR_CONSUMERS_MAX])


def test_readers_of_partitions_that_others_have_now_are_closed(
    readers: OrderedDict[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_turn(2)
    first, _ = readers.values()
    monkeypatch.setattr(first, "used_s", first.used_s - kafka_ranges.IDLE_SECONDS_MAX - 1)
    assert not list(read_range("task", {}, SinkRange("t", 1, 1, 2)))
    assert first.is_closed
    assert [key[3] for key in readers] == [1]
