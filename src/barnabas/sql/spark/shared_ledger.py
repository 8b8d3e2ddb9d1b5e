"""The offsets that the members of a shared stream have reached, by number of micro-batch.

A shared stream runs the micro-batches of several queries (`shared_stream`). Spark's checkpoint has
their state and the number of the last micro-batch; a file for each of the last numbers has the
offsets that each member has reached with it. State and offsets belong together by that number: the
file of a number is written before Spark plans its micro-batch, and after a restart the ledger goes
on with the file of the number that Spark has committed last.

    ledger/7    after the last committed micro-batch
    ledger/8    after the one that runs

A micro-batch that lasts has reached more than what was planned. Then its file is written once more,
before Spark commits it.

A change of members is written to all files, as any of them may be the one to go on with.

With exactly once, the results of a micro-batch may be committed although Spark has not committed
the micro-batch: their transactions were *decided* before. Its records must reach the state again,
and its results must not be written again. So the ledger keeps the ends of its ranges in `redo`.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.sql.spark.checkpoint import CheckpointError
from barnabas.sql.spark.topology import MEMBERS_MAX

_VERSION: Final = 1
_KEPT: Final = 3
"""Spark commits a number after its micro-batch has returned, perhaps while the next is planned."""

Offsets = dict[str, dict[int, int]]
"""The next offset, by topic and partition."""
Read = Mapping[tuple[str, int], int]
"""The same as it is reached by a micro-batch."""


@dataclass
class Share:
    """A query's part of the stream. `state_name`: of its checkpoint; `partitions`: of its state.
    `topic_ids`: by topic.

    `is_left`: the query is gone, and the next micro-batch deletes its state. `redo`: the offsets
    up to which its results are committed, where the state lacks the records before them.
    """

    number: int
    state_name: str
    partitions: int
    offsets: Offsets = field(default_factory=dict)
    is_left: bool = False
    topic_ids: dict[str, str] = field(default_factory=dict)
    is_exactly_once: bool = False
    redo: Offsets = field(default_factory=dict)

    @property
    def unreached(self) -> Offsets:
        """The part of `redo` that is still to be read."""
        return {
            topic: left
            for topic, ends in self.redo.items()
            if (
                left := {
                    partition: until
                    for partition, until in ends.items()
                    if self.offsets.get(topic, {}).get(partition, until) < until
                }
            )
        }

    @property
    def repeating(self) -> frozenset[int]:
        """The partitions of the state that have ranges to read once more."""
        return frozenset(
            partition % self.partitions for ends in self.unreached.values() for partition in ends
        )

    def repeats(self, state_partition: int) -> dict[tuple[str, int], tuple[int, int]]:
        """The ranges that a partition of the state has to read once more before others, by topic
        and partition: it reads them together, as it did before."""
        return {
            (topic, partition): (self.offsets[topic][partition], until)
            for topic, ends in self.unreached.items()
            for partition, until in ends.items()
            if partition % self.partitions == state_partition
        }


class Ledger:
    """The shares of all queries, whether they run or not. Belongs to one thread."""

    def __init__(self, directory: str, number: int, tasks: int) -> None:
        self._directory = os.path.join(directory, "ledger")
        self.number = number
        """Of the last micro-batch that is planned."""
        self.tasks = tasks
        """How many tasks share the labels: as at the first start."""
        self.id = uuid.uuid4().hex
        """Tells ledgers apart."""
        self.shares: dict[str, Share] = {}
        self._next = 0

    @classmethod
    def open(
        cls,
        directory: str,
        committed: int,
        planned: int,
        tasks: int,
        *,
        decided: int = 0,
        lost: Collection[tuple[int, int]] = (),
    ) -> Ledger:
        """Go on behind micro-batch `committed`; `planned`: the last that Spark has planned.

        `tasks`: of a new ledger. `decided`: the last micro-batch whose results were decided.
        `lost`: by a share's number and a partition of its state, which of them are not written.
        Raises CheckpointError, OSError.
        """
        assert tasks > 0, "labels are spread over tasks"
        if decided > planned:
            raise CheckpointError(
                f"{directory} is an older copy: results of later micro-batches are written. "
                "Delete it, and create its queries again"
            )
        ledger = cls(directory, planned, tasks)
        os.makedirs(ledger._directory, exist_ok=True)
        if committed or os.path.exists(ledger._path(0)):
            ledger._load(ledger._read(committed))
        if decided > committed:
            ledger._note_decided(decided, lost)
        ledger._write(planned)
        # Later micro-batches are planned again.
        for number in ledger._numbers():
            if number > committed and number != planned:
                os.unlink(ledger._path(number))
        return ledger

    def join(
        self,
        query_id: str,
        state_name: str,
        partitions: int,
        offsets: Offsets,
        *,
        is_exactly_once: bool = False,
    ) -> Share:
        """The share of a query; a new one begins at these offsets.

        It is new too if the query's checkpoint is: the state of the old one is deleted.
        Raises CheckpointError, OSError.
        """
        found = self.shares.get(query_id)
        if found is not None and not found.is_left:
            if (found.state_name, found.partitions) == (state_name, partitions):
                if found.is_exactly_once != is_exactly_once:
                    found.is_exactly_once = is_exactly_once
                    self._write_all()
                return found
            found.is_left = True
        made = Share(
            self._free_number(), state_name, partitions, offsets, is_exactly_once=is_exactly_once
        )
        _put(self.shares, query_id, made)
        self._write_all()
        return made

    def leave(self, query_id: str) -> None:
        """Have a query's state deleted by the next micro-batch. Raises CheckpointError, OSError."""
        found = self.shares.get(query_id)
        if found is not None:
            found.is_left = True
            self._write_all()

    @property
    def query_ids(self) -> frozenset[str]:
        """The queries that have a share."""
        return frozenset(name for name, share in self.shares.items() if not share.is_left)

    @property
    def left(self) -> list[Share]:
        """The shares whose state is to be deleted."""
        return [share for share in self.shares.values() if share.is_left]

    def plan(self, reached: Mapping[str, Read]) -> int:
        """Write down the next micro-batch, by query where its offsets end; returns its number.

        It also deletes what is left. Raises OSError, and changes nothing then.
        """
        shares = {
            name: replace(
                share,
                offsets={topic: dict(of) for topic, of in share.offsets.items()},
                redo=share.unreached,
            )
            for name, share in self.shares.items()
            if not share.is_left
        }
        for query_id, read in reached.items():
            self._advance(shares[query_id], read)
        self._write(self.number + 1, shares)
        self.shares = shares
        self.number += 1
        for number in self._numbers():
            if number <= self.number - _KEPT:
                os.unlink(self._path(number))
        return self.number

    def identify(self, query_id: str, topic_ids: Mapping[str, str]) -> list[str]:
        """Note the ids of a query's topics, and return the topics that were created again: they are
        read from their beginning. Written with the next plan."""
        share = self.shares[query_id]
        again = [
            topic
            for topic, topic_id in topic_ids.items()
            if share.topic_ids.get(topic, topic_id) != topic_id
        ]
        for topic in again:
            share.redo.pop(topic, None)
            share.offsets[topic] = dict.fromkeys(share.offsets.get(topic, {}), 0)
        share.topic_ids.update(topic_ids)
        return again

    def correct(self, moved: Mapping[str, Read]) -> None:
        """Have queries read on from these offsets: the last micro-batch has reached others than
        planned. Raises OSError."""
        for query_id, read in moved.items():
            share = self.shares.get(query_id)
            if share is not None:
                self._advance(share, read)
        self._write(self.number)

    def extend(self, query_id: str, counts: Mapping[str, int]) -> None:
        """Read partitions that topics have got from their beginning; written with the next plan."""
        share = self.shares[query_id]
        for topic, count in counts.items():
            offsets = share.offsets.setdefault(topic, {})
            for partition in range(count):
                offsets.setdefault(partition, 0)

    @staticmethod
    def _advance(share: Share, read: Read) -> None:
        for (topic, partition), offset in read.items():
            share.offsets.setdefault(topic, {})[partition] = offset

    def _note_decided(self, decided: int, lost: Collection[tuple[int, int]]) -> None:
        """Keep what the micro-batch read whose results are decided, and whose state is lost."""
        planned = Ledger(os.path.dirname(self._directory), decided, self.tasks)
        planned._load(planned._read(decided))
        for name, share in self.shares.items():
            then = planned.shares.get(name)
            if then is None or then.number != share.number:
                continue
            # A start before this one may have noted it already.
            for ends in (then.redo, then.offsets):
                for topic, offsets in ends.items():
                    for partition, until in offsets.items():
                        if (share.number, partition % share.partitions) not in lost:
                            redo = share.redo.setdefault(topic, {})
                            redo[partition] = max(until, redo.get(partition, 0))
            share.redo = share.unreached

    def _free_number(self) -> int:
        """One that no share has, nor had in a micro-batch that may not be committed."""
        taken = {share.number for share in self.shares.values()}
        for number in self._numbers():
            taken |= {one["number"] for one in self._read(number)["shares"].values()}
        for _ in range(MEMBERS_MAX):
            number, self._next = self._next, (self._next + 1) % MEMBERS_MAX
            if number not in taken:
                return number
        raise CheckpointError(f"{MEMBERS_MAX} queries share this server's stream: no room for more")

    # --- files -------------------------------------------------------------------------------

    def _path(self, number: int) -> str:
        return os.path.join(self._directory, str(number))

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(self._directory) if name.isdigit())

    def _read(self, number: int) -> dict[str, Any]:
        path = self._path(number)
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"cannot read {path}: {error}") from error
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            raise CheckpointError(f"{path} is of another version of this program")
        return found

    def _load(self, found: dict[str, Any]) -> None:
        self.tasks, self._next = found["tasks"], found["next"]
        self.id = found.get("id", self.id)
        for query_id, one in found["shares"].items():
            offsets, redo = _offsets(one["offsets"]), _offsets(one.get("redo", {}))
            self.shares[query_id] = Share(**{**one, "offsets": offsets, "redo": redo})

    def _write(self, number: int, shares: Mapping[str, Share] | None = None) -> None:
        path = self._path(number)
        given = self.shares if shares is None else shares
        data = {
            "version": _VERSION,
            "id": self.id,
            "tasks": self.tasks,
            "next": self._next,
            "shares": {name: vars(share) for name, share in given.items()},
        }
        with open(f"{path}.partial", "w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.partial", path)

    def _write_all(self) -> None:
        """Write who is a member to each file, with the offsets of its number."""
        for number in self._numbers():
            if number == self.number:
                continue
            before = Ledger(os.path.dirname(self._directory), number, self.tasks)
            before._load(self._read(number))
            shares = dict(before.shares)
            for name, share in self.shares.items():
                earlier = shares.get(name)
                if earlier is not None and earlier.number == share.number:
                    earlier.is_left = share.is_left
                    earlier.is_exactly_once = share.is_exactly_once
                else:
                    _put(shares, name, share)
            self._write(number, shares)
        self._write(self.number)


def exactly_once_id(directory: str) -> str | None:
    """The id of a directory's ledger if a query has its results exactly once; None if none has.

    Raises CheckpointError.
    """
    ledger = _newest(directory)
    return ledger.id if any(one.is_exactly_once for one in ledger.shares.values()) else None


def known_queries(directory: str) -> frozenset[str]:
    """The queries that have a share in the newest ledger of a directory.

    Raises CheckpointError.
    """
    return _newest(directory).query_ids


def _newest(directory: str) -> Ledger:
    """The newest ledger of a directory, an empty one if it has none. Raises CheckpointError."""
    ledger = Ledger(directory, 0, 1)
    try:
        newest = max(ledger._numbers(), default=-1)
    except FileNotFoundError:
        return ledger
    if newest >= 0:
        ledger._load(ledger._read(newest))
    return ledger


def _offsets(found: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Offsets as JSON has them."""
    return {
        topic: {int(partition): offset for partition, offset in ends.items()}
        for topic, ends in found.items()
    }


def _put(shares: dict[str, Share], name: str, share: Share) -> None:
    """Add a share; one that had the name is left, and its state not yet deleted."""
    before = shares.pop(name, None)
    if before is not None:
        before.is_left = True
        shares[f"{name}\x00{before.number}"] = before
    shares[name] = share
