"""The actions and observations of a cluster's clients, and the promises that they are checked
against.

The names of what can be wrong are those of Jepsen's analyses of Kafka: lost-write, duplicate,
inconsistent-offsets, unseen, poll-skip, nonmonotonic-poll, nonmonotonic-send.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

Place = tuple[int, int]
"""(partition, offset)."""

ANOMALIES_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True, order=True)
class Token:
    """The value of a record: who wrote it, and as which of its records for that partition."""

    writer: str
    partition: int
    number: int

    def encode(self) -> bytes:
        return f"{self.writer}:{self.partition}:{self.number}".encode()

    @classmethod
    def decode(cls, value: bytes) -> Token:
        writer, partition, number = value.decode().split(":")
        return cls(writer, int(partition), int(number))


@dataclass(eq=False)
class History:
    """Of one topic. Threads of several clients write into it."""

    sent: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    """(writer, partition) → how many records were handed to the client."""
    acknowledged: dict[Token, Place | None] = field(default_factory=dict)
    """Without a place where the broker had stored it before and could not say where."""
    acknowledged_at: list[float] = field(default_factory=list)
    """Monotonic seconds, ascending."""
    failed: dict[Token, str] = field(default_factory=dict)
    """Sent, and reported as failed: may be there or not."""
    seen: dict[Place, Token] = field(default_factory=dict)
    """By anyone who read while it all happened."""
    seen_by_group: set[Place] = field(default_factory=set)
    anomalies: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # Recorded as it happens

    def acknowledge(self, token: Token, place: Place | None, at: float) -> None:
        """A producer was told that its record is stored."""
        with self._lock:
            self.acknowledged[token] = place
            self.acknowledged_at.append(at)

    def see(self, token: Token, place: Place, *, in_group: bool = False) -> None:
        """A consumer got a record; what is at a place never changes."""
        with self._lock:
            before = self.seen.setdefault(place, token)
            if before != token:
                self.anomalies.append(f"inconsistent-offsets: {place} was {before}, is {token}")
            if in_group:
                self.seen_by_group.add(place)

    def report(self, anomaly: str) -> None:
        """Something happened that must not."""
        with self._lock:
            self.anomalies.append(anomaly)

    def count_acknowledged(self) -> int:
        return len(self.acknowledged)

    # Checked at the end

    def longest_silence_s(self) -> float:
        """The longest time without any acknowledgement between the first and the last."""
        return max((b - a for a, b in pairwise(self.acknowledged_at)), default=0.0)

    def check(self, final: dict[Place, Token], *, group_read_all: bool = True) -> None:
        """Hold everything against what the log contains now. Fails with what is wrong."""
        anomalies = [
            *self.anomalies,
            *self._lost(final),
            *self._inconsistent(final),
            *self._duplicates(final),
            *self._out_of_order(final),
            *self._invented(final),
            *(self._unseen(final) if group_read_all else ()),
        ]
        shown = "\n".join(anomalies[:ANOMALIES_SHOWN_MAX])
        assert not anomalies, f"{len(anomalies)} anomalies:\n{shown}"

    def _lost(self, final: dict[Place, Token]) -> list[str]:
        stored = set(final.values())
        return [
            f"lost-write: {token} acknowledged at {place}"
            for token, place in self.acknowledged.items()
            if token not in stored
        ]

    def _inconsistent(self, final: dict[Place, Token]) -> list[str]:
        claims = [(place, token, "seen") for place, token in self.seen.items()]
        claims += [
            (place, token, "acknowledged")
            for token, place in self.acknowledged.items()
            if place is not None
        ]
        return [
            f"inconsistent-offsets: {token} was {how} at {place}, where {final.get(place)} is"
            for place, token, how in claims
            if final.get(place) != token
        ]

    def _duplicates(self, final: dict[Place, Token]) -> list[str]:
        places: dict[Token, list[Place]] = defaultdict(list)
        for place, token in final.items():
            places[token].append(place)
        return [
            f"duplicate: {token} at {found}" for token, found in places.items() if len(found) > 1
        ]

    def _out_of_order(self, final: dict[Place, Token]) -> list[str]:
        last: dict[tuple[str, int], Token] = {}
        anomalies = []
        for place in sorted(final):
            token = final[place]
            before = last.get((token.writer, token.partition))
            if before is not None and before.number > token.number:
                anomalies.append(f"nonmonotonic-send: {token} at {place} comes after {before}")
            last[token.writer, token.partition] = token
        return anomalies

    def _invented(self, final: dict[Place, Token]) -> list[str]:
        return [
            f"invented: {token} at {place}"
            for place, token in final.items()
            if token.partition != place[0]
            or token.number >= self.sent.get((token.writer, token.partition), 0)
        ]

    def _unseen(self, final: dict[Place, Token]) -> list[str]:
        missing = sorted(set(final) - self.seen_by_group)
        return [f"unseen: the group never got {final[place]} at {place}" for place in missing]
