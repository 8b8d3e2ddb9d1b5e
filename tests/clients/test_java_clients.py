"""Programs with Kafka's Java producer, consumer and admin client, version 4.3.1.

`java/ClientSteps.java` does the steps and says what it saw; what it should have seen is here, and
is what Apache Kafka shows (`--barnabas-bootstrap` runs the same tests against one).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_cluster import SECURITY
from client_matrix import KEPT

from barnabas.app.testing import Kafka
from support.java_host import JavaHost
from support.node_process import NodeProcess

Step = Callable[..., dict[str, Any]]


@pytest.fixture
def step(java: JavaHost, kafka: Kafka) -> Step:
    """Run a step against the cluster; returns what it saw."""

    def run(name: str, *names: str) -> dict[str, Any]:
        result = java.run("client-steps", kafka.bootstrap_servers, name, *names)
        seen: dict[str, Any] = json.loads(result.lines[-1])
        return seen

    return run


def test_producer(kafka: Kafka, step: Step) -> None:
    assert step("produce", kafka.topic(partitions=3, config=KEPT)) == {
        "partitions": 3,
        "first": [1, 0, 1_700_000_000_123],
        "sizes": [1, 1],
        "ordered": True,
        "null value": 1,
        "gzip": "0-499",
        "snappy": "500-999",
        "lz4": "1000-1499",
        "zstd": "1500-1999",
    }


def test_producer_refused(kafka: Kafka, step: Step) -> None:
    small = kafka.topic("small", config={"max.message.bytes": "2000"})
    compacted = kafka.topic("compacted", config={"cleanup.policy": "compact"})
    assert step("produce-refused", small, compacted) == {
        "too large": "RecordTooLargeException",
        "after it": "done",
        "no key": "InvalidRecordException",
        "key": "done",
        "no partition": "TimeoutException",
        "bad topic": "InvalidTopicException",
    }


def test_consumer(kafka: Kafka, step: Step, node_ids: list[int]) -> None:
    """Seek, look-up by time, commits with metadata, pauses, resets, small fetches."""
    seen = step("consume", kafka.topic(partitions=3, config=KEPT), kafka.name("group"))
    leaders = [info.split(":") for info in seen.pop("infos")]
    assert [partition for partition, _ in leaders] == ["0", "1", "2"]
    assert {int(leader) for _, leader in leaders} == set(node_ids)
    assert seen == {
        "from the middle": ["v37", 63, 99],
        "lag": 0,
        "paused": 0,
        "resumed": "v0",
        "end": 100,
        "beginnings": {"0": 0, "1": 0},
        "ends": {"0": 100, "1": 0},
        "times": {
            "0": [0, 1000],
            "1000": [0, 1000],
            "1001": [1, 1010],
            "1990": [99, 1990],
            "1991": "none",
        },
        "committed": {"0": [42, 0, "mine: ü"], "1": [0, -1, ""]},
        "never committed": 1,
        "topics": True,
        "goes on at": 42,
        "out of range": "OffsetOutOfRangeException",
        "no offset": "NoOffsetForPartitionException",
        "small fetches": True,
    }


def test_subscription(kafka: Kafka, step: Step) -> None:
    """A pattern that finds new topics and partitions; a member that is removed and returns."""
    assert step("subscribe", kafka.name("topics"), kafka.name("group")) == {
        "events": [
            *("assigned 2", "revoked 2", "assigned 5", "revoked 5", "assigned 7"),
            *("revoked 7", "assigned 7", "revoked 7"),
        ],
        "generation": 3,
        "member": True,
        "host": "/127.0.0.1",
        "assignor": "range",
        "state": "Stable",
        "assigned": 7,
        "commit of the removed": "CommitFailedException",
        "returns": 7,
        "group without members": "done",
    }


def test_admin_of_topics(kafka: Kafka, step: Step, node_ids: list[int]) -> None:
    seen = step("topics", kafka.name())
    leaders = seen.pop("leaders")
    assert len(leaders) == 5
    assert set(leaders) == set(node_ids)
    assert seen == {
        "validated": 5,
        "not yet": "UnknownTopicOrPartitionException",
        "created": [5, 1],
        "created config": "1000000",
        "created default": "DEFAULT_CONFIG",
        "several": {
            "defaults": "done",
            "placed": "done",
            "gap": "InvalidReplicaAssignmentException",
            "topic": "TopicExistsException",
        },
        "id": True,
        "isr": 1,
        "paged": [1, 2, 5],
        "operations": 8,
        "by id": True,
        "unknown id": "UnknownTopicIdException",
        "listed": [False],
        "internal": True,
        "grow dry": "done",
        "partitions dry": 5,
        "grow": "done",
        "partitions": 7,
        "grow again": "InvalidPartitionsException",
        "shrink": "InvalidPartitionsException",
        "grow wrongly": "InvalidReplicaAssignmentException",
        "grow nothing": "UnknownTopicOrPartitionException",
        "delete by id": "done",
        "delete again": "UnknownTopicIdException",
        "delete by name": "done",
        "delete names again": "UnknownTopicOrPartitionException",
        "left": [],
        "another id": True,
    }


def test_admin_of_configs(kafka: Kafka, step: Step) -> None:
    assert step("configs", kafka.topic()) == {
        "set": "done",
        "append": "done",
        "appended": "compact,delete",
        "subtract": "done",
        "subtracted": "delete",
        "dry": "done",
        "unchanged": "100000",
        "delete": "done",
        "default": "604800000",
        "append to a number": "InvalidConfigurationException",
        "unknown key": "InvalidConfigurationException",
        "wrong value": "InvalidConfigurationException",
        "unknown topic": "UnknownTopicOrPartitionException",
        "read-only": "InvalidRequestException",
        # The client sends to that broker, and waits for it to appear.
        "unknown broker": "TimeoutException",
        "documented": True,
        "type": "LONG",
        "flags": [True, False, False],
        "synonyms": ["DEFAULT_CONFIG:message.max.bytes"],
        "node id": ["1", True, "STATIC_BROKER_CONFIG"],
        "listener": "STATIC_BROKER_CONFIG",
        "describe absent": "UnknownTopicOrPartitionException",
        "describe other broker": "TimeoutException",
        "resources": True,
    }


def test_admin_of_offsets(kafka: Kafka, step: Step) -> None:
    none = [-1, -1]
    assert step("offsets", kafka.topic(partitions=2, config=KEPT)) == {
        "earliest": [[0, -1], [0, -1]],
        "latest": [[5, -1], [0, -1]],
        "max timestamp": [[1, 9000], none],
        "earliest local": [[0, -1], [0, -1]],
        "latest tiered": [none, none],
        "at 6000": [[1, 9000], none],
        "at 9001": [none, none],
        "absent": "TimeoutException",
        "deleted": [3, 0],
        "beyond": "OffsetOutOfRangeException",
        "earliest after": 3,
        "read from": 3,
    }


def test_admin_of_groups(kafka: Kafka, step: Step, node_ids: list[int]) -> None:
    seen = step("groups", kafka.topic(partitions=2), kafka.name("group"))
    state, members, coordinator = seen.pop("described").split()
    assert (state, members) == ("Empty", "0")
    assert int(coordinator) in node_ids
    assert seen == {
        "alter": "done",
        "offsets": {"0": [7, 3, "note"], "1": [9, -1, ""]},
        "unknown topic": "UnknownTopicOrPartitionException",
        "several": [1, 0],
        "listed": ["Classic Empty ''"],
        "describe absent": "GroupIdNotFoundException",
        "delete offsets": "done",
        "delete absent offsets": "GroupIdNotFoundException",
        # The committed offset is past the end of the empty partitions.
        "positions": [0],
        "alter live": "UnknownMemberIdException",
        "delete live offsets": "GroupSubscribedToTopicException",
        "delete live": "GroupNotEmptyException",
        "instances": ["one"],
        "remove": "done",
        "remove absent": "UnknownMemberIdException",
        "delete": "done",
        "delete again": "GroupIdNotFoundException",
    }


def test_admin_of_the_cluster(kafka: Kafka, step: Step, node_ids: list[int]) -> None:
    seen = step("cluster", kafka.topic())
    assert re.fullmatch(r"[\w-]{22}", seen.pop("cluster id"))
    assert seen.pop("controller") in node_ids
    leader_id, *sizes = seen.pop("quorum")
    assert leader_id in node_ids
    assert sizes == [len(node_ids), 0, len(node_ids)]
    servers = kafka.bootstrap_servers.split(",")
    assert sorted(seen.pop("nodes")) == [
        f"{node_id} {server}" for node_id, server in zip(node_ids, servers, strict=True)
    ]
    assert seen == {
        "operations": 7,
        "finalized": True,
        "supported": 30,
        "directory": [True, True, True, True],
        "replica lag": 0,
    }


@pytest.mark.skipif(SECURITY != "", reason="with a login there is an authorizer")
def test_without_an_authorizer_there_are_no_acls(kafka: Kafka, step: Step) -> None:
    assert step("acls", kafka.topic()) == {"acls": "SecurityDisabledException"}


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.slow), "kill"])
def test_restart_under_load(java: JavaHost, tmp_path: Path, end: str) -> None:
    """An idempotent producer and a group live through a restart: each record once, in order."""
    node = NodeProcess(tmp_path, {"flush.messages": "1"} if end == "kill" else {})
    node.start()
    server = ("--bootstrap-server", node.bootstrap_servers)
    try:
        java.run("kafka-topics", *server, "--create", "--topic", "t")
        consumer = java.start(
            *("kafka-verifiable-consumer", *server, "--topic", "t", "--group-id", "g"),
            *("--verbose", "--reset-policy", "earliest"),
        )
        producer = java.start("client-steps", node.bootstrap_servers, "steady", "t", "2000")
        producer.wait_until(lambda: producer.out.count(".") > 500)
        getattr(node, end)()
        node.start()
        produced = producer.wait()
        assert json.loads(produced.lines[-1]) == {"ordered": True}
        consumer.wait_until(lambda: _values(consumer.json_lines())[-1:] == ["1999"])
        consumer.stop()
        values = _values(consumer.json_lines())
        described = java.run("kafka-consumer-groups", *server, "--describe", "--group", "g")
        assert described.table[1][3:6] == ["2000", "2000", "0"]
    finally:
        node.stop()
    assert list(dict.fromkeys(values)) == [str(value) for value in range(2000)]
    # Records read but not yet committed when the node stopped may be read again.
    assert len(values) < 4000


def _values(events: list[dict[str, Any]]) -> list[str]:
    return [event["value"] for event in events if event["name"] == "record_data"]
