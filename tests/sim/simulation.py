"""One run: a cluster and its clients from a seed, through its faults, to a verdict."""

import asyncio
import gc
import hashlib
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from barnabas.base.ids import TopicPartition
from barnabas.metadata.storage_format import FormatOptions, format_directories, random_cluster_id
from sim.checkers import check
from sim.clients import Client, ClientError
from sim.consumers import Consumer
from sim.faults import Nemesis
from sim.history import Anomaly, History
from sim.loop import PROCESS, SimLoop
from sim.machine import CLIENT_PORT, Machine
from sim.plan import Plan, draw_plan, node_properties
from sim.producers import Producer, ProducerOptions
from sim.wire import Wire

START_WITHIN_S = 60.0
FINISH_WITHIN_S = 120.0
READ_WITHIN_S = 60.0


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    plan: Plan
    anomalies: list[Anomaly]
    trace_hash: str
    virtual_s: float
    operations: int
    injected: Counter[str]
    fault_log: list[str]
    history: History = field(repr=False)
    callbacks: int = 0

    @property
    def is_good(self) -> bool:
        return not self.anomalies


def run(seed: int, node_count: int = 1, *, verbose: bool = False) -> Outcome:
    """Run one seed to its end."""
    return run_plan(draw_plan(seed, node_count), verbose=verbose)


def run_plan(plan: Plan, *, verbose: bool = False) -> Outcome:
    """Run one plan to its end."""
    simulation = Simulation(plan)
    is_collecting = gc.isenabled()
    gc.disable()  # dead nodes are kept until the end anyway
    try:
        with simulation.listening(verbose=verbose):
            simulation.loop.run_until_complete(simulation.main())
        return simulation.verdict()
    finally:
        simulation.loop.close()
        if is_collecting:
            gc.enable()


class Simulation:
    """The parts of one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.loop = SimLoop()
        self.history = History()
        self.wire = Wire(self.loop, Random(f"{plan.seed}/wire"))
        self.random = Random(f"{plan.seed}/run")
        self._trace = hashlib.blake2b(digest_size=16)
        self.wire.trace = self._record_delivery
        self.loop.on_exception = self._escaped
        self.machines = [
            Machine(
                node_id,
                node_properties(plan, node_id),
                self.wire,
                str(plan.seed),
                self.history,
                plan.skews_ms[node_id - 1],
            )
            for node_id in range(1, plan.node_count + 1)
        ]
        self.nemesis = Nemesis(self.machines, self.wire, Random(f"{plan.seed}/nemesis"))
        self._bootstrap = [(machine.name, CLIENT_PORT) for machine in self.machines]
        self.partitions = [
            TopicPartition(topic.name, index)
            for topic in plan.topics
            for index in range(topic.partitions)
        ]

    # The course of a run

    async def main(self) -> None:
        """Start, work under faults, mend, let it settle, read everything."""
        plan = self.plan
        self._format()
        for machine in self.machines:
            machine.start()
        admin = self._client("admin")
        try:
            for topic in plan.topics:
                await self._in(
                    admin,
                    admin.create_topic(
                        topic.name,
                        topic.partitions,
                        topic.replication_factor,
                        topic.configs,
                        within_s=START_WITHIN_S,
                    ),
                )
        except ClientError as error:
            self.history.saw("unavailable", str(error))
            return
        clients = [admin]
        working = []
        for index in range(plan.producers):
            client = self._client(f"producer{index}")
            clients.append(client)
            working.append(client.start(self._producer(client).run))
        for index in range(plan.consumers):
            client = self._client(f"consumer{index}")
            clients.append(client)
            consumer = Consumer(client, self.partitions, is_durable=self._is_durable(-1))
            working.append(client.start(consumer.run))
        self.nemesis.begin(plan.faults)
        await asyncio.sleep(plan.duration_s)
        self.nemesis.mend_all()
        for client in clients:
            client.is_stopping = True
        _, late = await asyncio.wait(working, timeout=FINISH_WITHIN_S)
        for task in working:
            if task in late:
                self.history.saw("unfinished", f"{task.get_name()} did not end")
            elif task.exception() is not None:
                raise RuntimeError("a simulated client failed") from task.exception()
        reader = self._client("reader")
        consumer = Consumer(
            reader, self.partitions, is_durable=self._is_durable(-1), restarts=False
        )
        await self._in(reader, consumer.run_final(READ_WITHIN_S))

    def _format(self) -> None:
        cluster_id = random_cluster_id(self.random)
        for machine in self.machines:
            machine.disk.make_dirs("/data")  # where somebody mounted the volume
            machine.disk.sync_dir("/")
            format_directories(
                machine.disk,
                machine.config,
                FormatOptions(cluster_id=cluster_id),
                random=self.random,
                now_ms=machine.clock.now_ms(),
            )

    def _client(self, name: str) -> Client:
        random = Random(f"{self.plan.seed}/{name}")
        return Client(name, self.wire, self._bootstrap, random, self.history)

    async def _in(self, client: Client, work) -> None:  # type: ignore[no-untyped-def]
        await self.loop.create_task(work, context=client.process.context)

    def _producer(self, client: Client) -> Producer:
        plan, random = self.plan, client.random
        acks = 1 if random.random() < plan.acks_one_share else -1
        is_idempotent = acks == -1 and random.random() < plan.idempotent_share
        options = ProducerOptions(
            acks=acks,
            is_idempotent=is_idempotent,
            in_flight_max=random.choice((1, 5)) if is_idempotent else 1,
            is_durable=self._is_durable(acks),
            pause_s=(0.0, random.choice((0.1, 0.5, 1.5))),
        )
        count = random.randint(1, len(self.partitions))
        return Producer(client, random.sample(self.partitions, count), options)

    def _is_durable(self, acks: int) -> bool:
        """Whether what is acknowledged must survive the faults of the plan.

        One replica is safe from everything if it forces each append to its disk, else from
        all but power loss.
        """
        kinds = {fault.kind for fault in self.plan.faults}
        return self.plan.flushes or "power-loss" not in kinds

    # Watching

    def _record_delivery(self, source: str, target: str, size: int, crc: int) -> None:
        self._trace.update(f"{self.loop.time():.9f} {source} {target} {size} {crc}\n".encode())

    def _escaped(self, message: str, error: BaseException | None) -> None:
        self.history.saw("escaped-exception", f"{self.loop.time():.3f} s {message}: {error!r}")

    @contextmanager
    def listening(self, *, verbose: bool) -> Iterator[None]:
        """Take what nodes log: their own faults count as anomalies."""
        logger = logging.getLogger("barnabas")
        level, propagate = logger.level, logger.propagate
        handler = _Telemetry(self, verbose=verbose)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if verbose else logging.ERROR)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate

    def verdict(self) -> Outcome:
        """What came of it."""
        for line in self.nemesis.log:
            self._trace.update(line.encode())
        for send in self.history.sends:
            self._trace.update(f"{send.values} {send.outcome} {send.base_offset}\n".encode())
        return Outcome(
            plan=self.plan,
            anomalies=check(self.history),
            trace_hash=self._trace.hexdigest(),
            virtual_s=self.loop.time(),
            operations=self.history.operation_count,
            injected=self.nemesis.injected,
            fault_log=self.nemesis.log,
            history=self.history,
            callbacks=self.loop.callback_count,
        )


class _Telemetry(logging.Handler):
    """Prints what is logged with virtual time, and notes faults that are our own."""

    def __init__(self, simulation: Simulation, *, verbose: bool) -> None:
        super().__init__()
        self._simulation = simulation
        self._verbose = verbose

    def emit(self, record: logging.LogRecord) -> None:
        where = f"{self._simulation.loop.time():.3f} s {PROCESS.get()}"
        if self._verbose:
            print(f"{where} {record.levelname} {record.name}: {record.getMessage()}")  # noqa: T201
        if record.exc_info and record.exc_info[1] is not None:
            self._simulation.history.saw(
                "own-fault", f"{where}: {record.getMessage()}: {record.exc_info[1]!r}"
            )
