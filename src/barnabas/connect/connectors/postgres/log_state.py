"""What is known of the log at the place where it is read: pure, so that restarts can be tried."""

from __future__ import annotations

from barnabas.connect.connectors.postgres import pgoutput
from barnabas.connect.connectors.postgres.changes import Transaction
from barnabas.connect.connectors.postgres.positions import Position
from barnabas.connect.connectors.postgres.tables import Table


class LogState:
    """Follows the log's messages, and says which are wanted after `begin`.

    The server begins with the first transaction that it does not know to be stored: those that are
    done, and the changes that are done of a transaction, come again and are passed over.
    """

    def __init__(self, begin: Position) -> None:
        self.position = begin
        self.transaction: Transaction | None = None
        self.tables: dict[int, Table | None] = {}
        """By the log's numbers; None: its changes are not wanted."""
        self.lsn = begin.done
        self._begin = begin
        self._is_passing_over = False
        self._events_to_pass_over = 0

    def all_sent_before(self, lsn: int) -> None:
        """The server has sent all transactions whose commits are before `lsn`."""
        is_known = self._begin.after_lsn is None or lsn > self._begin.after_lsn
        if self.transaction is None and is_known and lsn > self.position.done:
            self.position = Position(lsn)

    def takes(self, lsn: int, data: bytes) -> bool:
        """Follow a message; whether it is wanted."""
        self.lsn = max(self.lsn, lsn)
        kind = data[0]
        if kind == pgoutput.BEGIN:
            begin = pgoutput.begin(data)
            self.transaction = Transaction(begin.xid, begin.time_us, begin.commit_lsn, lsn)
            self._is_passing_over = self._begin.is_done(begin.commit_lsn)
            self._events_to_pass_over = self._begin.events_done(begin.commit_lsn)
            return not self._is_passing_over
        if kind == pgoutput.COMMIT:
            was_passing_over, self._is_passing_over = self._is_passing_over, False
            self.transaction = None
            if not was_passing_over:
                self.position = Position(pgoutput.commit_end(data))
            return not was_passing_over
        return kind in pgoutput.CHANGES and self._takes_change(kind, lsn, data)

    def _takes_change(self, kind: int, lsn: int, data: bytes) -> bool:
        transaction = self.transaction
        if transaction is None:
            return self._takes_message(lsn)
        if self._is_passing_over:
            return False
        if self._events_to_pass_over > 0:
            self._events_to_pass_over -= 1
            return False
        events = self.position.events_done(transaction.commit_lsn) + 1
        self.position = Position(self.position.done, transaction.commit_lsn, events)
        if self._begin.is_event_done(transaction.xid, lsn):
            return False
        if kind in pgoutput.ROW_CHANGES:
            return self.tables.get(pgoutput.relation_id(data)) is not None
        return True

    def _takes_message(self, lsn: int) -> bool:
        """A logical message outside transactions."""
        if lsn < self._begin.done or lsn <= (self._begin.after_lsn or -1):
            return False
        self.position = Position(max(self.position.done, lsn + 1))
        return True
