"""Verification of ongoing transactions by their coordinator (KIP-890).

A batch that begins a transaction in a partition must not land after the marker that ends it:
nobody would ever write another. So before it is appended, the coordinator is asked whether the
partition is part of the transaction, and the answer counts only while nothing has happened to the
producer here: each asking is one object, which the log forgets with the next batch or marker.

A producer that sends several batches at once may have an early one refused and a later one let
in, and could then never send the early one again; the lowest sequence that was asked for must
come first. Source: Kafka's VerificationStateEntry and VerificationGuard.
"""

from typing import Final, NamedTuple


class Verification:
    """One asking about one producer; it is known by its identity."""

    __slots__ = ("asked_ms", "epoch", "is_version_2", "lowest_sequence")

    def __init__(self, asked_ms: int, sequence: int, epoch: int, *, is_version_2: bool) -> None:
        self.asked_ms = asked_ms
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.is_version_2 = is_version_2
        """True if its producer begins each transaction with a new epoch."""

    def ask_again(self, sequence: int, epoch: int) -> None:
        """Another batch of the producer waits for the same answer."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


NOT_ASKED: Final = Verification(0, 0, 0, is_version_2=False)
"""Stands for a broker that does not verify (transaction.partition.verification.enable=false)."""


class AppendTerms(NamedTuple):
    """The conditions of a transactional append. Without them the caller is trusted."""

    verification: Verification | None = None
    """None: the transaction must be under way here already."""
    transaction_version: int = 0
    """Of the coordinator that writes a marker: from 2 on, its epoch is a new one."""
