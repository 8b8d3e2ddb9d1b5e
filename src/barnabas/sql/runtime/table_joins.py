"""Joins of two tables: a change on either side changes the joined row.

The joined row's timestamp is the later of the two rows'. Whether a tombstone goes on where no row
was, differs by kind and side, as in Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from hashlib import blake2b

from barnabas.sql.runtime.layout import Joiner
from barnabas.sql.runtime.node import Node, OpenStore, StoreKey, TableNode, nowhere, store_key
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.rows_encoding import decode_key, encode_key, pack
from barnabas.sql.runtime.stores import Store
from barnabas.sql.runtime.streams import with_value
from barnabas.sql.runtime.tables import StoredTable
from barnabas.sql.syntax.tree import JoinKind
from barnabas.sql.types import Value


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


# -- joins of a table to another by a foreign key (KIP-213)
#
# The left table asks: for each changed row it sends a subscription to where the right row of its
# foreign key lives. There it is kept, (foreign key, left key) -> hash of the left row, and answered
# with the right row; each later change of the right row is answered too. Answers go to where left
# rows are kept a second time. One whose hash is not that of the left row as it is by then is late,
# and is dropped: another answer follows.
#
#     left stage: SubscriptionSendNode ──(foreign key)──> right stage: SubscriptionNode
#          └──────(left key)──────> result stage: ResponseNode <──(left key)──┘
#
# Kafka Streams sends answers back to the left stage. Left rows are kept twice here instead, so that
# no stage reads what follows from its own output: Spark runs stages one after the other.


class Instruction(IntEnum):
    """Instructions about a subscription, by KIP-213's names."""

    DELETE_KEY_NO_PROPAGATE = 0
    DELETE_KEY_AND_PROPAGATE = 1
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


_DELETES = (Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE)


def row_hash(row: Row | None) -> bytes | None:
    """Return what tells one state of a left row from another."""
    return None if row is None else blake2b(pack(list(row)), digest_size=16).digest()


class SubscriptionSendNode(Node):
    """Sends what a change of a left row means for its subscription, keyed by foreign key.

    The value sent is (instruction, hash of the row, left key). Before that, the row itself goes to
    `forward_row`.
    """

    forward_row: Callable[[Record], None] = staticmethod(nowhere)

    def __init__(
        self, left: TableNode, foreign_key: Callable[[Row], Value], *, is_left_join: bool
    ) -> None:
        super().__init__()
        left.send_old(at_any_cost=True)
        self._foreign_key = foreign_key
        self._is_left_join = is_left_join

    def process(self, record: Record) -> None:
        old, new = record.old_value, record.value
        self.forward_row(with_value(record, new))
        old_key = None if old is None else self._foreign_key(old)
        new_key = None if new is None else self._foreign_key(new)
        if self._is_left_join:
            self._subscribe_left(record, old, new, old_key, new_key)
        else:
            self._subscribe_inner(record, old, new, old_key, new_key)

    def _subscribe_left(
        self, record: Record, old: Row | None, new: Row | None, old_key: Value, new_key: Value
    ) -> None:
        if old is None and new is None:
            return
        if old_key is not None and old_key != new_key:
            # The other subscription is answered in any case (KAFKA-16394).
            self._send(record, old_key, Instruction.DELETE_KEY_NO_PROPAGATE)
        self._send(record, new_key, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)

    def _subscribe_inner(
        self, record: Record, old: Row | None, new: Row | None, old_key: Value, new_key: Value
    ) -> None:
        if (old is not None and old_key is None) or (new is not None and new_key is None):
            return
        if old is None:
            if new is not None:
                self._send(record, new_key, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)
        elif new is None:
            self._send(record, old_key, Instruction.DELETE_KEY_AND_PROPAGATE)
        else:
            if old_key != new_key:
                self._send(record, old_key, Instruction.DELETE_KEY_NO_PROPAGATE)
            self._send(record, new_key, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)

    def _send(self, record: Record, foreign_key: Value, instruction: Instruction) -> None:
        self.forward(
            Record(
                None if foreign_key is None else [foreign_key],
                [int(instruction), row_hash(record.value), record.key],
                record.timestamp_ms,
                None,
                record.headers,
                record.partition,
                record.offset,
            )
        )


class SubscriptionNode(Node):
    """Keeps the subscriptions to right rows and answers them.

    The value of an answer is (hash of the left row, right row).
    """

    def __init__(self, name: str, right: TableNode) -> None:
        super().__init__(name)
        right.send_old(at_any_cost=True)
        right.need_view()
        self._right = right
        self._store: Store | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.name,)

    def bind(self, open_store: OpenStore) -> None:
        super().bind(open_store)
        self._store = open_store(self.name)

    def process(self, record: Record) -> None:
        """Take a subscription."""
        assert self._store is not None
        assert record.value is not None
        instruction, hashed, left_key = record.value
        right_row = None
        if record.key is None:
            if instruction != Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE:
                return
        else:
            place = (*record.key, encode_key(left_key))
            self._store.put(place, None if instruction in _DELETES else [hashed])
            right_row = self._right.get(tuple(record.key))
        if instruction == Instruction.DELETE_KEY_NO_PROPAGATE or (
            instruction == Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE and right_row is None
        ):
            return
        timestamp_ms = max(record.timestamp_ms, right_row[1]) if right_row else record.timestamp_ms
        row = right_row[0] if right_row and instruction not in _DELETES else None
        self._answer(record, left_key, hashed, row, timestamp_ms)

    def process_right(self, record: Record) -> None:
        """Take a change of the right table."""
        assert self._store is not None
        if record.key is None:
            return
        low = (*record.key, b"")
        high = (*record.key, b"\xff")
        for place, (hashed,) in self._store.range(low, high):
            left_key = list(decode_key(place[-1]))
            self._answer(record, left_key, hashed, record.value, record.timestamp_ms)

    def _answer(
        self, record: Record, left_key: Row, hashed: bytes | None, row: Row | None, time_ms: int
    ) -> None:
        self.forward(
            Record(
                left_key,
                [hashed, row],
                time_ms,
                None,
                record.headers,
                record.partition,
                record.offset,
            )
        )


class ResponseNode(StoredTable):
    """Joins answers to left rows. The result is a table; it has a store if somebody needs one."""

    def __init__(self, name: str, left: TableNode, joiner: Joiner, *, is_left_join: bool) -> None:
        super().__init__(name, is_stored=False)
        left.need_view()
        self._left = left
        self._joiner = joiner
        self._is_left_join = is_left_join

    def send_old(self, *, at_any_cost: bool) -> bool:
        if not at_any_cost and not self.is_stored:
            return False
        self.is_stored = self.sends_old = True
        return True

    def process(self, record: Record) -> None:
        assert record.key is not None
        assert record.value is not None
        hashed, right = record.value
        left_row = self._left.get(tuple(record.key))
        left = left_row[0] if left_row else None
        if row_hash(left) != hashed:
            return
        if right is None and (left is None or not self._is_left_join):
            record.value = None
        else:
            record.value = self._joiner(left, right, record.key)
        self.keep(record)
        self.forward(record)
