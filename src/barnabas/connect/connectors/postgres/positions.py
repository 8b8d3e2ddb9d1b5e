"""Positions in the log, as stored in offsets.

Stored offsets have Debezium's keys, so that each can go on where the other was. They name an event
by its place in the log, which several rows of one COPY share. So ours have three more keys:

    barnabas_done    transactions whose commit record starts before this place are all written
    barnabas_tx      where the commit record of the transaction starts that is partly written
    barnabas_events  how many of its changes are written
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from barnabas.connect.record import JsonMap

DONE: Final = "barnabas_done"
TRANSACTION: Final = "barnabas_tx"
EVENTS: Final = "barnabas_events"
SNAPSHOT_RUNS: Final = {"snapshot": "INITIAL", "snapshot_completed": False}


@dataclass(slots=True, frozen=True)
class LogPosition:
    """A place in the log.

    `after_lsn` and `after_xid` are what Debezium stored: the last event and its transaction.
    """

    done: int = 0
    transaction: int | None = None
    events: int = 0
    after_lsn: int | None = None
    after_xid: int | None = None

    def is_done(self, commit_lsn: int) -> bool:
        """Return whether the transaction that commits at this place is written as a whole."""
        if self.after_lsn is not None:
            return commit_lsn <= self.after_lsn
        return commit_lsn < self.done

    def events_done(self, commit_lsn: int) -> int:
        """Return how many changes of a transaction are written."""
        return self.events if commit_lsn == self.transaction else 0

    def is_event_done(self, xid: int, lsn: int) -> bool:
        """Return whether Debezium has written a change of the transaction that it was in."""
        return self.after_lsn is not None and xid == self.after_xid and lsn <= self.after_lsn

    @property
    def start(self) -> int:
        """The start position for the server, which takes none before what the slot has
        confirmed."""
        return self.done

    def json(self) -> dict[str, Any]:
        """Our keys of a stored offset."""
        return {DONE: self.done, TRANSACTION: self.transaction, EVENTS: self.events}


def position_of(offset: JsonMap) -> LogPosition:
    """Read a stored offset, ours or Debezium's."""
    if offset.get(DONE) is not None:
        return LogPosition(int(offset[DONE]), offset.get(TRANSACTION), int(offset.get(EVENTS) or 0))
    lsn = offset.get("lsn")
    if lsn is None:
        return LogPosition()
    if offset.get("last_snapshot_record") or offset.get("snapshot_completed"):
        return LogPosition(int(lsn))  # where the slot's snapshot was taken
    return LogPosition(0, after_lsn=int(lsn), after_xid=offset.get("txId"))


def is_in_snapshot(offset: JsonMap) -> bool:
    """Return whether a snapshot was begun and not ended when the offset was stored."""
    running = offset.get("snapshot")
    if running in (None, False, "false", "False"):
        return False
    return not (offset.get("snapshot_completed") or offset.get("last_snapshot_record"))


def lsn_text(lsn: int) -> str:
    """Return a place in the log as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    """Read a place in the log as PostgreSQL writes it."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
