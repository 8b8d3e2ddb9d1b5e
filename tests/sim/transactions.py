"""Producers with transactions under faults, and what must hold of what they wrote.

Several producers, some of which fight for one transactional id, write transactions to all
partitions, commit or abort them, are slow now and then, and begin again when they are fenced;
a consumer with `read_committed` follows. In the end a transaction is there as a whole or not at
all, once, as its producer was told; none is left open; and what the consumer was shown at any
time is what the markers in the log say.
"""

import asyncio
from dataclasses import dataclass, field, replace

from barnabas.base.ids import TopicPartition
from sim.audit import Auditor, fetch_once, sound_part, visible_records
from sim.clients import Client
from sim.machine import host_name
from sim.plan import Plan, TopicPlan
from sim.sim_history import Outcome
from sim.simulation import Simulation
from sim.transactional_client import TIMEOUT_MS, LostError, TransactionalClient


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction, and how it ended as far as its producer knows."""

    name: str
    is_commit: bool
    parts: dict[TopicPartition, int] = field(default_factory=dict)
    """The number of records that it wrote, by partition."""
    outcome: Outcome = Outcome.PENDING
    was_ended: bool = False
    """True once its end was requested: without an answer its outcome is unknown."""
    seen: set[str] = field(default_factory=set)
    """The transactions whose records it saw before its end was requested."""
    is_there: bool = False
    """True if the final read found it."""


class TransactionalProducer:
    """One producer that does one transaction after the other."""

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        partitions: list[TopicPartition],
        transactions: list[Transaction],
        *,
        is_alone: bool = False,
        ends_empty: bool = False,
    ) -> None:
        """Make a producer.

        `is_alone` says that no other takes the transactional id, `ends_empty` that it begins a
        transaction now and then only to abort it at once.
        """
        self._client = client
        self._producer = TransactionalClient(client, transactional_id)
        self._producer.is_alone = is_alone
        self._ends_empty = ends_empty and self._producer.has_version_2
        """Older clients send no EndTxn for an empty transaction."""
        self._partitions = partitions
        self._transactions = transactions
        self._number = 0

    async def look_around(self, transaction: Transaction) -> None:
        """Called between the writes of a transaction that is open. Here it sees nothing."""

    async def run(self) -> None:
        client = self._client
        while not client.is_stopping:
            try:
                if not self._producer.is_initialized:
                    await self._producer.initialize()
                await self._transaction()
                if self._ends_empty and client.random.random() < 0.5:
                    # While the markers of the transaction before are under way.
                    await self._producer.end(is_commit=False)
            except LostError:
                self._producer.abandon()
                await client.back_off()
            if client.random.random() < 0.4:  # else the next begins while markers are under way
                await client.pause(0, 0.3)

    async def _transaction(self) -> None:
        client = self._client
        self._number += 1
        transaction = Transaction(f"{client.name}/{self._number}", client.random.random() < 0.7)
        self._transactions.append(transaction)
        count = client.random.randint(1, len(self._partitions))
        try:
            for partition in client.random.sample(self._partitions, count):
                for _ in range(client.random.randint(1, 3)):
                    number = transaction.parts.get(partition, 0)
                    transaction.parts[partition] = number + 1
                    await self._producer.write(partition, [f"{transaction.name} {number}"])
                await self.look_around(transaction)
                if client.random.random() < 0.03:
                    await client.pause(1, 2 * TIMEOUT_MS / 1000)  # for longer than it may take
            transaction.was_ended = True
            await self._producer.end(is_commit=transaction.is_commit)
            transaction.outcome = Outcome.OK
        except LostError:
            if transaction.outcome is Outcome.PENDING:
                transaction.outcome = Outcome.UNKNOWN if transaction.was_ended else Outcome.FAILED
            raise


class CommittedReader:
    """Follows partitions with `read_committed`, and remembers what it was shown."""

    def __init__(
        self,
        client: Client,
        partitions: list[TopicPartition],
        transactions: list[Transaction],
    ) -> None:
        self._client = client
        self._transactions = transactions
        self.shown: dict[TopicPartition, list[tuple[int, str]]] = {each: [] for each in partitions}
        self.offsets = dict.fromkeys(partitions, 0)

    async def run(self) -> None:
        client = self._client
        while not client.is_stopping:
            for partition in self.offsets:
                if await self.read(partition, max_wait_ms=100) is None:
                    client.mistrust_metadata()
                    await client.back_off()
            await client.pause(0, 0.2)

    async def read(self, partition: TopicPartition, *, max_wait_ms: int = 0) -> set[str] | None:
        """Go on reading a partition; whose records were shown. None if it came to nothing."""
        client = self._client
        offset = self.offsets[partition]
        answer = await fetch_once(client, partition, offset, max_wait_ms=max_wait_ms)
        if answer is None:
            return None
        answer.records = sound_part(
            bytes(answer.records or b""),
            offset,
            is_distrusted=host_name(client.leaders[partition][0]) in client.history.damaged,
        )
        visible, self.offsets[partition] = visible_records(answer, offset)
        self.shown[partition] += visible
        names = {value.partition(" ")[0] for _, value in visible}
        for transaction in self._transactions:
            if transaction.name in names and not transaction.was_ended:
                client.history.saw(
                    "early-read",
                    f"{partition}: {client.name} was shown something of {transaction.name}, whose "
                    "end nobody had asked for",
                )
        return names

    def check(self, partition: TopicPartition, truth: list[tuple[int, str]]) -> None:
        """Compare with what the markers say in the end, as far as it read."""
        expected = [each for each in truth if each[0] < self.offsets[partition]]
        if self.shown[partition] != expected:
            shown = [each for each in self.shown[partition] if each not in expected]
            missed = [each for each in expected if each not in self.shown[partition]]
            self._client.history.saw(
                "aborted-read",
                f"{partition}: {self._client.name} was shown {shown[:5]}, not {missed[:5]}",
            )


class TransactionalSimulation(Simulation):
    """A run whose producers are transactional."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(with_transactions(plan))
        self.transactions: list[Transaction] = []
        self._readers: list[CommittedReader] = []

    def _start_clients(self) -> list["asyncio.Task[None]"]:
        working = []
        for index in range(max(self.plan.producers, 3)):
            client = self._client(f"producer{index}")
            # Two of them take one another's place again and again.
            is_alone = index >= 2 or self.plan.seed % 2 == 0
            name = f"transactional{index}" if is_alone else "contested"
            producer = TransactionalProducer(
                client,
                name,
                self.partitions,
                self.transactions,
                is_alone=is_alone,
                ends_empty=self.plan.seed % 3 == 0,
            )
            working.append(client.start(producer.run))
        client = self._client("committed-reader")
        reader = CommittedReader(client, self.partitions, self.transactions)
        self._readers.append(reader)
        working.append(client.start(reader.run))
        return working

    async def _audit(self) -> None:
        """Check that all transactions end by themselves, and read the result."""
        # Abandoned transactions are aborted after their timeout.
        await asyncio.sleep(3 * TIMEOUT_MS / 1000 + 5)
        await self._converge()
        client = self._client("auditor")
        await self._in(client, self._check_all(client))

    async def _check_all(self, client: Client) -> None:
        committed: dict[TopicPartition, list[str]] = {}
        auditor = Auditor(client)
        for partition in self.partitions:
            truth = await auditor.read(partition)
            for reader in self._readers:
                reader.check(partition, truth)
            committed[partition] = [value for _, value in truth]
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
        transaction.is_there = bool(found)
        if not found:
            if transaction.outcome is Outcome.OK and transaction.is_commit:
                saw("lost-transaction", f"{name} was committed, and is not there")
        elif found != whole:
            saw("torn-transaction", f"{name}: {found} of {whole}")
        elif transaction.outcome is Outcome.FAILED or not transaction.is_commit:
            saw("undead-transaction", f"{name} was not committed, and is there")

    @property
    def operation_count(self) -> int:
        return sum(sum(each.parts.values()) for each in self.transactions)


def transaction_properties(plan: Plan) -> dict[str, str]:
    """Return the properties of nodes for transactions in a run."""
    factor = min(3, len(plan.brokers))
    return {
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": str(min(2, factor)),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "min.insync.replicas": str(min(2, factor)),
    }


def with_transactions(plan: Plan) -> Plan:
    """The plan, with a topic for transactions whose data must all survive."""
    factor = min(3, len(plan.brokers))
    return replace(
        plan,
        properties={
            **plan.properties,
            **transaction_properties(plan),
            "log.flush.interval.messages": "1",
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
