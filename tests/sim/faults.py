"""Who makes the faults of a plan happen, and mends them."""

from collections import Counter
from collections.abc import Callable
from random import Random

from sim.disk import io_error
from sim.machine import Machine
from sim.plan import Fault
from sim.wire import Wire

Mend = Callable[[], None]


class Nemesis:
    """Does harm. Every harm returns how it is undone."""

    def __init__(self, machines: list[Machine], wire: Wire, random: Random) -> None:
        self._machines = machines
        self._wire = wire
        self._random = random
        self.injected: Counter[str] = Counter()
        self.log: list[str] = []
        self._mends: dict[int, Mend] = {}
        self._number = 0

    def begin(self, faults: list[Fault]) -> None:
        """Let every fault happen at its time, counted from now."""
        loop = self._wire.loop
        for fault in faults:
            loop.call_later(fault.at_s, self._inject, fault)

    def _inject(self, fault: Fault) -> None:
        machine = self._random.choice(self._machines)
        mend = HARMS[fault.kind](self, machine)
        if mend is None:
            return
        self.injected[fault.kind] += 1
        self.log.append(f"{self._wire.loop.time():.3f} s {fault.kind} {machine}")
        self._number += 1
        number = self._number
        self._mends[number] = mend
        self._wire.loop.call_later(fault.lasts_s, self._mend, number)

    def _mend(self, number: int) -> None:
        mend = self._mends.pop(number, None)
        if mend is not None:
            self.log.append(f"{self._wire.loop.time():.3f} s mended {number}")
            mend()

    def mend_all(self) -> None:
        """Undo what is still broken, and start what does not run."""
        for number in list(self._mends):
            self._mend(number)
        self._wire.heal()
        for machine in self._machines:
            machine.give_power()
            machine.disk.heal()
            machine.start()

    # Harms

    def kill(self, machine: Machine) -> Mend | None:
        if not machine.is_running:
            return None
        machine.kill()
        return machine.start

    def power_loss(self, machine: Machine) -> Mend | None:
        if not machine.host.is_powered:
            return None
        machine.cut_power()

        def mend() -> None:
            machine.give_power()
            machine.start()

        return mend

    def restart(self, machine: Machine) -> Mend | None:
        """A controlled shutdown, and a start some time later."""
        if not machine.is_serving or machine.is_paused:
            return None
        loop = self._wire.loop
        machine.is_wanted = False
        loop.create_task(machine.stop())

        def mend() -> None:
            machine.is_wanted = True
            if machine.is_running:
                loop.call_later(1.0, mend)  # it is still stopping
            else:
                machine.start()

        return mend

    def pause(self, machine: Machine) -> Mend | None:
        process = machine.process
        if process is None:
            return None
        machine.pause()

        def mend() -> None:
            if machine.process is process:
                machine.resume()

        return mend

    def slow_disk(self, machine: Machine) -> Mend | None:
        machine.disk.make_slow(self._random.choice((50, 500)), self._random.choice((0, 5, 50)))
        return machine.disk.heal

    def full_disk(self, machine: Machine) -> Mend | None:
        return self._disk_fault(
            machine, lambda: machine.disk.fill_up(self._random.choice((0, 1000, 20_000)))
        )

    def broken_disk(self, machine: Machine) -> Mend | None:
        below = self._random.choice(machine.config.log_dirs)

        def fault(operation: str, path: str) -> None:
            if path.startswith(below):
                raise io_error(path)

        def break_it() -> None:
            machine.disk.fault = fault

        return self._disk_fault(machine, break_it)

    def _disk_fault(self, machine: Machine, begin: Callable[[], None]) -> Mend | None:
        """A fault after which the node has to be started again (its directory is offline)."""
        machine.may_fail = True
        begin()

        def mend() -> None:
            machine.disk.heal()
            machine.may_fail = False
            if machine.is_wanted:
                machine.kill()
                machine.start()

        return mend

    def clock_step(self, machine: Machine) -> Mend | None:
        step_ms = self._random.choice((-1, 1)) * self._random.choice((50, 1000, 60_000))
        machine.clock.skew_ms += step_ms

        def mend() -> None:
            machine.clock.skew_ms -= step_ms

        return mend

    def slow_links(self, machine: Machine) -> Mend | None:
        names = [name for name in self._wire.hosts if name != machine.name]
        links = [self._wire.link(machine.name, name) for name in names]
        links += [self._wire.link(name, machine.name) for name in names]
        delay_ms = self._random.choice((5.0, 50.0, 300.0))
        for link in links:
            link.delay_ms, link.jitter_ms = delay_ms, delay_ms

        def mend() -> None:
            for link in links:
                link.delay_ms, link.jitter_ms = self._wire.default_delay_ms

        return mend

    def client_partition(self, machine: Machine) -> Mend | None:
        """Cut a node off from clients, in one direction or both."""
        names = {other.name for other in self._machines}
        clients = [name for name in self._wire.hosts if name not in names]
        links = []
        if self._random.random() < 0.7:
            links += [self._wire.link(machine.name, client) for client in clients]
        if not links or self._random.random() < 0.5:
            links += [self._wire.link(client, machine.name) for client in clients]
        for link in links:
            link.is_cut = True

        def mend() -> None:
            for link in links:
                link.is_cut = False

        return mend


HARMS: dict[str, Callable[[Nemesis, Machine], Mend | None]] = {
    "kill": Nemesis.kill,
    "power-loss": Nemesis.power_loss,
    "restart": Nemesis.restart,
    "pause": Nemesis.pause,
    "slow-disk": Nemesis.slow_disk,
    "full-disk": Nemesis.full_disk,
    "broken-disk": Nemesis.broken_disk,
    "clock-step": Nemesis.clock_step,
    "slow-links": Nemesis.slow_links,
    "client-partition": Nemesis.client_partition,
}
