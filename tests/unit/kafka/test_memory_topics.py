"""Topics in memory: places of records, and what groups have committed."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.kafka.memory import MemoryTopics


@dataclass(frozen=True)
class Record:
    value: int
    key: bytes | None = None
    partition: int | None = None
    offset: int = -1


def test_records_have_the_offsets_of_their_partition() -> None:
    topics = MemoryTopics[Record]()
    topics.create("t", 2)
    placed = [topics.put("t", Record(n, partition=n % 2)) for n in range(5)]
    assert [(one.partition, one.offset) for one in placed] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
        (0, 2),
    ]
    assert [one.value for one in topics.read(("t", 0), 1)] == [2, 4]
    assert [one.value for one in topics.read(("t", 0), 0, 2)] == [0, 2]
    assert [topics.end(place) for place in topics.places(["t"])] == [3, 2]
    assert [one.value for one in topics.written["t"]] == list(range(5))


def test_records_of_one_key_have_one_partition() -> None:
    topics = MemoryTopics[Record](4)
    found = {topics.put("t", Record(n, b"%d" % (n % 3))).partition for n in range(30)}
    assert len(found) <= 3
    assert topics.put("t", Record(0)).partition == 0
    assert len(topics.places(["t"])) == 4
    assert topics.put("t", Record(0, partition=6)).offset == 0
    assert len(topics.places(["t"])) == 7


def test_a_topic_that_is_not_there_is_empty() -> None:
    topics = MemoryTopics[Record]()
    topics.put("t", Record(1))
    topics.delete("t")
    topics.delete("t")
    assert topics.places(["t"]) == []
    assert (topics.read(("t", 0)), topics.end(("t", 0))) == ([], 0)


def test_groups_go_on_where_they_committed() -> None:
    topics = MemoryTopics[Record]()
    topics.commit("g", {("t", 0): 3})
    topics.commit("g", {("t", 1): 1})
    assert topics.committed["g"] == {("t", 0): 3, ("t", 1): 1}
    topics.forget_group("g")
    assert "g" not in topics.committed
