"""The nemesis: makes the faults of a plan happen, and repairs them."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

from sim.changes import CHANGES
from sim.clients import Client
from sim.disk import io_error
from sim.loop import SimLoop
from sim.machine import Machine
from sim.moves import MOVE_REPLICA, move_replica
from sim.plan import DAMAGE, UNCLEAN_ENDS, Fault, Plan
from sim.wire import Wire

Repair = Callable[[], None]
DOWN_S = 0.3
"""The time for which a machine stays down in a rolling restart."""


class Nemesis:
    """Does harm. Every harm returns how it is undone, or None if it could not be done."""

    def __init__(self, machines: list[Machine], wire: Wire, plan: Plan, random: Random) -> None:
        self.machines = machines
        self.wire = wire
        self.plan = plan
        self.random = random
        self.injected: Counter[str] = Counter()
        self.log: list[str] = []
        self.damaged: set[str] = set()
        """Machines with flipped bits in their files."""
        self.admin: Client | None = None
        """Asks the cluster to change, in runs in which that is a fault."""
        self.cluster_id = ""
        self.changes: list[asyncio.Task[bool]] = []
        self.is_changing_voters = False
        self._repairs: dict[int, tuple[str, Repair]] = {}
        self._number = 0
        self._is_over = False

    @property
    def loop(self) -> SimLoop:
        return self.wire.loop

    def begin(self, faults: list[Fault]) -> None:
        """Let every fault happen at its time, counted from now."""
        for fault in faults:
            self.loop.call_later(fault.at_s, self._inject, fault)

    def _inject(self, fault: Fault) -> None:
        if self._is_over:
            return
        machine = self._choose(fault.kind)
        repair = HARMS[fault.kind](self, machine)
        if repair is None:
            return
        self.injected[fault.kind] += 1
        self.note(f"{fault.kind} ({machine})")
        self._number += 1
        number = self._number
        self._repairs[number] = (f"{fault.kind} ({machine})", repair)
        self.loop.call_later(fault.lasts_s, self._repair, number)

    def note(self, text: str) -> None:
        """Remember what happened, for who reads about the run."""
        self.log.append(f"{self.loop.time():.3f} s {text}")

    def _choose(self, kind: str) -> Machine:
        """Whom it hits: the leader of the quorum or of partitions more often than others."""
        random, machines = self.random, self.machines
        if kind in DAMAGE or (kind in UNCLEAN_ENDS and self.plan.is_damaging):
            return next(machine for machine in machines if machine.node_id == self.plan.unlucky)
        pick = random.random()
        if pick < 0.35:
            for machine in machines:
                if machine.leads_quorum:
                    return machine
        if pick < 0.7:
            leaders = [machine for machine in machines if machine.leads_partitions]
            if leaders:
                return random.choice(leaders)
        return random.choice(machines)

    def _repair(self, number: int) -> None:
        found = self._repairs.pop(number, None)
        if found is not None:
            self.note(f"repaired {found[0]}")
            found[1]()

    def mend_all(self) -> None:
        """Undo what is still broken, and start what does not run."""
        self._is_over = True
        for number in list(self._repairs):
            self._repair(number)
        self.wire.heal()
        for machine in self.machines:
            machine.give_power()
            machine.disk.heal()
            machine.is_wanted = True
            machine.start()


def _kill(nemesis: Nemesis, machine: Machine) -> Repair | None:
    if not machine.is_running:
        return None
    machine.kill()
    return machine.start


def _chase(nemesis: Nemesis, machine: Machine) -> Repair | None:
    """Kill the leader of a partition, and each next leader as soon as it leads."""
    leaders = [each for each in nemesis.machines if each.leads_partitions]
    if not leaders or machine.node is None:
        return None
    first = nemesis.random.choice(leaders)
    assert first.node is not None
    name = nemesis.random.choice(
        [each.topic_partition for each in first.node.broker.replicas if each.is_leader]
    )
    left = nemesis.random.randint(2, 6)
    is_over = False

    def look() -> None:
        nonlocal left
        if is_over or not left:
            return
        for each in nemesis.machines:
            if each.leads(name):
                left -= 1
                nemesis.loop.call_later(nemesis.random.random() * 0.2, strike, each)
                return
        nemesis.loop.call_later(0.02, look)

    def strike(victim: Machine) -> None:
        if not is_over and victim.is_running:
            nemesis.note(f"chase: {victim} dies, who led {name}")
            victim.kill()
            nemesis.loop.call_later(nemesis.random.choice((0.2, 1.0, 3.0)), victim.start)
        look()

    def repair() -> None:
        nonlocal is_over
        is_over = True
        for each in nemesis.machines:
            each.start()

    look()
    return repair


def _kill_all(nemesis: Nemesis, machine: Machine) -> Repair | None:
    for each in nemesis.machines:
        each.kill()

    def repair() -> None:
        for each in nemesis.machines:
            each.start()

    return repair


def _power_loss(nemesis: Nemesis, machine: Machine) -> Repair | None:
    if not machine.host.is_powered:
        return None
    machine.cut_power()

    def repair() -> None:
        machine.give_power()
        machine.start()

    return repair


def _power_loss_all(nemesis: Nemesis, machine: Machine) -> Repair | None:
    repairs = [_power_loss(nemesis, each) for each in nemesis.machines]

    def repair() -> None:
        for each in repairs:
            if each is not None:
                each()

    return repair


def _restart(nemesis: Nemesis, machine: Machine) -> Repair | None:
    """A controlled shutdown, and a start some time later."""
    if not machine.is_serving or machine.is_paused:
        return None
    machine.is_wanted = False
    nemesis.loop.create_task(machine.stop())

    def repair() -> None:
        if machine.is_running and not machine.is_wanted:
            nemesis.loop.call_later(1.0, repair)  # it is still stopping
        else:
            machine.is_wanted = True
            machine.start()

    return repair


def _rolling_restart(nemesis: Nemesis, machine: Machine) -> Repair | None:
    left = list(nemesis.machines)

    def next_one() -> None:
        if left:
            repair = _restart(nemesis, left.pop(0))
            if repair is not None:
                nemesis.loop.call_later(DOWN_S, repair)
            nemesis.loop.call_later(4.0, next_one)

    next_one()
    return left.clear


def _pause(nemesis: Nemesis, machine: Machine) -> Repair | None:
    process = machine.process
    if process is None:
        return None
    machine.pause()

    def repair() -> None:
        if machine.process is process:
            machine.resume()

    return repair


def _slow_disk(nemesis: Nemesis, machine: Machine) -> Repair | None:
    machine.disk.make_slow(nemesis.random.choice((50, 500)), nemesis.random.choice((0, 5, 50)))
    return machine.disk.make_fast


def _full_disk(nemesis: Nemesis, machine: Machine) -> Repair | None:
    if not machine.has_disk:
        return None
    machine.disk.fill_up(nemesis.random.choice((0, 1000, 20_000)))
    return _mend_disk(machine)


def _broken_disk(nemesis: Nemesis, machine: Machine) -> Repair | None:
    if not machine.has_disk:
        return None
    config = machine.config
    below = nemesis.random.choice([*config.log_dirs, config.metadata_log_dir])

    def fault(operation: str, path: str) -> None:
        if path.startswith(below):
            raise io_error(path)

    machine.disk.fault = fault
    return _mend_disk(machine)


def _mend_disk(machine: Machine) -> Repair:
    """Repair the disk and restart the node, because its directories are offline."""
    machine.excuses += 1

    def repair() -> None:
        machine.disk.heal()
        machine.excuses -= 1
        if machine.is_wanted:
            machine.kill()
            machine.start()

    return repair


def _bit_flip(nemesis: Nemesis, machine: Machine) -> Repair | None:
    flipped = machine.disk.flip_bit(_is_partition_log)
    if flipped is None:
        return None
    nemesis.note(f"flipped a bit of {machine}: {flipped}")
    nemesis.damaged.add(machine.name)
    return _nothing


def _cut_file(nemesis: Nemesis, machine: Machine) -> Repair | None:
    """A file is shorter when the node comes back from a controlled shutdown."""
    repair = _restart(nemesis, machine)
    if repair is None:
        return None

    def cut_and_repair() -> None:
        if machine.is_running and not machine.is_wanted:
            nemesis.loop.call_later(0.5, cut_and_repair)  # it is still stopping
            return
        if not machine.is_running:
            nemesis.note(f"cut a file of {machine}: {machine.disk.cut_file(_is_partition_log)}")
        repair()

    return cut_and_repair


def _is_partition_log(path: str) -> bool:
    return path.endswith(".log") and "__cluster_metadata" not in path


def _clock_step(nemesis: Nemesis, machine: Machine) -> Repair | None:
    step_ms = nemesis.random.choice((-1, 1)) * nemesis.random.choice((50, 1000, 60_000))
    machine.clock.skew_ms += step_ms

    def repair() -> None:
        machine.clock.skew_ms -= step_ms

    return repair


def _slow_links(nemesis: Nemesis, machine: Machine) -> Repair | None:
    wire = nemesis.wire
    names = [name for name in wire.hosts if name != machine.name]
    links = [wire.link(machine.name, name) for name in names]
    links += [wire.link(name, machine.name) for name in names]
    delay_ms = nemesis.random.choice((5.0, 50.0, 300.0))
    for link in links:
        link.delay_ms, link.jitter_ms = delay_ms, delay_ms

    def repair() -> None:
        for link in links:
            link.delay_ms, link.jitter_ms = wire.default_delay_ms

    return repair


def _client_partition(nemesis: Nemesis, machine: Machine) -> Repair | None:
    """Cut a node off from clients, in one direction or both."""
    nodes = {other.name for other in nemesis.machines}
    clients = [name for name in nemesis.wire.hosts if name not in nodes]
    return _cut(nemesis, [machine.name], clients, both=nemesis.random.random() < 0.5)


def _partition(nemesis: Nemesis, machine: Machine) -> Repair | None:
    return _split(nemesis, machine, both=True)


def _one_way_partition(nemesis: Nemesis, machine: Machine) -> Repair | None:
    return _split(nemesis, machine, both=False)


def _split(nemesis: Nemesis, machine: Machine, *, both: bool) -> Repair:
    """Cut off a machine, alone or with others, from the rest or from some of it."""
    random = nemesis.random
    others = [each for each in nemesis.machines if each is not machine]
    random.shuffle(others)
    count = random.choice((0, 0, 1, len(others) // 2)) if len(others) > 1 else 0
    side = [machine.name, *(each.name for each in others[:count])]
    rest = [each.name for each in others[count:]]
    if random.random() < 0.3:
        rest = rest[: random.randint(1, len(rest))]
    if random.random() < 0.3:
        nodes = {each.name for each in nemesis.machines}
        rest += [name for name in nemesis.wire.hosts if name not in nodes]
    return _cut(nemesis, side, rest, both=both)


def _cut(nemesis: Nemesis, side: list[str], rest: list[str], *, both: bool) -> Repair:
    pairs = [(one, other) for one in side for other in rest]
    backwards = [(other, one) for one, other in pairs]
    if both:
        pairs += backwards
    elif nemesis.random.random() < 0.5:
        pairs = backwards
    for source, target in pairs:
        nemesis.wire.cut(source, target)
    nemesis.note(f"cut {'both ways' if both else pairs[0]}: {side} from {rest}")

    def repair() -> None:
        for source, target in pairs:
            nemesis.wire.repair(source, target)

    return repair


def _nothing() -> None:
    """It cannot be repaired."""


HARMS: dict[str, Callable[[Nemesis, Machine], Repair | None]] = {
    MOVE_REPLICA: move_replica,
    "kill": _kill,
    "chase": _chase,
    "kill-all": _kill_all,
    "power-loss": _power_loss,
    "power-loss-all": _power_loss_all,
    "restart": _restart,
    "rolling-restart": _rolling_restart,
    "pause": _pause,
    "partition": _partition,
    "one-way-partition": _one_way_partition,
    "slow-disk": _slow_disk,
    "full-disk": _full_disk,
    "broken-disk": _broken_disk,
    "clock-step": _clock_step,
    "slow-links": _slow_links,
    "client-partition": _client_partition,
    "bit-flip": _bit_flip,
    "cut-file": _cut_file,
    **CHANGES,
}
