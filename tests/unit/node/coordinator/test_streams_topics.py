"""What a topology needs of the topics that exist: numbers of partitions, or why it cannot run."""

import pytest

from barnabas.node.coordinator.group.step import Refusal
from barnabas.node.coordinator.group.streams.topics import configure, summarized
from barnabas.node.coordinator.group.streams.topology import (
    ConfiguredTopology,
    Status,
    Topology,
    topology_value,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_groups import StreamsGroupHeartbeatSubtopology
from support.streams_world import subtopology, topology

Outcome = ConfiguredTopology | Refusal


def on(topics: dict[str, int], *subtopologies: StreamsGroupHeartbeatSubtopology) -> Outcome:
    """A topology on these topics."""
    return configure(Topology(topology_value(topology(*subtopologies))), topics.get, 1)


COUNTING = (
    subtopology("0", sources=["in"], sinks=["r"]),
    subtopology("1", repartition_sources={"r": 0}, changelogs=["c"]),
)
CHAIN = (
    subtopology("2", repartition_sources={"r2": 0}, changelogs=["c2"]),
    subtopology("1", repartition_sources={"r1": 0}, sinks=["r2"], changelogs=["c1"]),
    subtopology("0", sources=["a", "b"], sinks=["r1"]),
)
JOIN = (
    subtopology("0", sources=["in"], sinks=["r"]),
    subtopology("1", sources=["other"], repartition_sources={"r": 0}, copartitioned=[([0], [0])]),
)
FIXED_JOIN = (
    subtopology("0", sources=["in"], sinks=["r"]),
    subtopology("1", sources=["other"], repartition_sources={"r": 4}, copartitioned=[([0], [0])]),
)


def join_of(left: int, right: int) -> tuple[StreamsGroupHeartbeatSubtopology, ...]:
    """Two repartition topics that are joined; 0 leaves a number open."""
    return (
        subtopology("0", sources=["narrow"], sinks=["r1"]),
        subtopology("1", sources=["wide"], sinks=["r2"]),
        subtopology(
            "2", repartition_sources={"r1": left, "r2": right}, copartitioned=[([], [0, 1])]
        ),
    )


DECIDED = {
    "as its source": (COUNTING, {"in": 3}, {"r": 3, "c": 3}, {"0": 3, "1": 3}),
    "fixed": (
        (COUNTING[0], subtopology("1", repartition_sources={"r": 5}, changelogs=["c"])),
        {"in": 3},
        {"r": 5, "c": 5},
        {"0": 3, "1": 5},
    ),
    "widest of several, in rounds": (
        CHAIN,
        {"a": 2, "b": 4},
        {"r1": 4, "r2": 4, "c1": 4, "c2": 4},
        {"0": 4, "1": 4, "2": 4},
    ),
    "joined with a topic of users": (JOIN, {"in": 3, "other": 6}, {"r": 6}, {"0": 3, "1": 6}),
    "joined with each other": (
        join_of(0, 0),
        {"narrow": 2, "wide": 5},
        {"r1": 5, "r2": 5},
        {"0": 2, "1": 5, "2": 5},
    ),
    "joined, one is fixed": (
        join_of(3, 0),
        {"narrow": 2, "wide": 5},
        {"r1": 3, "r2": 3},
        {"0": 2, "1": 5, "2": 3},
    ),
}


@pytest.mark.parametrize("case", DECIDED.values(), ids=DECIDED.keys())
def test_numbers_of_partitions(
    case: tuple[
        tuple[StreamsGroupHeartbeatSubtopology, ...], dict[str, int], dict[str, int], dict[str, int]
    ],
) -> None:
    subtopologies, topics, missing, task_counts = case
    found = on(topics, *subtopologies)
    assert isinstance(found, ConfiguredTopology)
    assert {topic.name: topic.partitions for topic in found.missing_topics} == missing
    assert found.task_counts == task_counts
    assert list(found.task_counts) == sorted(found.task_counts)
    assert found.problem is not None
    assert found.problem.status is Status.MISSING_INTERNAL_TOPICS
    ready = on({**topics, **missing}, *subtopologies)
    assert isinstance(ready, ConfiguredTopology)
    assert ready.is_ready
    assert ready.task_counts == task_counts


UNFIT = {
    "no source": (
        COUNTING,
        {},
        Status.MISSING_SOURCE_TOPICS,
        "Source topics in are missing.",
    ),
    "several sources": (
        (subtopology("0", sources=["d", "b", "c", "a", "e"]),),
        {"e": 1},
        Status.MISSING_SOURCE_TOPICS,
        "Source topics a, b, c and 1 additional topics are missing.",
    ),
    "changelog of another size": (
        COUNTING,
        {"in": 3, "c": 2},
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic c has different number of partitions: expected 3, found 2",
    ),
    "repartition topic of another size": (
        COUNTING,
        {"in": 3, "r": 4},
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic r has different number of partitions: expected 3, found 4",
    ),
    "joined topics of users": (
        (subtopology("0", sources=["a", "b"], copartitioned=[([0, 1], [])]),),
        {"a": 2, "b": 3},
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{a=2, b=3}]",
    ),
    "fixed to other numbers": (
        join_of(2, 3),
        {"narrow": 2, "wide": 5},
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{r1=2, r2=3}]",
    ),
    "fixed to another number than the topic": (
        FIXED_JOIN,
        {"in": 3, "other": 6},
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        (
            "Number of partitions [4] of repartition topic [r] doesn't match number of "
            "partitions [6] of the source topic."
        ),
    ),
}


@pytest.mark.parametrize("case", UNFIT.values(), ids=UNFIT.keys())
def test_topics_that_do_not_suit(
    case: tuple[tuple[StreamsGroupHeartbeatSubtopology, ...], dict[str, int], Status, str],
) -> None:
    subtopologies, topics, status, detail = case
    found = on(topics, *subtopologies)
    assert isinstance(found, ConfiguredTopology)
    assert found.problem is not None
    assert (found.problem.status, found.problem.detail) == (status, detail)
    assert found.missing_topics == ()
    assert not found.is_ready


NEVER_WRITTEN = (
    "Failed to compute number of partitions for all repartition topics, because a repartition "
    "source topic is never used as a sink topic."
)
LOOP = (
    "Failed to compute number of partitions for all repartition topics. "
    "There may be loops in the topology that cannot be resolved."
)
INVALID = {
    "read and never written": (
        (subtopology("0", repartition_sources={"r": 0}),),
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        NEVER_WRITTEN,
    ),
    "a loop": (
        (
            subtopology("0", repartition_sources={"r2": 0}, sinks=["r1"]),
            subtopology("1", repartition_sources={"r1": 0}, sinks=["r2"]),
        ),
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        LOOP,
    ),
    "no sources": (
        (subtopology("0", changelogs=["c"]),),
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        "No source topics found for subtopology 0",
    ),
    "no such place": (
        (subtopology("0", sources=["in"], copartitioned=[([1], [])]),),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ),
    "place before the first": (
        (subtopology("0", sources=["in"], copartitioned=[([-1], [])]),),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ),
    "fewer than one partition": (
        (COUNTING[0], subtopology("1", repartition_sources={"r": -2})),
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ),
}


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
def test_topologies_that_can_never_run(
    case: tuple[tuple[StreamsGroupHeartbeatSubtopology, ...], ErrorCode, str | None],
) -> None:
    subtopologies, error, message = case
    assert on({"in": 3}, *subtopologies) == Refusal(error, message)


def test_only_a_few_topics_are_named() -> None:
    assert summarized(["a", "b", "c"]) == "a, b, c"
    assert summarized(["a", "b", "c", "d", "e"]) == "a, b, c and 2 additional topics"
