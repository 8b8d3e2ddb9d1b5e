"""Transactions as their coordinators see them: asked about, committed and aborted from outside.

Whoever knows a transaction's id, producer id and epoch may end it, in whatever process it was
begun. Coordinators move and load, and transactions take a while to end: all of that is tried
again, until the time that a call has is over.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas.base.backoff import ExponentialBackoff
from barnabas.kafka.wire import Access, Brokers, Connection, WireError
from barnabas.protocol.apis import (
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.spark.datasource.protocol import Ids, Prepared

GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
"""Kinds of coordinators (FindCoordinator's key types)."""
_END_TXN_VERSION: Final = 4
"""The epoch stays as it is (KIP-890 raises it from version 5 on), so that to commit again what is
committed succeeds. Nothing that a task has sent is on its way when its transaction ends."""
_BACKOFF_FIRST_MS: Final = 20
_BACKOFF_MAX_MS: Final = 1_000
_COMMITTED_STATES: Final = ("PrepareCommit", "CompleteCommit")
_OPEN_STATE: Final = "Ongoing"
_ENDED_OTHERWISE: Final = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)

T = TypeVar("T")


class ControlError(Exception):
    """The coordinators refuse, or did not answer in time; nothing is known about the outcome."""


@dataclass(slots=True, frozen=True)
class Seen:
    """What a coordinator knows of a transactional id."""

    state: str
    producer_id: int
    producer_epoch: int
    started_ms: int = -1
    """When the open transaction began, by the coordinator's clock."""

    def is_by(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether nobody has taken the id since."""
        return (self.producer_id, self.producer_epoch) == (producer_id, producer_epoch)

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open and may still be committed."""
        return self.state == _OPEN_STATE

    @property
    def is_committed(self) -> bool:
        """Whether the last transaction is committed, for good."""
        return self.state in _COMMITTED_STATES


class TransactionControl:
    """Asks the coordinators of one cluster; each call has `patience_seconds`."""

    def __init__(
        self, access: Access, patience_seconds: float = 60.0, brokers: Brokers | None = None
    ) -> None:
        self._brokers = brokers or Brokers(access)
        self._patience_seconds = patience_seconds
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}
        self._backoff = ExponentialBackoff(_BACKOFF_FIRST_MS, _BACKOFF_MAX_MS, random.Random())

    def describe(self, transactional_id: str) -> Seen | None:
        """Return what is known of an id, None for nothing."""
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        def ask(connection: Connection) -> tuple[int, Seen | None]:
            (state,) = connection.call(DESCRIBE_TRANSACTIONS, request).transaction_states
            if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return ErrorCode.NONE, None
            seen = Seen(
                state.transaction_state,
                state.producer_id,
                state.producer_epoch,
                state.transaction_start_time_ms,
            )
            return state.error_code, seen

        error, seen = self.ask_coordinator(transactional_id, ask)
        _raise(error, f"cannot ask about {transactional_id}")
        return seen

    def lost(self, transactions: Iterable[Prepared]) -> Ids:
        """Return the ids of those that are no longer open."""
        gone = set()
        for one in transactions:
            seen = self.describe(one.transactional_id)
            is_ours = seen is not None and seen.is_by(one.producer_id, one.producer_epoch)
            if seen is None or not (is_ours and seen.is_open):
                gone.add(one.transactional_id)
        return frozenset(gone)

    def commit(self, one: Prepared) -> bool:
        """Commit a transaction if it is not yet; False if it is aborted. Raises ControlError."""
        request = EndTxnRequest(
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            committed=True,
        )

        def ask(connection: Connection) -> tuple[int, None]:
            return connection.call(END_TXN, request, _END_TXN_VERSION).error_code, None

        error, _ = self.ask_coordinator(one.transactional_id, ask)
        if error == ErrorCode.NONE:
            return True
        if error not in _ENDED_OTHERWISE:
            _raise(error, f"cannot commit {one.transactional_id}")
        seen = self.describe(one.transactional_id)
        if seen is None:
            raise ControlError(
                f"the brokers have forgotten {one.transactional_id} "
                "(transactional.id.expiration.ms): whether it was committed is not known"
            )
        return seen.is_committed

    def abort(self, transactional_id: str) -> None:
        """Abort what is open under an id, and fence whoever has begun it. Raises ControlError."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=10_000
        )

        def ask(connection: Connection) -> tuple[int, None]:
            return connection.call(INIT_PRODUCER_ID, request).error_code, None

        error, _ = self.ask_coordinator(transactional_id, ask)
        _raise(error, f"cannot abort {transactional_id}")

    def open_ids(self, prefix: str) -> list[str]:
        """Return the ids with this prefix that have an open transaction, of brokers that answer."""
        request = ListTransactionsRequest(state_filters=[_OPEN_STATE])
        found = []
        for host, port in self._patiently(lambda: (ErrorCode.NONE, self._brokers.addresses()))[1]:
            try:
                answer = self._brokers.at(host, port).call(LIST_TRANSACTIONS, request)
            except WireError:
                self._forget()
                continue
            found += [one.transactional_id for one in answer.transaction_states]
        return [one for one in found if one.startswith(prefix)]

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()

    def ask_coordinator(
        self,
        name: str,
        ask: Callable[[Connection], tuple[int, T]],
        key_type: int = TRANSACTION_KEY,
        patience_seconds: float | None = None,
    ) -> tuple[int, T]:
        """Ask the coordinator of a transactional id, or of a group, until its answer is final.

        Returns what `ask` does, an error code first. Raises ControlError.
        """
        return self._patiently(lambda: ask(self._coordinator(name, key_type)), patience_seconds)

    def ask_any(
        self, ask: Callable[[Connection], tuple[int, T]], patience_seconds: float
    ) -> tuple[int, T]:
        """Ask any broker likewise."""
        return self._patiently(lambda: ask(self._brokers.any()), patience_seconds)

    def _patiently(
        self, ask: Callable[[], tuple[int, T]], patience_seconds: float | None = None
    ) -> tuple[int, T]:
        """Ask until the answer is final. Raises ControlError where none came in time."""
        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        deadline = time.monotonic() + patience
        failures = 0
        while True:
            try:
                error, answer = ask()
                if not ErrorCode.of(error).retriable:
                    return error, answer
                problem = ErrorCode.of(error).message
                self._coordinators.clear()
            except WireError as broken:
                problem = str(broken)
                self._forget()
            if time.monotonic() > deadline:
                raise ControlError(f"gave up after {patience:g} s: {problem}")
            time.sleep(self._backoff.after(failures) / 1000)
            failures += 1

    def _coordinator(self, name: str, key_type: int) -> Connection:
        place = key_type, name
        if place not in self._coordinators:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
            (found,) = self._brokers.any().call(FIND_COORDINATOR, request).coordinators
            if found.error_code != ErrorCode.NONE:
                error = ErrorCode.of(found.error_code)
                if error.retriable:
                    raise WireError(error.message)
                _raise(error, f"{name} has no coordinator")
            self._coordinators[place] = (found.host, found.port)
        return self._brokers.at(*self._coordinators[place])

    def _forget(self) -> None:
        self._brokers.close()
        self._coordinators.clear()


def _raise(error: int, what: str) -> None:
    if error != ErrorCode.NONE:
        code = ErrorCode.of(error)
        raise ControlError(f"{what}: {code.name}, {code.message}")
