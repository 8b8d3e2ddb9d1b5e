"""Joins of two tables by their keys: a change on either side changes the joined row.

The joined row's timestamp is the later of the two rows'. Whether a tombstone goes on where no row
was, differs by kind and side, as in Kafka Streams.
"""

from __future__ import annotations

from barnabas.sql.runtime.joined_rows import Joiner
from barnabas.sql.runtime.node import StoreKey, TableNode, store_key
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.syntax.tree import JoinKind


class TableTableJoinNode(TableNode):
    """Both sides' processors: `process_left` and `process_right` take the changes."""

    def __init__(self, kind: JoinKind, left: TableNode, right: TableNode, joiner: Joiner) -> None:
        super().__init__()
        self._left = left
        self._right = right
        self._joiner = joiner
        self._keeps_left = kind in (JoinKind.LEFT, JoinKind.OUTER)
        self._keeps_right = kind in (JoinKind.RIGHT, JoinKind.OUTER)
        if self._keeps_left:
            left.send_old(at_any_cost=True)
        if self._keeps_right:
            right.send_old(at_any_cost=True)
        left.need_view()
        right.need_view()

    def send_old(self, *, at_any_cost: bool) -> bool:
        self._left.send_old(at_any_cost=True)
        self._right.send_old(at_any_cost=True)
        self.sends_old = True
        return True

    def need_view(self) -> None:
        """The views of both sides are there anyway."""

    def process(self, record: Record) -> None:
        raise AssertionError("a join takes records of its left or right side")

    def process_left(self, record: Record) -> None:
        self._process(record, self._right, self._keeps_left, self._keeps_right, is_left=True)

    def process_right(self, record: Record) -> None:
        self._process(record, self._left, self._keeps_right, self._keeps_left, is_left=False)

    def _process(
        self,
        record: Record,
        other_table: TableNode,
        keeps_own: bool,
        keeps_other: bool,
        *,
        is_left: bool,
    ) -> None:
        """`keeps_own`: own rows go on without a partner; `keeps_other`: the partner's do."""
        key, new, old = record.key, record.value, record.old_value
        if key is None:
            return
        other_row = other_table.get(store_key(key, record.window))
        if other_row is None:
            if not keeps_own or (new is None and old is None):
                return
            other = None
        else:
            other = other_row[0]
            record.timestamp_ms = max(record.timestamp_ms, other_row[1])
        alone = other is not None and keeps_other
        record.value = self._join(new, other, key, is_left) if new is not None or alone else None
        record.old_value = None
        if self.sends_old and (old is not None or alone):
            record.old_value = self._join(old, other, key, is_left)
        self.forward(record)

    def _join(self, own: Row | None, other: Row | None, key: Row, is_left: bool) -> Row:
        return self._joiner(own, other, key) if is_left else self._joiner(other, own, key)

    def get(self, key: StoreKey) -> tuple[Row, int] | None:
        left, right = self._left.get(key), self._right.get(key)
        if (left is None and not (self._keeps_right and right)) or (
            right is None and not (self._keeps_left and left)
        ):
            return None
        row = self._joiner(left and left[0], right and right[0], key)
        return row, max(left[1] if left else -1, right[1] if right else -1)
