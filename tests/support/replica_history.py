"""Random histories of a replicated partition, with checks that no acknowledged record is lost.

Producers write to any broker that believes it leads. Brokers are killed, lose power, are cut off
from each other or from the controller, are believed to be dead, and come back. Only a broker whose
data others have loses power: one at a time, while all are in sync. Until all are in sync again none
of the others crashes (the controller would believe that it lost records too, KIP-966) or is
believed to be dead. So no acknowledged record may ever be lost.
"""

import asyncio
from collections.abc import Callable
from random import Random

from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from support.logs import make_batch
from support.replica_world import Broker, ReplicaWorld

REPLICAS = (1, 2, 3)
SETTLE_S = 120.0


class BrokenPromiseError(AssertionError):
    """A guarantee of replication was broken."""


class ReplicaHistory:
    """One history, drawn from a seed. `run` raises BrokenPromiseError."""

    def __init__(self, seed: int, *, steps: int = 100, partitions: int = 2) -> None:
        self.random = Random(seed)
        self.steps = steps
        self.partitions = range(partitions)
        self.min_isr = self.random.choice(("1", "2"))
        self.world = ReplicaWorld(
            len(REPLICAS),
            seed=seed,
            replica_lag_time_max_ms=self.random.choice(("500", "2000")),
            # A small one makes catching up take many fetches.
            replica_fetch_max_bytes=self.random.choice(("1", "200", "1048576")),
        )
        self.world.wire.default_delay_ms = self.random.choice(((0.3, 0.7), (5.0, 5.0), (1.0, 60.0)))
        self.world.controller_delay_s = self.random.choice((0.003, 0.05, 0.3))
        self.acknowledged: dict[tuple[int, int], str] = {}
        """(partition, offset) → value acknowledged to a producer, or readable by a consumer."""
        self.sent = 0
        self.unsafe: Broker | None = None
        """The broker that lost power and is perhaps not in sync again."""
        self.unsafe_epoch = -1
        self.is_over = False
        self.watermarks: dict[tuple[object, int], int] = {}

    def run(self) -> None:
        """Do it all, and look at the logs at the end."""
        self.world.run(self._history())

    async def _history(self) -> None:
        world = self.world
        await world.start()
        assignments = []
        for _ in self.partitions:
            replicas = list(REPLICAS)
            self.random.shuffle(replicas)
            assignments.append(replicas)
        world.create_topic(*assignments, min_insync_replicas=self.min_isr)
        for index in self.partitions:
            await world.leads(assignments[index][0], index)
        actions: list[tuple[int, Callable[[], None]]] = [
            (30, self._produce),
            (3, self._kill),
            (self.random.choice((1, 10)), self._kill_leader),
            (2, self._cut_power),
            (self.random.choice((8, 20)), self._restart),
            (4, self._cut_link),
            (3, self._heal),
            (3, self._cut_off),
            (5, self._reconnect),
            (3, self._suspect),
            (6, self._trust),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(self.steps):
            for action in self.random.choices(actions, weights, k=self.random.randint(1, 3)):
                action[1]()
            await asyncio.sleep(self.random.choice((0.001, 0.01, 0.1, 1.0)) * self.random.random())
            self._check_now()
        await self._settle()
        self._check_logs()

    # -- what happens

    def _produce(self) -> None:
        broker = self.world.brokers[self.random.choice(REPLICAS)]
        index = self.random.choice(self.partitions)
        if not broker.is_serving:
            return
        partition = broker.replicas.find("t", index)
        if (
            not isinstance(partition, Partition)
            or not partition.is_leader
            or partition.is_under_min_isr
        ):
            return
        values = []
        for _ in range(self.random.randint(1, 3)):
            self.sent += 1
            values.append(f"v{self.sent}")
        assert broker.process is not None
        result = broker.process.context.run(
            partition.append, make_batch(*values), broker.clock.now_ms()
        )
        assert not result.error, result.error
        first_offset = result.first_offset

        def told(error: ErrorCode) -> None:
            if error:
                return
            for offset, value in enumerate(values, first_offset):
                known = self.acknowledged.setdefault((index, offset), value)
                if known != value:
                    self.world.failures.append(f"{known} and {value} have offset {offset}")

        broker.process.context.run(partition.when_committed, result.last_offset + 1, told)

    def _all_in_sync(self) -> bool:
        return all(
            len(self.world.placed(index).isr) == len(REPLICAS) for index in self.partitions
        ) and all(broker.is_serving for broker in self.world.brokers.values())

    def _may_lose(self, broker: Broker) -> bool:
        """Return whether the controller may believe that a broker lost records or is behind."""
        if (
            self.unsafe is not None
            and self.unsafe.epoch != self.unsafe_epoch
            and self._all_in_sync()
        ):
            self.unsafe = None
        return self.unsafe in (None, broker)

    def _kill(self) -> None:
        broker = self._pick(lambda broker: broker.is_serving)
        if broker is not None and self._may_lose(broker):
            broker.kill()
            self._suspect_soon(broker)

    def _kill_leader(self) -> None:
        """A leader dies while its followers are about to hear of what it wrote."""
        index = self.random.choice(self.partitions)
        broker = self.world.leader(index)
        if broker is not None and self._may_lose(broker):
            for _ in range(self.random.randint(0, 4)):
                self._produce()
            delay_s = self.random.choice((0.0, 0.002, 0.01, 0.05, 0.2)) * self.random.random()
            process = broker.process

            def kill() -> None:
                if broker.process is process and not self.is_over and self._may_lose(broker):
                    broker.kill()
                    self._suspect_soon(broker, self.random.choice((0.0, 0.01, 0.1)))

            self.world.loop.call_later(delay_s, kill)

    def _cut_power(self) -> None:
        if not self._all_in_sync() or (
            self.unsafe is not None and self.unsafe.epoch == self.unsafe_epoch
        ):
            return
        broker = self._pick(lambda broker: broker.is_serving)
        assert broker is not None
        self.unsafe = broker
        self.unsafe_epoch = broker.epoch
        broker.kill(power_cut=True)
        self._suspect_soon(broker)

    def _suspect_soon(self, broker: Broker, within_s: float = 0.5) -> None:
        """The controller notices a death after a while."""
        incarnation = broker.epoch

        def notice() -> None:
            known = self.world.image.brokers[broker.node_id]
            if not broker.is_serving and known.epoch == incarnation:
                self.world.heartbeat(broker, fence=True)

        self.world.loop.call_later(self.random.random() * within_s, notice)

    def _restart(self) -> None:
        broker = self._pick(lambda broker: broker.process is None)
        if broker is not None:
            broker.start()

    def _cut_link(self) -> None:
        one, other = self.random.sample(REPLICAS, 2)
        self.world.wire.cut(f"broker{one}", f"broker{other}")

    def _heal(self) -> None:
        self.world.wire.heal()

    def _cut_off(self) -> None:
        broker = self._pick(lambda broker: broker.is_serving)
        if broker is not None:
            broker.is_deaf = True
            if self.random.random() < 0.7 and self._may_lose(broker):
                self.world.heartbeat(broker, fence=True)

    def _reconnect(self) -> None:
        broker = self._pick(lambda broker: broker.is_deaf)
        if broker is not None:
            self._hear_again(broker)

    def _hear_again(self, broker: Broker) -> None:
        broker.is_deaf = False
        assert broker.process is not None
        broker.process.context.run(broker.catch_up)

    def _suspect(self) -> None:
        broker = self._pick(lambda broker: broker.is_serving)
        if broker is not None and self._may_lose(broker):
            self.world.heartbeat(broker, fence=True)

    def _trust(self) -> None:
        broker = self._pick(
            lambda broker: (
                broker.is_serving
                and not broker.is_deaf
                and self.world.image.brokers[broker.node_id].fenced
            )
        )
        if broker is not None:
            self.world.heartbeat(broker)

    def _pick(self, is_meant: Callable[[Broker], bool]) -> Broker | None:
        meant = [broker for broker in self.world.brokers.values() if is_meant(broker)]
        return self.random.choice(meant) if meant else None

    async def _settle(self) -> None:
        """Let everything work again, and wait until all replicas are in sync."""
        world = self.world
        self.is_over = True
        world.wire.heal()
        for broker in world.brokers.values():
            if broker.process is None:
                await broker.start()
            elif broker.is_deaf:
                self._hear_again(broker)

        def is_settled() -> bool:
            for broker in world.brokers.values():
                if not broker.is_serving:
                    return False
                if world.image.brokers[broker.node_id].fenced:
                    world.heartbeat(broker)
            for index in self.partitions:
                placed = world.placed(index)
                if set(placed.isr) != set(REPLICAS) or world.leader(index) is None:
                    return False
                ends = set()
                for broker in world.brokers.values():
                    partition = broker.partition(index)
                    ends |= {partition.log.log_end_offset, partition.high_watermark}
                if len(ends) != 1:
                    return False
            return True

        try:
            await world.until(is_settled, SETTLE_S)
        except AssertionError as error:
            raise BrokenPromiseError("the replicas do not come together") from error

    # -- what must hold

    def _check_now(self) -> None:
        """High watermarks do not go back, and below them replicas agree with what was told."""
        for broker in self.world.brokers.values():
            if not broker.is_serving:
                continue
            for index in self.partitions:
                partition = broker.replicas.find("t", index)
                if not isinstance(partition, Partition):
                    continue
                key = (broker.process, index)
                high_watermark = partition.high_watermark
                if high_watermark < self.watermarks.get(key, 0):
                    raise BrokenPromiseError(f"{broker}: the high watermark went back")
                if high_watermark > partition.log.log_end_offset:
                    raise BrokenPromiseError(f"{broker}: the high watermark is beyond the log")
                if high_watermark != self.watermarks.get(key):
                    self.watermarks[key] = high_watermark
                    self._check_committed(broker, index)

    def _check_committed(self, broker: Broker, index: int) -> None:
        for offset, value in broker.records(index, committed=True):
            told = self.acknowledged.setdefault((index, offset), value)
            if told != value:
                raise BrokenPromiseError(
                    f"{broker}: offset {offset} of {index} was acknowledged as {told}, is {value}"
                )

    def _check_logs(self) -> None:
        """All replicas have the same, and all that was acknowledged."""
        for index in self.partitions:
            logs = [dict(broker.records(index)) for broker in self.world.brokers.values()]
            if any(log != logs[0] for log in logs):
                raise BrokenPromiseError(f"the logs of {index} differ")
            for (partition, offset), value in self.acknowledged.items():
                if partition == index and logs[0].get(offset) != value:
                    raise BrokenPromiseError(
                        f"{value} was acknowledged at {offset}; there is {logs[0].get(offset)}"
                    )
