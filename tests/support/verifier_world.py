"""The leader of a partition, and the coordinator of a transaction that it asks about.

Both are on one node. The producer's transaction before is decided, and its marker not written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from barnabas.node.coordinator.transaction.service import TransactionConfig
from barnabas.node.coordinator.transaction.verifier import TransactionVerifier, Verifications
from barnabas.node.log.partition_log import AppendOrigin
from barnabas.node.log.producers.verification import AppendTerms, Verification
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.control import encode_end_txn
from support.logs import NOW_MS, TOPIC_PARTITION, LogBench, make_batch
from support.other_brokers import HERE, OtherBrokers

NODE_ID = HERE
PRODUCER_ID = 7
EPOCH = 3
"""Of the transaction that begins."""
TRANSACTIONAL_ID = "id"


class VerifierWorld:
    """`answers` is what the coordinator says to one question after the other."""

    def __init__(self, *answers: ErrorCode) -> None:
        self.answers = list(answers)
        self.between: list[Callable[[], None]] = []
        """Actions while it is asked, question by question."""
        self.completing: list[Callable[[], None]] = []
        """An action while the leader waits."""
        self.config = TransactionConfig()
        self.log = LogBench()
        self.log.clock.time_ms = NOW_MS
        placed = SimpleNamespace(leader=NODE_ID)
        image: Any = SimpleNamespace(topics=SimpleNamespace(partition=lambda *_: placed))
        coordinator: Any = self
        peers: Any = OtherBrokers(lambda _: None)  # nothing is asked elsewhere
        self.verifier = TransactionVerifier(self.log.clock, peers, lambda: image, coordinator)
        before = make_batch("v", producer=(PRODUCER_ID, EPOCH - 1, 0), transactional=True)
        self.log.log.append_as_leader(before, leader_epoch=0, now_ms=NOW_MS)

    # The coordinator

    def partition_for(self, transactional_id: str) -> int:
        return 0

    def add_partitions(self, *_: Any) -> Promise[ErrorCode]:
        promise: Promise[ErrorCode] = Promise()
        asyncio.get_running_loop().call_soon(self._answer, promise)
        return promise

    def _answer(self, promise: Promise[ErrorCode]) -> None:
        if self.between:
            self.between.pop(0)()
        promise.settle(self.answers.pop(0))

    async def completed(self, transactional_id: str) -> None:
        if self.completing:
            self.completing.pop(0)()

    # The log

    def append(self, verification: Verification | None) -> ErrorCode:
        """The first batch of the transaction that begins."""
        batch = make_batch("v", producer=(PRODUCER_ID, EPOCH, 0), transactional=True)
        terms = AppendTerms(verification)
        log = self.log.log
        return log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS, terms=terms).error

    @property
    def has_begun(self) -> bool:
        return self.log.log.producers.is_open_in(PRODUCER_ID, EPOCH)

    def mark(self) -> None:
        """The marker of the transaction before."""
        marker = encode_end_txn(
            is_commit=True,
            coordinator_epoch=0,
            producer_id=PRODUCER_ID,
            producer_epoch=EPOCH,
            timestamp_ms=NOW_MS,
        )
        self.log.log.append_as_leader(
            marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )

    def begin(self) -> Verifications:
        verification = self.log.log.producers.verify(
            PRODUCER_ID, EPOCH, 0, NOW_MS, is_version_2=True
        )
        return {} if verification is None else {TOPIC_PARTITION: verification}
