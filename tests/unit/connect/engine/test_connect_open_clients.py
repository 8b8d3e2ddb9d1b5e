"""What stays open between micro-batches: it is bounded, and threads do not disturb each other."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from barnabas.connect.engine import kafka_ranges, kafka_transport
from barnabas.connect.engine.kafka_ranges import close_readers
from barnabas.connect.engine.kafka_transport import OUTPUTS_MAX, KafkaTransport, trim_outputs


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
