"""`barnabas topic elect-leaders` where the node that is asked hears late who was elected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.cli.admin import POLL_S
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import metadata
from barnabas.protocol.messages import partitions as partitions_messages
from support.cli import run_cli

ELECTED, REFUSED = 0, 1
LATE_LOOKS = 3


class LateNode:
    """Partitions 0 and 1 of topic t, led by node 2; node 1 is preferred and may lead 0 only."""

    timeout_s = 15.0

    def __init__(self, *_: object) -> None:
        self.is_elected = False
        self.pauses = 0

    def __enter__(self) -> LateNode:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def pause(self, seconds: float) -> None:
        assert seconds > 0
        self.pauses += 1
        assert self.pauses <= LATE_LOOKS, "what it waits for is known"

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        assert timeout_s == self.timeout_s
        while not condition():
            self.pause(POLL_S)
        return True

    def run(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(self, *given)

    def ask(self, request: Any) -> Any:
        assert isinstance(request, metadata.MetadataRequest)
        knows = self.is_elected and self.pauses == LATE_LOOKS
        partitions = [
            metadata.MetadataResponsePartition(
                partition_index=number,
                leader_id=1 if knows and number == ELECTED else 2,
                replica_nodes=[1, 2],
                isr_nodes=[1, 2],
            )
            for number in (ELECTED, REFUSED)
        ]
        topic = metadata.MetadataResponseTopic(name="t", partitions=partitions)
        return metadata.MetadataResponse(topics=[topic])

    def decide(self, request: Any, what: str) -> Any:
        assert what == "electing leaders"
        self.is_elected = True
        codes = {ELECTED: ErrorCode.NONE, REFUSED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
        results = [
            partitions_messages.PartitionResult(partition_id=number, error_code=code)
            for number, code in codes.items()
        ]
        result = partitions_messages.ReplicaElectionResult(topic="t", partition_result=results)
        return partitions_messages.ElectLeadersResponse(replica_election_results=[result])


def test_it_ends_once_the_new_leader_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.admin.Admin", LateNode)
    found = run_cli("topic", "elect-leaders", "t", "--json")
    rows = {row["partition"]: row for row in found.json}
    assert (rows["t-0"]["leader"], rows["t-0"]["was"], rows["t-0"]["error"]) == (1, 2, None)
    assert rows["t-1"]["error"] is not None
    assert found.code == 5
