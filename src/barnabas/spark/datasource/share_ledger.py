"""Records that a share-group source has acquired, planned and still has to acknowledge. Pure.

A share group delivers each record under a lock to one member. Spark plans a batch, writes the
plan down, and may run it again, also in another process. The ledger brings both together: a plan
names the offsets that were given out, so that a batch can be read again from the log, and a record
is acknowledged when the batch with its plan is finished.

A *holder* is a session that holds locks; what it holds is released when it ends. For each record:

    acquired ─▶ ready ─▶ planned ─▶ owed ─▶ (confirmed)
        │                  ▲         ▲
        │  planned before, │         │ finished before,
        └──given out again─┴─────────┘ given out again: acknowledged at once

A record that is *planned* or *owed* (its batch is finished, the broker has not yet confirmed the
acknowledgement) may be given out again, because its holder died or its lock expired. Then it is not
planned a second time. Pending acknowledgements are part of the next plan, so that a new process
knows them too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.base.ids import uuid_from_text, uuid_to_text
from barnabas.spark.datasource.share_ranges import (
    Delivery,
    Partition,
    Ranges,
    common,
    normal,
    subtract,
)

OWED_RANGES_MAX = 10_000
"""Of one verdict and partition; the lowest offsets are forgotten beyond it."""


class Verdict(IntEnum):
    """The acknowledgement types, as the protocol numbers them."""

    ACCEPT = 1
    RELEASE = 2
    REJECT = 3


class Acknowledgement(NamedTuple):
    """A verdict on a range of offsets."""

    partition: Partition
    first: int
    last: int
    verdict: Verdict


Holder = Hashable
Holding = dict[Partition, Ranges]
Verdicts = Mapping[Verdict, Sequence[Delivery]]
"""RELEASE and REJECT; all else is accepted. A verdict is on a record of one delivery count."""


@dataclass(slots=True, frozen=True)
class Plan:
    """The records of a batch, and acknowledgements that were not confirmed when it was made."""

    batch: int = 0
    deliveries: tuple[Delivery, ...] = ()
    owed: Mapping[Verdict, Mapping[Partition, Ranges]] = field(default_factory=dict)

    def as_offset(self) -> dict[str, Any]:
        """Return what Spark keeps as the source's offset."""
        ranges: dict[str, list[list[int]]] = {}
        for delivery in self.deliveries:
            triple = [delivery.first, delivery.last, delivery.attempt]
            ranges.setdefault(_text(delivery.partition), []).append(triple)
        owed = {
            verdict.name.lower(): {
                _text(partition): [list(pair) for pair in pairs]
                for partition, pairs in partitions.items()
            }
            for verdict, partitions in self.owed.items()
            if partitions
        }
        return {"batch": self.batch, "records": ranges, "owed": owed}

    @staticmethod
    def from_offset(offset: Mapping[str, Any]) -> Plan:
        """Read what `as_offset` returned. Raises ValueError for anything else."""
        try:
            deliveries = tuple(
                Delivery(_partition(text), *triple)
                for text, triples in offset["records"].items()
                for triple in triples
            )
            owed = {
                Verdict[name.upper()]: {
                    _partition(text): normal((first, last) for first, last in pairs)
                    for text, pairs in partitions.items()
                }
                for name, partitions in offset["owed"].items()
            }
            return Plan(int(offset["batch"]), deliveries, owed)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"no offset of a share-group source: {offset}") from error

    def ranges(self) -> Holding:
        """Return the offsets of the batch."""
        return _by_partition(self.deliveries)


class Ledger:
    """The ledger of one source. Calls must not overlap."""

    def __init__(self) -> None:
        self.plan = Plan()
        """The latest one."""
        self.is_running = False
        """True if the latest plan is not finished."""
        self._planned: Holding = {}
        self._held: dict[Holder, Holding] = {}
        self._ready: list[tuple[Holder, Delivery]] = []
        self._owed: dict[Verdict, Holding] = {Verdict.ACCEPT: {}, Verdict.REJECT: {}}
        self._old: dict[Verdict, Holding] = {}
        """The pending acknowledgements when `forget_old` was last called."""

    # -- what sessions say

    def acquired(self, holder: Holder, deliveries: Iterable[Delivery]) -> list[Acknowledgement]:
        """A holder was given records. Returns what it has to acknowledge at once."""
        due: list[Acknowledgement] = []
        for delivery in deliveries:
            partition = delivery.partition
            given: Ranges = ((delivery.first, delivery.last),)
            self._take_from_others(partition, given)
            held = self._held.setdefault(holder, {})
            held[partition] = normal((*held.get(partition, ()), *given))
            for verdict, owed in self._owed.items():
                late = common(given, owed.get(partition, ()))
                due += (Acknowledgement(partition, *pair, verdict) for pair in late)
                given = subtract(given, late)
            given = subtract(given, self._planned.get(partition, ()))
            for first, last in given:
                self._ready.append((holder, delivery._replace(first=first, last=last)))
        return due

    def confirmed(self, holder: Holder, acknowledged: Iterable[Acknowledgement]) -> None:
        """The broker has taken acknowledgements: nothing is left to do for these records."""
        for entry in acknowledged:
            pair: Ranges = ((entry.first, entry.last),)
            _remove(self._held.get(holder, {}), entry.partition, pair)
            _remove(self._owed.get(entry.verdict, {}), entry.partition, pair)

    def refused(self, holder: Holder, partition: Partition) -> None:
        """A holder's locks in a partition are gone; its records will be given out again."""
        self._held.get(holder, {}).pop(partition, None)
        self._ready = [
            (owner, delivery)
            for owner, delivery in self._ready
            if owner != holder or delivery.partition != partition
        ]

    def lost(self, holder: Holder) -> None:
        """A holder is gone, and all its locks."""
        self._held.pop(holder, None)
        self._ready = [entry for entry in self._ready if entry[0] != holder]

    # -- what Spark says

    def plan_next(self, records_max: int) -> Plan | None:
        """Plan the next batch of what is ready; None if nothing is, or a batch is still running."""
        if self.is_running or not self._ready:
            return None
        taken: list[Delivery] = []
        left = records_max
        rest: list[tuple[Holder, Delivery]] = []
        for holder, delivery in self._ready:
            if delivery.size <= left:
                taken.append(delivery)
                left -= delivery.size
            elif left:
                cut = delivery.first + left
                taken.append(delivery._replace(last=cut - 1))
                rest.append((holder, delivery._replace(first=cut)))
                left = 0
            else:
                rest.append((holder, delivery))
        self._ready = rest
        taken.sort()
        owed = {verdict: dict(holding) for verdict, holding in self._owed.items() if holding}
        self._begin(Plan(self.plan.batch + 1, tuple(taken), owed))
        return self.plan

    def resume(self, plan: Plan) -> None:
        """Spark runs a plan, or has found it in its checkpoint."""
        if plan == self.plan:
            return
        for verdict, partitions in plan.owed.items():
            for partition, pairs in partitions.items():
                self._owe(verdict, partition, pairs)
        self._begin(plan)
        taken = self.plan.ranges()
        self._ready = [
            (holder, delivery._replace(first=first, last=last))
            for holder, delivery in self._ready
            for first, last in subtract(
                ((delivery.first, delivery.last),), taken.get(delivery.partition, ())
            )
        ]

    def finished(self, verdicts: Verdicts) -> dict[Holder, list[Acknowledgement]]:
        """The latest plan's batch is committed. Returns what holders have to acknowledge."""
        if not self.is_running:
            return {}
        self.is_running = False
        left, self._planned = self._planned, {}
        due: dict[Holder, list[Acknowledgement]] = {}
        for verdict, partition, pairs in self._judged(left, verdicts):
            if verdict is not Verdict.RELEASE:
                self._owe(verdict, partition, pairs)
            for holder, held in self._held.items():
                for pair in common(held.get(partition, ()), pairs):
                    due.setdefault(holder, []).append(Acknowledgement(partition, *pair, verdict))
        return due

    def forget_old(self) -> None:
        """Forget what was owed at the last call already.

        An acknowledgement may have been taken and its answer lost: such records never come again.
        The calls must lie further apart than locks last.
        """
        for verdict, holding in self._old.items():
            for partition, pairs in holding.items():
                _remove(self._owed[verdict], partition, pairs)
        self._old = {verdict: dict(holding) for verdict, holding in self._owed.items()}

    # -- what there is

    @property
    def ready_count(self) -> int:
        """Offsets that can be planned."""
        return sum(delivery.size for _, delivery in self._ready)

    @property
    def owed_count(self) -> int:
        """Offsets whose acknowledgement the broker has not confirmed."""
        holdings = (pairs for held in self._owed.values() for pairs in held.values())
        return sum(last - first + 1 for pairs in holdings for first, last in pairs)

    def has_ready(self, holder: Holder) -> bool:
        """Return whether records of a holder wait to be planned."""
        return any(owner == holder for owner, _ in self._ready)

    def held_by(self, holder: Holder) -> Holding:
        """Return the offsets that a holder has locks on."""
        return {
            partition: pairs for partition, pairs in self._held.get(holder, {}).items() if pairs
        }

    def _begin(self, plan: Plan) -> None:
        self.plan = plan
        self.is_running = True
        self._planned = plan.ranges()

    def _judged(
        self, planned: Holding, verdicts: Verdicts
    ) -> Iterable[tuple[Verdict, Partition, Ranges]]:
        counts: dict[tuple[Partition, int], Ranges] = {}
        for delivery in self.plan.deliveries:
            key = delivery.partition, delivery.attempt
            counts[key] = normal((*counts.get(key, ()), (delivery.first, delivery.last)))
        left = dict(planned)
        for verdict in (Verdict.REJECT, Verdict.RELEASE):
            for delivery in verdicts.get(verdict, ()):
                known = counts.get((delivery.partition, delivery.attempt), ())
                known = common(known, left.get(delivery.partition, ()))
                pairs = common(((delivery.first, delivery.last),), known)
                if pairs:
                    _remove(left, delivery.partition, pairs)
                    yield verdict, delivery.partition, pairs
        for partition, pairs in left.items():
            yield Verdict.ACCEPT, partition, pairs

    def _owe(self, verdict: Verdict, partition: Partition, pairs: Ranges) -> None:
        owed = self._owed[verdict]
        owed[partition] = normal((*owed.get(partition, ()), *pairs))[-OWED_RANGES_MAX:]

    def _take_from_others(self, partition: Partition, given: Ranges) -> None:
        for held in self._held.values():
            _remove(held, partition, given)
        if any(delivery.partition == partition for _, delivery in self._ready):
            self._ready = [
                (holder, delivery._replace(first=first, last=last))
                for holder, delivery in self._ready
                for first, last in subtract(
                    ((delivery.first, delivery.last),),
                    given if delivery.partition == partition else (),
                )
            ]


def _by_partition(deliveries: Iterable[Delivery]) -> Holding:
    pairs: dict[Partition, list[tuple[int, int]]] = {}
    for delivery in deliveries:
        pairs.setdefault(delivery.partition, []).append((delivery.first, delivery.last))
    return {partition: normal(ranges) for partition, ranges in pairs.items()}


def _remove(holding: Holding, partition: Partition, pairs: Ranges) -> None:
    if partition in holding:
        left = subtract(holding[partition], pairs)
        if left:
            holding[partition] = left
        else:
            del holding[partition]


def _text(partition: Partition) -> str:
    return f"{uuid_to_text(partition.topic_id)}:{partition.number}"


def _partition(text: str) -> Partition:
    topic_id, _, index = text.rpartition(":")
    return Partition(uuid_from_text(topic_id), int(index))
