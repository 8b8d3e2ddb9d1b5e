"""Telling those who wait on partitions, once per turn of the loop however much happened.

Readers wait for the high watermark, followers for the end of the log too. A follower's fetch that
waits is also hurried when it should soon ask for more partitions.
"""

import asyncio
from typing import Protocol

from barnabas.base.clock import Clock
from barnabas.node.metadata.image import PartitionImage
from barnabas.node.replication.partition import Partition, ReadWaiter

EXPECTED_MS = 1000
"""The time after an election during which a follower is expected to fetch the partition."""


class ParkedFetch(Protocol):
    """A follower's fetch that waits."""

    def hurry(self) -> None:
        """Answer soon, with records or without."""


class ReadNotifier:
    """One per node."""

    __slots__ = ("_advanced", "_appended", "_clock", "_expected", "_parked")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._advanced: dict[Partition, None] = {}
        self._appended: dict[Partition, None] = {}
        self._parked: dict[int, dict[str | None, ParkedFetch]] = {}
        """By follower and client id: its fetch that waits for records, one for each fetcher."""
        self._expected: dict[int, int] = {}
        """By follower: until when it is expected to ask for more partitions (monotonic ms)."""

    def on_advanced(self, partition: Partition) -> None:
        """More may be read than before, or an error is to be told."""
        if not self._advanced and not self._appended:
            asyncio.get_running_loop().call_soon(self._wake)
        self._advanced[partition] = None

    def on_appended(self, partition: Partition) -> None:
        """Followers have something to fetch."""
        if not self._advanced and not self._appended:
            asyncio.get_running_loop().call_soon(self._wake)
        self._appended[partition] = None

    def _wake(self) -> None:
        advanced, self._advanced = self._advanced, {}
        appended, self._appended = self._appended, {}
        waiters: dict[ReadWaiter, dict[Partition, None]] = {}
        for partition in advanced:
            for waiter in partition.read_waiters:
                waiters.setdefault(waiter, {})[partition] = None
            for waiter in partition.follower_waiters:
                waiters.setdefault(waiter, {})[partition] = None
        for partition in appended:
            for waiter in partition.follower_waiters:
                waiters.setdefault(waiter, {})[partition] = None
        for waiter, partitions in waiters.items():
            waiter.partitions_advanced(list(partitions))

    def expect_followers(self, node_id: int, placed: PartitionImage) -> None:
        """Let followers not sleep in a fetch while they should ask for what is led here now.

        Nothing can be committed before they do, and they cannot ask while a fetch is under way.
        """
        until_ms = self._clock.monotonic_ms() + EXPECTED_MS
        for replica in placed.replicas:
            if replica != node_id:
                self._expected[replica] = until_ms
                for parked in self._parked.get(replica, {}).values():
                    parked.hurry()

    def park(self, replica: int, client_id: str | None, fetch: ParkedFetch) -> None:
        """A follower's fetch waits; the last one of the same fetcher's, if any, is given up."""
        fetches = self._parked.get(replica)
        if fetches is None:
            self._parked[replica] = {client_id: fetch}
        else:
            fetches[client_id] = fetch

    def unpark(self, replica: int, client_id: str | None, fetch: ParkedFetch) -> None:
        """A follower's fetch waits no more."""
        fetches = self._parked.get(replica)
        if fetches is not None and fetches.get(client_id) is fetch:
            del fetches[client_id]
            if not fetches:
                del self._parked[replica]

    def is_expected(self, replica: int) -> bool:
        """Return whether a follower may soon have more to ask for."""
        until_ms = self._expected.get(replica)
        return until_ms is not None and until_ms > self._clock.monotonic_ms()
