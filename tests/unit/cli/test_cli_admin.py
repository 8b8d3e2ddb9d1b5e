"""Whom requests go to, where some of those that could be asked do not answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.cli.admin import Admin, reassignments
from barnabas.cli.cluster.quorum_state import read_quorum
from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode
from barnabas.kafka import wire_admin
from barnabas.kafka.wire import WireError
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.partitions import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
)

NO_TIME_S = 1e-9


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Hosts that answer; returns the list of those that were asked."""

    def answering(*names: str) -> list[str]:
        asked: list[str] = []

        class Host:
            is_over = False

            def __init__(self, _access: object, host: str, _port: int) -> None:
                self.host = host

            def call(self, _api: object, _: object) -> DescribeClusterResponse:
                asked.append(self.host)
                if self.host not in names:
                    raise WireError("no answer")
                return DescribeClusterResponse(cluster_id=self.host)

            def close(self) -> None:
                """Nothing is open."""

        monkeypatch.setattr(wire_admin, "Connection", Host)
        return asked

    return answering


def test_one_that_hangs_keeps_nobody_from_being_asked(hosts: Callable[..., list[str]]) -> None:
    """It takes all the time there is, and is asked last from then on."""
    asked = hosts("b")
    with Admin(Connection("a:1,b:1", {}, NO_TIME_S)) as admin:
        for _ in range(3):
            assert admin.ask(DescribeClusterRequest()).cluster_id == "b"
    assert asked == ["a", "b", "b", "b"]


def test_many_that_hang_do_not_each_take_their_time(hosts: Callable[..., list[str]]) -> None:
    asked = hosts("d")
    with (
        Admin(Connection("a:1,b:1,c:1,d:1", {}, NO_TIME_S)) as admin,
        pytest.raises(CliError) as caught,
    ):
        admin.ask(DescribeClusterRequest())
    assert caught.value.code is ExitCode.UNREACHABLE
    assert asked == ["a", "b"]


@pytest.fixture
def controllers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Admin]:
    """Controllers 1 at a and 2 at b, of whom b is down; the leaders that a names, in turn."""

    def named(*leaders: int, error: ErrorCode = ErrorCode.NONE) -> Admin:
        turns = iter(leaders)

        class Controller:
            is_over = False

            def __init__(self, _access: object, host: str, _port: int) -> None:
                if host == "b":
                    raise WireError("connection refused")

            def serves(self, api: int) -> bool:
                return api == ApiKey.FETCH

            def call(self, _api: object, request: object) -> Any:
                if isinstance(request, DescribeQuorumRequest):
                    return QUORUM
                if isinstance(request, ListPartitionReassignmentsRequest):
                    return ListPartitionReassignmentsResponse(
                        error_code=ErrorCode.REQUEST_TIMED_OUT
                    )
                return DescribeClusterResponse(
                    error_code=error,
                    controller_id=next(turns, leaders[-1]),
                    brokers=[
                        DescribeClusterBroker(broker_id=number, host=host, port=1)
                        for number, host in ((1, "a"), (2, "b"))
                    ],
                )

            def close(self) -> None:
                """Nothing is open."""

        monkeypatch.setattr(wire_admin, "Connection", Controller)
        monkeypatch.setattr(wire_admin, "RETRY_S", 0.001)
        return Admin(Connection("a:1", {}, 0.1), controllers=True)

    return named


QUORUM = DescribeQuorumResponse(
    error_message=None,
    topics=[
        DescribeQuorumResponseTopicData(
            topic_name="__cluster_metadata",
            partitions=[
                DescribeQuorumResponsePartitionData(
                    partition_index=0, leader_id=1, error_message=None
                )
            ],
        )
    ],
)


def test_an_election_is_waited_for(controllers: Callable[..., Admin]) -> None:
    with controllers(-1, -1, 1) as admin:
        assert read_quorum(admin).leader_id == 1


def test_without_a_majority_who_is_missing_is_told(controllers: Callable[..., Admin]) -> None:
    with controllers(-1) as admin, pytest.raises(CliError) as caught:
        read_quorum(admin)
    assert caught.value.code is ExitCode.UNREACHABLE
    assert "the metadata quorum has no leader" in caught.value.message
    assert caught.value.hint == "start controllers 2 at b:1"


def test_a_broker_where_a_controller_is_asked_for(controllers: Callable[..., Admin]) -> None:
    mismatch = ErrorCode.MISMATCHED_ENDPOINT_TYPE
    with controllers(1, error=mismatch) as admin, pytest.raises(CliError) as caught:
        read_quorum(admin)
    assert "a broker's listener where a controller's is needed" in caught.value.message


def test_what_no_controller_decides_says_where_to_look(controllers: Callable[..., Admin]) -> None:
    with controllers(1) as admin, pytest.raises(CliError) as caught:
        reassignments(admin)
    assert caught.value.code is ExitCode.UNREACHABLE
    assert caught.value.hint == "no controller decided it: barnabas quorum status tells more"


def test_a_listener_for_clients_is_no_voters(controllers: Callable[..., Admin]) -> None:
    with controllers(1) as admin:
        assert admin.serves("a", 1, ApiKey.FETCH) is True
        assert admin.serves("a", 1, ApiKey.VOTE) is False
        assert admin.serves("b", 1, ApiKey.VOTE) is None
