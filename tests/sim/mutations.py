"""Defects that are planted on purpose: a simulator that cannot find them finds nothing.

Each mutation breaks one rule of the protocol or of the log by replacing one function. `find`
runs seeds until one shows an anomaly. `python -m tests.sim.mutations` looks for all of them and
writes docs/simulation.md's table.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from barnabas.base.ids import NO_NODE
from barnabas.node.broker.fetch.reading import Reader
from barnabas.node.log import appending, loader, recovery
from barnabas.node.log.log_state import LogState
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.producers.state import ProducerState
from barnabas.node.metadata.controller.partition_change import _ChangeBuilder
from barnabas.node.metadata.publisher import ImagePublisher
from barnabas.node.raft import effects
from barnabas.node.raft.core import election
from barnabas.node.raft.core.state import (
    Prospective,
    RaftState,
    Trigger,
    Unattached,
    election_timeout_ms,
    enter,
    set_election,
)
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.replica_log import ReplicaLog
from barnabas.node.replication.leadership import Leadership
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from sim.group_mutations import GROUP_MUTATIONS
from sim.move_mutations import MOVE_MUTATIONS
from sim.plan import NEEDS_FLUSHES, Plan, draw_faults, draw_plan
from sim.planting import Mutation, Patch
from sim.share_mutations import SHARE_MUTATIONS
from sim.simulation import Outcome
from sim.workloads import run_plan

FAR_AWAY = 1 << 60


def _ack_before_high_watermark(patch: Patch) -> None:
    def when_committed(self: Any, end_offset: int, callback: Any) -> None:
        callback(ErrorCode.NONE)

    patch.set(Partition, "when_committed", when_committed)


def _high_watermark_without_followers(patch: Patch) -> None:
    append = Partition.append

    def append_and_commit(self: Any, *args: Any, **options: Any) -> Any:
        result = append(self, *args, **options)
        self.commit()
        return result

    patch.set(Leadership, "committable", lambda self, local_end_offset: local_end_offset)
    patch.set(Partition, "append", append_and_commit)


def _high_watermark_jumps(patch: Patch) -> None:
    become_leader = Partition.become_leader

    def become_leader_of_all(self: Any, placed: Any) -> bool:
        is_new = become_leader(self, placed)
        if is_new:
            self._advance(self.log.log_end_offset)
        return is_new

    patch.set(Partition, "become_leader", become_leader_of_all)


def _isr_grows_without_catching_up(patch: Patch) -> None:
    def maybe_expand(self: Any, follower: Any) -> None:
        if self.pending is None and not follower.is_in_isr and self._is_eligible(follower):
            self._propose((*self.isr, follower.broker_id), joins=follower.broker_id)

    patch.set(Leadership, "_maybe_expand", maybe_expand)


def _much_in_flight(plan: Plan) -> None:
    plan.link_delay_ms = (20.0, 60.0)
    plan.pause_max_s = 0.15


def _catch_up_slowly(plan: Plan) -> None:
    plan.properties["replica.fetch.max.bytes"] = "200"
    plan.properties["replica.fetch.response.max.bytes"] = "200"
    _much_in_flight(plan)


def _high_watermark_of_committed_isr(patch: Patch) -> None:
    mark = Leadership._mark

    def mark_committed(self: Any) -> None:
        mark(self)
        for follower in self.followers:
            follower.holds_watermark = follower.broker_id in self.isr[:1]

    patch.set(Leadership, "_mark", mark_committed)
    patch.set(Leadership, "_is_about_to_join", lambda self, follower: False)


def _no_truncation(patch: Patch) -> None:
    end_offset_for_epoch = PartitionLog.end_offset_for_epoch

    def agrees(self: Any, epoch: int) -> tuple[int, int]:
        if self.topic_partition.topic == "__cluster_metadata":
            return end_offset_for_epoch(self, epoch)
        return epoch, FAR_AWAY

    patch.set(PartitionLog, "end_offset_for_epoch", agrees)


def _no_truncation_of_metadata(patch: Patch) -> None:
    end_offset_for_epoch = PartitionLog.end_offset_for_epoch

    def agrees(self: Any, epoch: int) -> tuple[int, int]:
        if self.topic_partition.topic != "__cluster_metadata":
            return end_offset_for_epoch(self, epoch)
        return epoch, FAR_AWAY

    patch.set(PartitionLog, "end_offset_for_epoch", agrees)


def _vote_twice(patch: Patch) -> None:
    def vote(state: Any, request: Any, now_ms: int, out: list[Any]) -> bool:
        role_state = state.role_state
        if not isinstance(role_state, Unattached | Prospective):
            return False
        if state.election.leader_id != NO_NODE or request.last < state.end:
            return False
        enter(state, Trigger.VOTE_GIVEN, Unattached(now_ms + election_timeout_ms(state)))
        set_election(state, ElectionState(state.epoch, NO_NODE, request.candidate), out)
        return True

    patch.set(election, "_vote", vote)
    patch.set(election, "_make_way", lambda *_: None)
    patch.set(election, "would_vote", lambda state, request: request.last >= state.end)


def _vote_for_shorter_logs(patch: Patch) -> None:
    vote, would_vote = election._vote, election.would_vote

    class Flattered:
        """A request whose log looks longest."""

        def __init__(self, request: Any) -> None:
            self._request = request
            self.last = type(request.last)(FAR_AWAY, FAR_AWAY)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._request, name)

    flattered: Any = Flattered
    patch.set(election, "_vote", lambda s, r, now, out: vote(s, flattered(r), now, out))
    patch.set(election, "would_vote", lambda s, r: would_vote(s, flattered(r)))


def _votes_are_forgotten(patch: Patch) -> None:
    patch.set(effects, "write_quorum_state", lambda *_, **__: None)
    patch.set(election, "_make_way", lambda *_: None)
    patch.set(election, "would_vote", lambda state, request: request.last >= state.end)


def _metadata_acked_before_fsync(patch: Patch) -> None:
    patch.set(RaftState, "is_flushed", property(lambda self: True))


def _metadata_leader_counts_unsynced(patch: Patch) -> None:
    patch.set(ReplicaLog, "flushed_offset", property(lambda self: self.log.log_end_offset))


def _min_isr_ignored(patch: Patch) -> None:
    patch.set(Partition, "effective_min_isr", property(lambda self: 1))


def _leader_from_outside_the_isr(patch: Patch) -> None:
    def find_leader(self: Any) -> int:
        for replica in self.replicas:
            if self.change.is_acceptable_leader(replica):
                return int(replica)
        return -1

    patch.set(_ChangeBuilder, "_find_leader", find_leader)


def _old_leader_stays(patch: Patch) -> None:
    patch.set(Partition, "become_follower", lambda self, placed: False)


def _published_before_commit(patch: Patch) -> None:
    def appended(self: Any, batch: Any) -> None:
        self._publish(self._loader.feed([batch]))

    patch.set(ImagePublisher, "appended", appended)


def _deposed_controller_keeps_its_image(patch: Patch) -> None:
    patch.set(ImagePublisher, "revert", lambda self: None)


def _uncommitted_is_read(patch: Patch) -> None:
    read = Reader.read

    def read_all(self: Any, *args: Any, **options: Any) -> Any:
        self.to_log_end = True
        return read(self, *args, **options)

    patch.set(Reader, "read", read_all)


def _flush_messages_ignored(patch: Patch) -> None:
    patch.set(LogState, "needs_flush", property(lambda self: False))


def _sequences_unchecked(patch: Patch) -> None:
    patch.set(ProducerState, "find_duplicate", lambda self, header: None)
    patch.set(ProducerState, "check", lambda self, header, **_: ErrorCode.NONE)


def _producers_forgotten(patch: Patch) -> None:
    patch.set(loader, "load_producers", lambda *_, **__: None)
    patch.set(recovery, "record_batch", lambda *_: None)


def _recovery_checks_nothing(patch: Patch) -> None:
    patch.set(recovery, "_check", lambda *_: None)


def _append_without_writing(patch: Patch) -> None:
    write = appending._write

    def write_most(log: Any, data: Any, size: int, first_offset: int, *rest: Any) -> None:
        if first_offset % 50 == 7 and log.topic_partition.topic.startswith("topic"):
            log.log_end_offset = rest[0] + 1
            return
        write(log, data, size, first_offset, *rest)

    patch.set(appending, "_write", write_most)


MUTATIONS = [
    Mutation(
        "ack before high watermark",
        "acks=all is answered when all in-sync replicas have the records",
        _ack_before_high_watermark,
        20,
    ),
    Mutation(
        "high watermark without followers",
        "the high watermark is what all in-sync replicas have",
        _high_watermark_without_followers,
        20,
        kinds=("kill", "slow-links", "partition"),
    ),
    Mutation(
        "high watermark jumps to the log's end",
        "a new leader's high watermark waits for the followers' first fetches",
        _high_watermark_jumps,
        80,
        kinds=("chase", "slow-links"),
        adjust=_much_in_flight,
    ),
    Mutation(
        "ISR grows without catching up",
        "a replica joins the ISR only once it has everything that is committed",
        _isr_grows_without_catching_up,
        80,
        kinds=("chase", "chase", "pause"),
        adjust=_catch_up_slowly,
    ),
    Mutation(
        "high watermark of half the ISR",
        "the high watermark waits for every in-sync replica",
        _high_watermark_of_committed_isr,
        80,
        kinds=("chase", "slow-links"),
    ),
    Mutation(
        "no truncation",
        "a follower drops records that its new leader does not have",
        _no_truncation,
        20,
    ),
    Mutation(
        "no truncation of metadata",
        "a replica of the quorum drops records that its new leader does not have",
        _no_truncation_of_metadata,
        60,
    ),
    Mutation(
        "vote twice",
        "a voter votes once in an epoch",
        _vote_twice,
        80,
        "five",
        ("kill", "pause", "one-way-partition", "slow-links"),
    ),
    Mutation(
        "vote for a shorter log",
        "a voter votes only for logs at least as complete as its own",
        _vote_for_shorter_logs,
        80,
    ),
    Mutation(
        "votes are forgotten",
        "a vote is on disk before it is sent",
        _votes_are_forgotten,
        80,
        "five",
        ("kill", "kill-all", "slow-links", "partition"),
    ),
    Mutation(
        "metadata acknowledged before fsync",
        "a replica of the quorum fsyncs what it has before its next fetch",
        _metadata_acked_before_fsync,
        60,
    ),
    Mutation(
        "metadata leader counts unsynced records",
        "for the quorum's leader itself, only fsynced records count",
        _metadata_leader_counts_unsynced,
        160,
        "three",
        ("slow-disk", "power-loss", "power-loss-all", "kill"),
    ),
    Mutation(
        "min.insync.replicas ignored",
        "fewer replicas than that commit nothing",
        _min_isr_ignored,
        160,
        "one controller",
        ("pause", "power-loss"),
        seen_as="lost-write",
    ),
    Mutation(
        "leader from outside the ISR",
        "leaders come from the ISR or the eligible leader replicas",
        _leader_from_outside_the_isr,
        10,
    ),
    Mutation("old leader stays", "a replaced leader becomes a follower", _old_leader_stays, 10),
    Mutation(
        "published before commit",
        "brokers see metadata only once it is committed",
        _published_before_commit,
        40,
    ),
    Mutation(
        "deposed controller keeps its image",
        "a deposed controller drops uncommitted changes",
        _deposed_controller_keeps_its_image,
        40,
    ),
    Mutation(
        "uncommitted records are read",
        "consumers read up to the high watermark",
        _uncommitted_is_read,
        20,
        kinds=("partition",),
        seen_as="position-lost",
    ),
    Mutation(
        "flush.messages ignored",
        "records acknowledged with flush.messages=1 are on disk",
        _flush_messages_ignored,
        40,
        "one",
    ),
    Mutation(
        "sequences unchecked",
        "an idempotent producer's batch is appended once",
        _sequences_unchecked,
        10,
    ),
    Mutation(
        "producers forgotten at a restart",
        "after a crash, a log recovers its producers' state",
        _producers_forgotten,
        60,
        "one",
    ),
    Mutation(
        "recovery checks nothing",
        "recovery cuts at the first damage",
        _recovery_checks_nothing,
        80,
        "one",
    ),
    Mutation(
        "append without writing",
        "acknowledged records were written",
        _append_without_writing,
        10,
        "one",
    ),
    *GROUP_MUTATIONS,
    *SHARE_MUTATIONS,
    *MOVE_MUTATIONS,
]
BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}


@contextmanager
def planted(mutation: Mutation) -> Iterator[None]:
    """The defect is there as long as the context lasts."""
    patch = Patch()
    mutation.plant(patch)
    try:
        yield
    finally:
        patch.undo()


def find(mutation: Mutation, first: int = 0) -> tuple[int, Outcome] | None:
    """The first seed that shows the defect and what it shows; None within `seeds_max`."""
    with planted(mutation):
        for seed in range(first, mutation.seeds_max):
            plan = draw_plan(seed, mutation.topology)
            if NEEDS_FLUSHES & set(mutation.kinds) and not plan.flushes:
                continue  # it would be lost without any defect
            if mutation.kinds:
                plan.faults = draw_faults(
                    Random(seed),
                    plan.duration_s,
                    dict.fromkeys(mutation.kinds, 1),
                    flushes=plan.flushes,
                )
            if mutation.adjust is not None:
                mutation.adjust(plan)
            outcome = run_plan(plan, mutation.workload)
            names = {anomaly.name for anomaly in outcome.anomalies}
            if names and mutation.seen_as in {"", *names}:
                return seed, outcome
    return None
