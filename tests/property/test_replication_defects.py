"""Random histories of replication; and broken replication, of which each must be noticed.

A defect is planted by replacing one method. If the histories do not notice it within
SEEDS_PER_DEFECT seeds they look at the wrong things.
"""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.node.broker.fetch.reading import Reader
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.replication.fetcher import Fetcher
from barnabas.node.replication.followers import Follower
from barnabas.node.replication.leadership import Leadership
from barnabas.node.replication.partition import Partition
from support.effort import examples
from support.replica_history import ReplicaHistory

SEEDS = examples(13)
SEEDS_PER_DEFECT = 100


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "barnabas")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_that_was_acknowledged_is_lost(seed: int) -> None:
    ReplicaHistory(seed).run()


Patch = Callable[[pytest.MonkeyPatch], None]


def acknowledge_before_followers_have_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leadership, "committable", lambda self, local_end_offset: local_end_offset)


def never_truncate(patch: pytest.MonkeyPatch) -> None:
    position = Fetcher._position

    def without_epoch(self: Fetcher, partition: Partition) -> Any:
        return position(self, partition)._replace(last_fetched_epoch=-1)

    patch.setattr(Fetcher, "_position", without_epoch)


def truncate_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """As Kafka did before KIP-101."""
    add = Fetcher.add

    def to_watermark(self: Fetcher, partition: Partition) -> None:
        partition.truncate_to(partition.high_watermark)
        add(self, partition)

    patch.setattr(Fetcher, "add", to_watermark)


def let_anybody_into_the_isr(patch: pytest.MonkeyPatch) -> None:
    def expand(self: Leadership, follower: Follower) -> None:
        if self.pending is None and self._is_eligible(follower):
            self._propose((*self.isr, follower.broker_id), joins=follower.broker_id)

    patch.setattr(Leadership, "_maybe_expand", expand)


def wait_for_the_committed_isr_only(patch: pytest.MonkeyPatch) -> None:
    mark = Leadership._mark

    def without_joining(self: Leadership) -> None:
        mark(self)
        for follower in self.followers:
            follower.holds_watermark = follower.is_in_isr

    patch.setattr(Leadership, "_mark", without_joining)
    patch.setattr(Leadership, "_is_about_to_join", lambda self, follower: False)


def believe_a_shrink_before_it_is_granted(patch: pytest.MonkeyPatch) -> None:
    mark = Leadership._mark

    def proposed(self: Leadership) -> None:
        mark(self)
        if self.pending is not None:
            wanted = {broker_id for broker_id, _ in self.pending.isr}
            for follower in self.followers:
                follower.holds_watermark = follower.broker_id in wanted

    patch.setattr(Leadership, "_mark", proposed)


def commit_all_upon_election(patch: pytest.MonkeyPatch) -> None:
    become_leader = Partition.become_leader

    def commit_all(self: Partition, placed: Any) -> bool:
        is_new_epoch = become_leader(self, placed)
        if is_new_epoch:
            self._advance(self.log.log_end_offset)
        return is_new_epoch

    patch.setattr(Partition, "become_leader", commit_all)


def keep_followers_positions_of_before(patch: pytest.MonkeyPatch) -> None:
    """A new leader takes followers to have all that it has."""

    def reset(self: Follower, now_ms: int, leader_end: int, **_: bool) -> None:
        self.log_end_offset = leader_end
        self.last_caught_up_ms = now_ms

    patch.setattr(Follower, "reset", reset)


def see_no_divergence(patch: pytest.MonkeyPatch) -> None:
    """A leader says of an epoch that it does not know that it ends with the log."""
    end_offset_for_epoch = PartitionLog.end_offset_for_epoch

    def its_own(self: PartitionLog, epoch: int) -> tuple[int, int]:
        known, end_offset = end_offset_for_epoch(self, epoch)
        return (epoch, self.log_end_offset) if known < epoch else (known, end_offset)

    patch.setattr(PartitionLog, "end_offset_for_epoch", its_own)


def count_a_follower_before_it_has_appended(patch: pytest.MonkeyPatch) -> None:
    """A leader takes what it sends for what the follower has."""
    sent = Reader.sent

    def believed(self: Reader, target: Any, size_bytes: int) -> None:
        sent(self, target, size_bytes)
        partition = target.partition
        if self.replica_id >= 0 and partition is not None and partition.leading is not None:
            follower = partition.leading.follower(self.replica_id)
            if follower is not None:
                follower.log_end_offset = partition.log.log_end_offset
                partition.follower_fetched()

    patch.setattr(Reader, "sent", believed)


DEFECTS: dict[Patch, int] = {
    acknowledge_before_followers_have_it: 0,
    never_truncate: 3,
    truncate_to_the_high_watermark: 98,
    let_anybody_into_the_isr: 9,
    wait_for_the_committed_isr_only: 33,
    believe_a_shrink_before_it_is_granted: 18,
    commit_all_upon_election: 46,
    keep_followers_positions_of_before: 46,
    see_no_divergence: 3,
    count_a_follower_before_it_has_appended: 0,
}
"""With the seed that noticed each first when this was written: it is tried before the others."""


@pytest.mark.parametrize("plant", DEFECTS, ids=lambda plant: plant.__name__)
def test_a_planted_defect_is_noticed(plant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in (DEFECTS[plant], *range(SEEDS_PER_DEFECT)):
        try:
            ReplicaHistory(seed).run()
        except AssertionError:
            return
    pytest.fail(f"{SEEDS_PER_DEFECT} histories did not notice it")
