"""Planted defects of coordinators: of groups, their offsets, and transactions."""

from functools import partial
from typing import Any

from barnabas.node.coordinator.group import offset_requests
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.offsets import OffsetStore
from barnabas.node.coordinator.runtime import CoordinatorRuntime
from barnabas.node.coordinator.transaction import ending, initializing
from barnabas.node.coordinator.transaction.markers import MarkerSender
from barnabas.node.coordinator.transaction.shard import TransactionShard
from barnabas.node.coordinator.transaction.verifier import TransactionVerifier
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from sim.planting import Mutation, Patch

NO_PRODUCER = -1


def _given_before_released(patch: Patch) -> None:
    patch.set(ConsumerGroup, "owner_epoch", lambda self, topic_id, partition: None)


def _former_members_commit_in_transactions(patch: Patch) -> None:
    patch.set(offset_requests, "check_transactional_commit", lambda *_: ErrorCode.NONE)


def _answered_before_commit(patch: Patch) -> None:
    carry_out = CoordinatorRuntime._carry_out

    def carry_out_at_once(self: Any, entry: Any, decision: Any, pending: Any, now: Any) -> None:
        carry_out(self, entry, decision, pending, now)
        if pending is not None and pending in entry.pending:
            entry.pending.remove(pending)
            self._finish(entry, pending, ErrorCode.NONE)

    when_committed = CoordinatorRuntime._when_committed

    def when_appended(self: Any, entry: Any, response: Any, on_error: Any, now: Any) -> Any:
        when_committed(self, entry, response, on_error, now)
        return response

    patch.set(CoordinatorRuntime, "_carry_out", carry_out_at_once)
    patch.set(CoordinatorRuntime, "_when_committed", when_appended)


def _open_offsets_count(patch: Patch) -> None:
    replay = OffsetStore.replay

    def replay_plainly(self: Any, offset: int, producer_id: int, key: Any, value: Any) -> None:
        replay(self, offset, NO_PRODUCER, key, value)

    patch.set(OffsetStore, "replay", replay_plainly)


def _a_partition_gets_no_marker(patch: Patch) -> None:
    send = MarkerSender.send

    def send_most(self: Any, markers: Any) -> None:
        if len(markers.missing) > 2:
            markers.missing.popitem()
        send(self, markers)

    patch.set(MarkerSender, "send", send_most)


def _markers_are_tried_once(patch: Patch) -> None:
    def settle(self: Any, markers: Any, partition: Any, error: Any, failed: Any) -> None:
        markers.missing.pop(partition, None)

    patch.set(MarkerSender, "_settle", settle)


def _decisions_are_forgotten(patch: Patch) -> None:
    loaded = TransactionShard.loaded

    def loaded_without_markers(self: Any, now: Any) -> Any:
        decision = loaded(self, now)
        decision.continuation = None
        return decision

    patch.set(TransactionShard, "loaded", loaded_without_markers)


def _aborted_are_not_told(patch: Patch) -> None:
    patch.set(PartitionLog, "aborted_transactions", lambda *_: [])


def _open_transactions_are_read(patch: Patch) -> None:
    patch.set(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def _nobody_is_fenced(patch: Patch) -> None:
    next_epoch = initializing._next_epoch

    def same_epoch(transaction: Any, request: Any, now_ms: int) -> Any:
        if request.has_producer:
            return next_epoch(transaction, request, now_ms)
        return initializing._taken(
            transaction,
            request,
            transaction.producer_id,
            transaction.producer_epoch,
            -1,
            now_ms,
        )

    patch.set(initializing, "_next_epoch", same_epoch)


def _the_next_end_is_fenced(patch: Patch) -> None:
    end = ending._end_with_version_2

    def end_at_once(transaction: Any, request: Any, *rest: Any) -> Any:
        if transaction.state.is_prepared and transaction.producer_epoch == request.producer_epoch:
            return ending.Ending(ErrorCode.PRODUCER_FENCED)
        return end(transaction, request, *rest)

    patch.set(ending, "_end_with_version_2", end_at_once)


def _verification_goes_stale(patch: Patch, *, of_offsets: bool) -> None:
    ask = TransactionVerifier.ask

    def ask_with_the_first(
        self: Any, transactional_id: str, producer: Any, begin: Any, **options: Any
    ) -> Any:
        first = begin()
        if of_offsets is any(partition.topic == "__consumer_offsets" for partition in first):
            return ask(self, transactional_id, producer, lambda: first, **options)
        return ask(self, transactional_id, producer, begin, **options)

    patch.set(TransactionVerifier, "ask", ask_with_the_first)


GROUP_MUTATIONS = [
    Mutation(
        "assigned before it is released",
        "a partition goes to its next owner only after the previous one has released it",
        _given_before_released,
        10,
        workload="groups",
    ),
    Mutation(
        "coordinator answers before the commit",
        "a coordinator acknowledges only committed records",
        _answered_before_commit,
        40,
        kinds=("chase", "kill", "partition", "slow-links"),
        workload="groups",
    ),
    Mutation(
        "former members commit in transactions",
        "only members of the current generation commit in transactions",
        _former_members_commit_in_transactions,
        40,
        workload="chains",
    ),
    Mutation(
        "offsets of an open transaction count",
        "a transaction's offsets count only once it is committed",
        _open_offsets_count,
        40,
        workload="chains",
    ),
    Mutation(
        "a partition gets no marker",
        "the end of a transaction reaches each of its partitions",
        _a_partition_gets_no_marker,
        10,
        workload="transactions",
    ),
    Mutation(
        "markers are tried only once",
        "a marker is retried until it is written",
        _markers_are_tried_once,
        40,
        kinds=("kill", "chase", "partition"),
        workload="transactions",
    ),
    Mutation(
        "decided transactions are forgotten",
        "a new coordinator completes the transactions that were decided",
        _decisions_are_forgotten,
        80,
        kinds=("kill", "chase", "slow-links"),
        workload="transactions",
    ),
    Mutation(
        "a verification goes stale",
        "a transaction can begin right after the previous one's marker is written",
        partial(_verification_goes_stale, of_offsets=False),
        10,
        workload="transactions",
        seen_as="refused-transaction",
    ),
    Mutation(
        "a verification of offsets goes stale",
        "a transaction can begin with offsets as well as with records",
        partial(_verification_goes_stale, of_offsets=True),
        40,
        workload="chains",
        seen_as="refused-transaction",
    ),
    Mutation(
        "the next end of a transaction is fenced",
        "a producer that ends an empty transaction waits for the markers of the previous one",
        _the_next_end_is_fenced,
        10,
        workload="transactions",
        seen_as="refused-transaction",
    ),
    Mutation(
        "aborted transactions are not listed",
        "read_committed shows no aborted records",
        _aborted_are_not_told,
        10,
        workload="transactions",
    ),
    Mutation(
        "open transactions are read",
        "read_committed shows no records of undecided transactions",
        _open_transactions_are_read,
        10,
        workload="transactions",
    ),
    Mutation(
        "open transactions see one another",
        "all that a transaction has read is decided before the transaction is",
        _open_transactions_are_read,
        10,
        workload="exchange",
        seen_as="G1c",
    ),
    Mutation(
        "nobody is fenced",
        "a producer that takes over a transactional id fences all earlier ones",
        _nobody_is_fenced,
        20,
        workload="transactions",
    ),
]
