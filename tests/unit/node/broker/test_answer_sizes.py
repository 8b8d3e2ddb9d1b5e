"""Repeating a name in a request does not multiply its answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.app.cluster import Cluster
from barnabas.protocol.apis import ApiKey
from support.large_things import (
    METADATA_BYTES,
    OFFSET_METADATA,
    PRODUCERS,
    SHARE_BATCHES,
    LargeThings,
)
from support.long_requests import CASES, Case

COUNT = 300
TIMES_MAX = 16
"""A repetition of one byte adds at most so many bytes to the answer."""
CHANGING = ("DELETE", "OFFSET_DELETE", "LEAVE", "ALTER", "CREATE", "TXN", "ADD", "JOIN", "WRITE")
"""APIs whose names begin so would change what the node holds."""
READING = [case for case in CASES if not ApiKey(case.key).name.startswith(CHANGING)]


class World(LargeThings):
    """Large topics, groups and other things, on a cluster with this many nodes."""

    def __init__(self, nodes: int, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers, with_share_state=nodes == 1)
        self.nodes = nodes


@pytest.fixture(scope="module", params=[1, 3])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with Cluster(request.param) as cluster:
        yield World(request.param, cluster.bootstrap_servers)


@pytest.mark.parametrize("case", [case for case in READING if case.is_same], ids=str)
def test_repetitions_do_not_multiply_an_answer(world: World, case: Case) -> None:
    with world.connect(is_for_controller=case.is_for_controller) as client:
        asked_once, answered_once = world.sizes(client, case, 1)
        asked, answered = world.sizes(client, case, COUNT)
    assert answered - answered_once <= TIMES_MAX * (asked - asked_once)


@pytest.mark.parametrize(
    ("key", "size"),
    [
        (ApiKey.DESCRIBE_GROUPS, METADATA_BYTES),
        (ApiKey.OFFSET_FETCH, len(OFFSET_METADATA)),
        (ApiKey.DESCRIBE_PRODUCERS, PRODUCERS * 16),
        (ApiKey.DESCRIBE_QUORUM, 100),
        (ApiKey.READ_SHARE_GROUP_STATE, SHARE_BATCHES * 16),
    ],
)
def test_what_the_node_holds_is_large(world: World, key: ApiKey, size: int) -> None:
    """The test above would see nothing otherwise."""
    if key == ApiKey.READ_SHARE_GROUP_STATE and world.nodes > 1:
        return
    case = next(case for case in CASES if case.key == key)
    with world.connect(is_for_controller=False) as client:
        _, answered = world.sizes(client, case, 1)
    assert answered > size
