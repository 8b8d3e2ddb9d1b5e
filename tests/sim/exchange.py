"""Transactions that read what others write, and write what others read.

Each producer follows all partitions with `read_committed`, and keeps reading while its own
transaction is open. Then no transaction may have seen, directly or through others, a record of one
that in turn saw its own: that is G1c, circular information flow (Adya, "Weak Consistency", 1999),
for which Jepsen's Kafka analyses look too. Only reads count: the order of writes is free, as in
Kafka, whose transactions are interleaved in a log.
"""

import asyncio
from graphlib import CycleError, TopologicalSorter

from barnabas.base.ids import TopicPartition
from sim.clients import Client
from sim.sim_history import Anomaly
from sim.transactions import (
    CommittedReader,
    Transaction,
    TransactionalProducer,
    TransactionalSimulation,
)


class Exchanger(TransactionalProducer):
    """Reads on in one partition after each that it has written to."""

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        partitions: list[TopicPartition],
        transactions: list[Transaction],
    ) -> None:
        super().__init__(client, transactional_id, partitions, transactions)
        self.reader = CommittedReader(client, partitions, transactions)

    async def look_around(self, transaction: Transaction) -> None:
        partition = self._client.random.choice(self._partitions)
        transaction.seen |= await self.reader.read(partition) or set()


class ExchangeSimulation(TransactionalSimulation):
    """A run in which every transaction may depend on every other."""

    def _start_clients(self) -> list["asyncio.Task[None]"]:
        working = []
        for index in range(max(self.plan.producers, 3)):
            client = self._client(f"exchanger{index}")
            exchanger = Exchanger(client, f"exchanging{index}", self.partitions, self.transactions)
            self._readers.append(exchanger.reader)
            working.append(client.start(exchanger.run))
        return working

    async def _check_all(self, client: Client) -> None:
        await super()._check_all(client)
        seen = {one.name: one.seen for one in self.transactions if one.is_there}
        self.history.observed += circular_reads(seen)


def circular_reads(seen: dict[str, set[str]]) -> list[Anomaly]:
    """Find G1c: a circle of transactions in which each saw a record of the previous one.

    `seen` has, by committed transaction, those whose records it saw while it was open.
    Transactions that were not committed, and a transaction's own records, make no circle.
    """
    graph = {name: {one for one in others if one in seen} - {name} for name, others in seen.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [Anomaly("G1c", f"each saw something of the next: {', '.join(error.args[1])}")]
    return []
