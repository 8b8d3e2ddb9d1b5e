"""Followers' fetches that wait, one for each of their fetchers."""

from barnabas.node.metadata.image import PartitionImage
from barnabas.node.replication.read_notifier import EXPECTED_MS, ReadNotifier
from sim.manual_clock import ManualClock


class Waiting:
    def __init__(self) -> None:
        self.hurried = 0

    def hurry(self) -> None:
        self.hurried += 1


def placed(*replicas: int) -> PartitionImage:
    return PartitionImage(replicas, replicas, replicas[0], leader_epoch=0, partition_epoch=0)


def test_each_fetcher_of_a_follower_is_hurried() -> None:
    """Which of them is to ask for the partition is the follower's affair."""
    clock = ManualClock()
    waking = ReadNotifier(clock)
    first, second, other = Waiting(), Waiting(), Waiting()
    waking.park(2, "broker-2-fetcher-0", first)
    waking.park(2, "broker-2-fetcher-1", second)
    waking.park(3, "broker-3-fetcher-0", other)
    waking.expect_followers(1, placed(1, 2))
    assert (first.hurried, second.hurried, other.hurried) == (1, 1, 0)
    assert waking.is_expected(2)
    assert not waking.is_expected(3)
    clock.advance(EXPECTED_MS)
    assert not waking.is_expected(2)


def test_of_one_fetcher_only_the_last_fetch_counts() -> None:
    """A fetch over a connection that the fetcher has closed may still be parked."""
    waking = ReadNotifier(ManualClock())
    former, present = Waiting(), Waiting()
    waking.park(2, "broker-2-fetcher-0", former)
    waking.park(2, "broker-2-fetcher-0", present)
    waking.unpark(2, "broker-2-fetcher-0", former)
    waking.expect_followers(1, placed(1, 2))
    assert (former.hurried, present.hurried) == (0, 1)
    waking.unpark(2, "broker-2-fetcher-0", present)
    waking.unpark(2, "broker-2-fetcher-0", present)
    waking.expect_followers(1, placed(1, 2))
    assert (former.hurried, present.hurried) == (0, 1)
    assert not waking._parked
