"""Producers with transactions under faults, and what must hold of what they wrote.

Several producers, some of which fight for one transactional id, write transactions to all
partitions, commit or abort them, are slow now and then, and begin again when they are fenced.
In the end a transaction is there as a whole or not at all, once, as its producer was told; none
is left open; and what `read_committed` shows is what the markers in the log say.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.net.client import Peer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.batch import iterate_headers
from barnabas.protocol.records.control import EndTxn, decode_control
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from sim.clients import Client
from sim.convergence import wait_converged
from sim.plan import Plan, TopicPlan
from sim.sim_history import Outcome
from sim.simulation import CONVERGE_WITHIN_S, Simulation

TIMEOUT_MS = 4_000
END_WITHIN_S = 60.0
LOST = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}
"""The producer must begin again; all else may be tried again."""


class LostError(Exception):
    """The transaction cannot be gone on with."""


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction, and how it ended as far as its producer knows."""

    name: str
    is_commit: bool
    parts: dict[TopicPartition, int] = field(default_factory=dict)
    """How many records it wrote to which partitions."""
    outcome: Outcome = Outcome.PENDING
    was_ended: bool = False
    """Whether its end was asked for, so that nobody knows when no answer came."""


class TransactionalProducer:
    """One producer. With version 2 partitions are added by writing to them."""

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        partitions: list[TopicPartition],
        transactions: list[Transaction],
    ) -> None:
        self._client = client
        self._id = transactional_id
        self._partitions = partitions
        self._transactions = transactions
        self._has_version_2 = client.random.random() < 0.6
        self._producer = (-1, -1)
        self._sequences: Counter[TopicPartition] = Counter()
        self._coordinator: Peer | None = None
        self._number = 0

    async def run(self) -> None:
        client = self._client
        while not client.is_stopping:
            try:
                if self._producer[0] < 0:
                    await self._initialize()
                await self._transaction()
            except LostError:
                self._producer = (-1, -1)
                await client.back_off()
            await client.pause(0, 0.3)

    async def _initialize(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS
        )
        response = await self._ask_coordinator(request)
        self._producer = (response.producer_id, response.producer_epoch)
        self._sequences.clear()

    async def _transaction(self) -> None:
        client = self._client
        self._number += 1
        transaction = Transaction(f"{client.name}/{self._number}", client.random.random() < 0.7)
        self._transactions.append(transaction)
        count = client.random.randint(1, len(self._partitions))
        try:
            for partition in client.random.sample(self._partitions, count):
                for _ in range(client.random.randint(1, 3)):
                    await self._write(transaction, partition)
                if client.random.random() < 0.03:
                    await client.pause(1, 2 * TIMEOUT_MS / 1000)  # for longer than it may take
            await self._end(transaction)
        except LostError:
            if transaction.outcome is Outcome.PENDING:
                transaction.outcome = Outcome.UNKNOWN if transaction.was_ended else Outcome.FAILED
            raise

    async def _write(self, transaction: Transaction, partition: TopicPartition) -> None:
        if not self._has_version_2 and partition not in transaction.parts:
            await self._add(partition)
        number = transaction.parts.get(partition, 0)
        transaction.parts[partition] = number + 1
        batch = encode_batch(
            [
                Record(
                    timestamp=self._client.clock.now_ms(),
                    value=f"{transaction.name} {number}".encode(),
                )
            ],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequences[partition],
            is_transactional=True,
        )
        request = ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=2_000,
            topic_data=[
                TopicProduceData(
                    name=partition.topic,
                    partition_data=[PartitionProduceData(index=partition.partition, records=batch)],
                )
            ],
        )
        await self._produce(partition, request)
        self._sequences[partition] += 1

    async def _produce(self, partition: TopicPartition, request: ProduceRequest) -> None:
        client = self._client
        deadline_s = client.loop.time() + END_WITHIN_S
        while client.loop.time() < deadline_s:
            await client.refresh([partition.topic])
            peer = client.leader(partition)
            if peer is not None:
                try:
                    version = 12 if self._has_version_2 else 11
                    response = await peer.send(request, version=version)
                except OSError:
                    pass
                else:
                    answer = response.responses[0].partition_responses[0]
                    error = ErrorCode.of(answer.error_code)
                    if error in LOST:
                        raise LostError(error.name)
                    if not error:
                        return
            client.mistrust_metadata()
            await client.back_off()
        raise LostError("no answer")

    async def _add(self, partition: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.partition])
            ],
        )
        await self._ask_coordinator(request, version=3)

    async def _end(self, transaction: Transaction) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=transaction.is_commit,
        )
        transaction.was_ended = True
        response = await self._ask_coordinator(request, version=5 if self._has_version_2 else 4)
        transaction.outcome = Outcome.OK
        if self._has_version_2:
            self._producer = (response.producer_id, response.producer_epoch)
            self._sequences.clear()

    async def _ask_coordinator(self, request: Any, version: int | None = None) -> Any:
        """The answer without an error. Raises LostError."""
        client = self._client
        deadline_s = client.loop.time() + END_WITHIN_S
        while client.loop.time() < deadline_s:
            try:
                if self._coordinator is None:
                    self._coordinator = await self._find()
                if self._coordinator is not None:
                    response = await self._coordinator.send(request, version=version)
                    error = _error_of(response)
                    if not error:
                        return response
                    if error in LOST:
                        raise LostError(error.name)
                    if error is not ErrorCode.CONCURRENT_TRANSACTIONS:
                        self._coordinator = None
            except OSError:
                self._coordinator = None
            await client.back_off()
        raise LostError("no coordinator")

    async def _find(self) -> Peer | None:
        client = self._client
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[self._id])
        (found,) = (await client.ask_any(request)).coordinators
        if found.error_code:
            return None
        client.mistrust_metadata()
        await client.refresh([self._partitions[0].topic])
        return client.broker(found.node_id)


def _error_of(response: Any) -> ErrorCode:
    if hasattr(response, "results_by_topic_v3_and_below"):
        (topic,) = response.results_by_topic_v3_and_below
        return ErrorCode.of(topic.results_by_partition[0].partition_error_code)
    return ErrorCode.of(response.error_code)


class TransactionalSimulation(Simulation):
    """A run whose producers are transactional."""

    def __init__(self, plan: Plan) -> None:
        plan = with_transactions(plan)
        super().__init__(plan)
        self.transactions: list[Transaction] = []

    def _start_clients(self) -> list["asyncio.Task[None]"]:
        working = []
        for index in range(max(self.plan.producers, 3)):
            client = self._client(f"producer{index}")
            # Two of them take one another's place again and again.
            name = "contested" if index < 2 and self.plan.seed % 2 else f"transactional{index}"
            producer = TransactionalProducer(client, name, self.partitions, self.transactions)
            working.append(client.start(producer.run))
        return working

    async def main(self) -> None:
        await super().main()
        # What nobody went on with is aborted when its time is up.
        await asyncio.sleep(3 * TIMEOUT_MS / 1000 + 5)
        left = [machine for machine in self.machines if machine.is_wanted]
        await wait_converged(left, self.partitions, self.history, CONVERGE_WITHIN_S)
        auditor = self._client("auditor")
        await self._in(auditor, self._audit(auditor))

    async def _audit(self, client: Client) -> None:
        committed: dict[TopicPartition, list[str]] = {}
        for partition in self.partitions:
            committed[partition] = await self._read(client, partition)
        for transaction in self.transactions:
            self._check(transaction, committed)

    def _check(self, transaction: Transaction, committed: dict[TopicPartition, list[str]]) -> None:
        saw = self.history.saw
        name = transaction.name
        parts = {
            partition: [value for value in values if value.startswith(f"{name} ")]
            for partition, values in committed.items()
        }
        whole = {
            partition: [f"{name} {number}" for number in range(count)]
            for partition, count in transaction.parts.items()
        }
        found = {partition: values for partition, values in parts.items() if values}
        if not found:
            if transaction.outcome is Outcome.OK and transaction.is_commit:
                saw("lost-transaction", f"{name} was committed, and is not there")
        elif found != whole:
            saw("torn-transaction", f"{name}: {found} of {whole}")
        elif transaction.outcome is Outcome.FAILED or not transaction.is_commit:
            saw("undead-transaction", f"{name} was not committed, and is there")

    async def _read(self, client: Client, partition: TopicPartition) -> list[str]:
        """What the markers commit; what `read_committed` shows must be the same."""
        truth: list[str] = []
        shown: list[str] = []
        open_values: dict[int, list[str]] = {}
        offset = 0
        end = None
        aborted: list[Any] = []
        while end is None or offset < end:
            answer = await self._fetch(client, partition, offset)
            end = answer.high_watermark
            if answer.last_stable_offset != end:
                self.history.saw(
                    "open-transaction",
                    f"{partition}: {answer.last_stable_offset} is stable of {end}",
                )
                return truth
            aborted += answer.aborted_transactions or []
            data = answer.records or b""
            for position, header in iterate_headers(data, allow_partial_tail=True):
                if header.next_offset <= offset:
                    continue
                offset = header.next_offset
                for record in decode_records(data, position):
                    if header.is_control:
                        marker = decode_control(record)
                        assert isinstance(marker, EndTxn)
                        values = open_values.pop(header.producer_id, [])
                        if marker.is_commit:
                            truth += values
                        continue
                    value = bytes(record.value or b"").decode()
                    open_values.setdefault(header.producer_id, []).append(value)
        shown = await self._shown(client, partition, aborted)
        if sorted(shown) != sorted(truth):
            self.history.saw("aborted-read", f"{partition}: {shown} shown of {truth}")
        return truth

    async def _shown(
        self, client: Client, partition: TopicPartition, aborted: list[Any]
    ) -> list[str]:
        """What a consumer with `read_committed` hands to its user."""
        shown: list[str] = []
        offset = 0
        hidden: set[int] = set()
        starts = sorted({(one.first_offset, one.producer_id) for one in aborted})
        while True:
            answer = await self._fetch(client, partition, offset)
            before = offset
            data = answer.records or b""
            for position, header in iterate_headers(data, allow_partial_tail=True):
                if header.next_offset <= offset:
                    continue
                offset = header.next_offset
                while starts and starts[0][0] <= header.last_offset:
                    hidden.add(starts.pop(0)[1])
                for record in decode_records(data, position):
                    if header.is_control:
                        marker = decode_control(record)
                        assert isinstance(marker, EndTxn)
                        if not marker.is_commit:
                            hidden.discard(header.producer_id)
                    elif header.producer_id not in hidden:
                        shown.append(bytes(record.value or b"").decode())
            if offset == before:
                return shown

    async def _fetch(self, client: Client, partition: TopicPartition, offset: int) -> Any:
        while True:
            await client.refresh([partition.topic])
            peer = client.leader(partition)
            if peer is not None:
                request = FetchRequest(
                    isolation_level=1,
                    max_wait_ms=0,
                    max_bytes=1 << 20,
                    topics=[
                        FetchTopic(
                            topic_id=client.topic_ids[partition.topic],
                            partitions=[
                                FetchPartition(
                                    partition=partition.partition,
                                    fetch_offset=offset,
                                    partition_max_bytes=1 << 16,
                                )
                            ],
                        )
                    ],
                )
                try:
                    response = await peer.send(request)
                except OSError:
                    pass
                else:
                    if response.responses:
                        (answer,) = response.responses[0].partitions
                        if not answer.error_code:
                            return answer
            client.mistrust_metadata()
            await client.back_off()


def with_transactions(plan: Plan) -> Plan:
    """The plan, with a topic for transactions whose data must all survive."""
    factor = min(3, len(plan.brokers))
    return replace(
        plan,
        properties={
            **plan.properties,
            "transaction.state.log.num.partitions": "3",
            "transaction.state.log.replication.factor": str(factor),
            "transaction.state.log.min.isr": str(min(2, factor)),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            "log.flush.interval.messages": "1",
            "min.insync.replicas": str(min(2, factor)),
        },
        topics=[
            TopicPlan(
                "transactional",
                3,
                factor,
                {
                    "min.insync.replicas": str(min(2, factor)),
                    "flush.messages": "1",
                    "retention.ms": "-1",
                },
            )
        ],
        consumers=0,
        flushes=True,
    )
