"""One run: a cluster and its clients from a seed, through its faults, to a verdict."""

import asyncio
import gc
import hashlib
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from barnabas.base.ids import TopicPartition, Uuid, uuid_to_text
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.storage_format import (
    FormatOptions,
    format_directories,
    random_cluster_id,
)
from sim.checkers import check
from sim.clients import Client, ClientError
from sim.consumers import Consumer
from sim.convergence import wait_converged
from sim.faults import Nemesis
from sim.invariants import SAMPLE_EVERY_S, Watch
from sim.loop import PROCESS, LivelockError, SimLoop
from sim.machine import CLIENT_PORT, CONTROLLER_PORT, Machine
from sim.plan import Plan, node_properties
from sim.producers import Producer, ProducerOptions
from sim.sim_history import Anomaly, History
from sim.wire import Wire

T = TypeVar("T")

START_WITHIN_S = 60.0
FINISH_WITHIN_S = 120.0
CONVERGE_WITHIN_S = 120.0
READ_WITHIN_S = 60.0


@dataclass(slots=True)
class Outcome:
    """The outcome of a run."""

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

    def __str__(self) -> str:
        lines = [str(self.plan), *(f"    {line}" for line in self.fault_log)]
        lines.append(f"seed {self.plan.seed}: {len(self.anomalies)} anomalies")
        lines += [f"    {anomaly}" for anomaly in self.anomalies[:12]]
        return "\n".join(lines)


def run_simulation(simulation: "Simulation", *, verbose: bool = False) -> Outcome:
    """Run a simulation to its end."""
    is_collecting = gc.isenabled()
    gc.disable()  # dead nodes are kept until the end anyway
    try:
        with simulation.listening(verbose=verbose), _tails_of(simulation.plan.tail_bytes_max):
            try:
                simulation.loop.run_until_complete(simulation.main())
            except LivelockError as error:
                simulation.history.saw("livelock", str(error))
            outcome = simulation.verdict()
            simulation.is_over = True
            simulation.loop.close()
        return outcome
    finally:
        if is_collecting:
            gc.enable()


@contextmanager
def _tails_of(size_bytes: int) -> Iterator[None]:
    """Let nodes keep at most so much of their logs' ends in memory; no key says it."""
    defaults: Any = LogManager.__init__.__kwdefaults__
    before = defaults["tail_bytes_max"]
    defaults["tail_bytes_max"] = size_bytes
    try:
        yield
    finally:
        defaults["tail_bytes_max"] = before


class Simulation:
    """The parts of one run."""

    scram: Sequence[str] = ()
    """Users whose credentials are there from the beginning, as `storage format` takes them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.loop = SimLoop()
        self.history = History()
        self.is_over = False
        """True once the run is over: what nodes report afterwards does not count."""
        self.wire = Wire(self.loop, Random(f"{plan.seed}/wire"))
        self.wire.default_delay_ms = plan.link_delay_ms
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
                plan.skews_ms[node_id],
            )
            for node_id in plan.roles
        ]
        self.nemesis = Nemesis(self.machines, self.wire, plan, Random(f"{plan.seed}/nemesis"))
        self.watch = Watch(self.machines, self.history, is_durable=plan.is_durable)
        self.nemesis.damaged = self.history.damaged = self.watch.distrusted
        self._bootstrap = [
            (machine.name, CLIENT_PORT)
            for machine in self.machines
            if "broker" in plan.roles[machine.node_id]
        ]
        self._clients: list[Client] = []
        self.partitions = [
            TopicPartition(topic.name, index)
            for topic in plan.topics
            for index in range(topic.partitions)
        ]

    # The course of a run

    async def main(self) -> None:
        """Start, work under faults, repair, let it settle, read everything."""
        self._format()
        for machine in self.machines:
            machine.start()
        self._sample()
        if not await self._create_topics():
            return
        working = self._start_clients()
        self.nemesis.begin(self.plan.faults)
        await asyncio.sleep(self.plan.duration_s)
        self.nemesis.mend_all()
        await self._finish(working)
        self._retire_damaged()
        await self._converge()
        self.watch.look_at_all_again()
        self.watch.sample()
        await self._audit()

    def _retire_damaged(self) -> None:
        """Somebody gives those whose files were damaged a new disk, some time."""
        for machine in self.machines:
            if machine.name in self.watch.distrusted:
                machine.is_wanted = False
                machine.kill()

    async def _converge(self) -> None:
        """See the cluster become whole again by itself."""
        left = [machine for machine in self.machines if machine.is_wanted]
        await wait_converged(left, self.partitions, self.history, CONVERGE_WITHIN_S)

    async def _audit(self) -> None:
        """Look at what there is in the end: everything is read once more."""
        reader = self._client("reader")
        consumer = Consumer(
            reader, self.partitions, is_durable=self.plan.is_durable, restarts=False
        )
        await self._in(reader, consumer.run_final(READ_WITHIN_S))

    def _format(self) -> None:
        plan = self.plan
        cluster_id = self.nemesis.cluster_id = random_cluster_id(self.random)
        voters = None
        if plan.is_dynamic:
            voters = ",".join(
                f"{machine.node_id}@{machine.name}:{CONTROLLER_PORT}:"
                f"{uuid_to_text(Uuid(self.random.randbytes(16)))}"
                for machine in self.machines
                if machine.node_id in plan.voters
            )
        for machine in self.machines:
            machine.disk.make_dirs("/data")  # where somebody mounted the volume
            machine.disk.sync_dir("/")
            format_directories(
                machine.disk,
                machine.config,
                FormatOptions(cluster_id=cluster_id, initial_controllers=voters, scram=self.scram),
                random=self.random,
                now_ms=machine.clock.now_ms(),
            )

    def _sample(self) -> None:
        self.watch.sample()
        self.loop.call_later(SAMPLE_EVERY_S, self._sample)

    async def _create_topics(self) -> bool:
        admin = self._client("admin")
        try:
            for topic in self.plan.topics:
                work = admin.create_topic(
                    topic.name,
                    topic.partitions,
                    topic.replication_factor,
                    topic.configs,
                    within_s=START_WITHIN_S,
                )
                await self._in(admin, work)
        except ClientError as error:
            self.history.saw("unavailable", str(error))
            return False
        return True

    def _start_clients(self) -> list["asyncio.Task[None]"]:
        working = []
        for index in range(self.plan.producers):
            client = self._client(f"producer{index}")
            working.append(client.start(self._producer(client).run))
        for index in range(self.plan.consumers):
            client = self._client(f"consumer{index}")
            consumer = Consumer(client, self.partitions, is_durable=self.plan.is_durable)
            working.append(client.start(consumer.run))
        return working

    async def _finish(self, working: list["asyncio.Task[None]"]) -> None:
        """Let the clients end what they are about."""
        for client in self._clients:
            client.is_stopping = True
        _, late = await asyncio.wait(working, timeout=FINISH_WITHIN_S)
        for task in working:
            if task in late:
                self.history.saw("unfinished", f"{task.get_name()} did not end")
            elif task.exception() is not None:
                raise RuntimeError("a simulated client failed") from task.exception()

    def _client(self, name: str) -> Client:
        random = Random(f"{self.plan.seed}/{name}")
        client = Client(name, self.wire, self._bootstrap, random, self.history)
        self._clients.append(client)
        return client

    async def _in(self, client: Client, work: Coroutine[Any, Any, T]) -> T:
        return await self.loop.create_task(work, context=client.process.context)

    def _producer(self, client: Client) -> Producer:
        plan, random = self.plan, client.random
        acks = 1 if random.random() < plan.acks_one_share else -1
        is_idempotent = acks == -1 and random.random() < plan.idempotent_share
        options = ProducerOptions(
            acks=acks,
            is_idempotent=is_idempotent,
            in_flight_max=random.choice((1, 5)) if is_idempotent else 1,
            is_durable=plan.is_durable and (acks == -1 or len(plan.brokers) == 1),
            pause_s=(0.0, plan.pause_max_s),
        )
        count = random.randint(1, len(self.partitions))
        return Producer(client, random.sample(self.partitions, count), options)

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

    @property
    def operation_count(self) -> int:
        """Number of operations that are checked."""
        return self.history.operation_count

    def verdict(self) -> Outcome:
        """Return the outcome of the run."""
        for line in self.nemesis.log:
            self._trace.update(line.encode())
        for send in self.history.sends:
            self._trace.update(f"{send.values} {send.outcome} {send.base_offset}\n".encode())
        return Outcome(
            plan=self.plan,
            anomalies=check(self.history),
            trace_hash=self._trace.hexdigest(),
            virtual_s=self.loop.time(),
            operations=self.operation_count,
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
        if self._simulation.is_over:
            return
        where = f"{self._simulation.loop.time():.3f} s {PROCESS.get()}"
        if self._verbose:
            print(f"{where} {record.levelname} {record.name}: {record.getMessage()}")
        error = record.exc_info[1] if record.exc_info else None
        if error is None or (isinstance(error, OSError | LogDirFailure) and self._has_excuse()):
            return
        self._simulation.history.saw("own-fault", f"{where}: {record.getMessage()}: {error!r}")

    def _has_excuse(self) -> bool:
        """Return whether the disk of the machine whose node speaks is made to fail."""
        process = PROCESS.get()
        return any(
            machine.process is process and machine.excuses for machine in self._simulation.machines
        )
