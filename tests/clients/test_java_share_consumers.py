"""Share groups (KIP-932) with Kafka's own share consumer.

The steps get the same results from Apache Kafka (`--barnabas-bootstrap`).
"""

from __future__ import annotations

import json
from typing import Any

from barnabas.app.testing import Kafka
from support.java_host import JavaHost

TIMEOUT_S = 120


def step(java: JavaHost, kafka: Kafka, *arguments: str) -> dict[str, Any]:
    """Run a step against the cluster; returns what it saw."""
    run = java.start("share-steps", kafka.bootstrap_servers, *arguments)
    result = run.wait(TIMEOUT_S)
    assert result.exit_code == 0, result.err
    seen: dict[str, Any] = json.loads(result.lines[-1])
    return seen


def test_members_share_records_without_partitions_of_their_own(
    java: JavaHost, kafka: Kafka
) -> None:
    assert step(java, kafka, "share", kafka.topic(partitions=2), kafka.name("share")) == {
        "all": 900,
        "twice": 0,
        "more": 990,
        "new only": 10,
    }


def test_records_are_acknowledged_one_by_one(java: JavaHost, kafka: Kafka) -> None:
    assert step(java, kafka, "explicit", kafka.topic(), kafka.name("share")) == {
        "limit": ["v0/1", "v1/1", "v2/1", "v3/1"],
        "committed": 0,
        "again": ["v3/1"],
        "and again": 0,
        "deliveries": {"v1": 2, "v4": 1, "v5": 1, "v6": 1, "v7": 1, "v8": 1, "v9": 1},
        "ends with": True,
    }


def test_aborted_records_are_not_delivered(java: JavaHost, kafka: Kafka) -> None:
    assert step(java, kafka, "transactions", kafka.topic(), kafka.name("share")) == {
        "exactly the committed": True
    }
