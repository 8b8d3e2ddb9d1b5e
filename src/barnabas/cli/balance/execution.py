"""Carries a plan out: a few partitions at a time, watched until their replicas are in sync.

The cluster does the moving; this only asks, and looks. Even if this process dies, each partition is
where it was, at its target, or on its way there, and a later run sees which. A bounded number is
under way at a time, so that an interrupted run leaves little behind.

A move ends when all replicas that are to stay are in sync, as in Kafka. One that has a replica on
a node that is down therefore waits for that node; the progress says so.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas.base.ids import TopicPartition
from barnabas.cli.admin import (
    Admin,
    elect,
    log_directories,
    partitions,
    reassign,
    reassignments,
    sizes_on,
)
from barnabas.cli.balance.model import Move, moved_bytes
from barnabas.cli.balance.throttles import clear_throttles, set_throttles
from barnabas.cli.errors import CliError, ExitCode

POLL_MIN_S, POLL_MAX_S = 0.1, 1.0
UNREACHABLE_MAX = 30
"""Failing looks at the cluster, one after another and a second apart, before giving up."""
DOWN_LOOK_S = 5.0
"""Time without progress after which the command checks whether nodes are down."""
SETTLE_S = 5.0
"""Time that brokers may take to learn what the controller has decided."""


@dataclass(slots=True)
class Progress:
    """The progress of a run."""

    partitions_total: int
    bytes_total: int
    partitions_done: int = 0
    bytes_done: int = 0
    running: int = 0
    waiting_for: tuple[int, ...] = ()
    """Nodes that are down and that moves under way wait for."""


@dataclass(slots=True)
class Outcome:
    """The outcome of a plan."""

    moved: list[Move] = field(default_factory=list)
    refused: list[CliError] = field(default_factory=list)
    deleted: list[Move] = field(default_factory=list)
    """Moves whose topics were deleted."""
    changed: list[Move] = field(default_factory=list)
    """That somebody else cancelled, or sent elsewhere."""
    still_throttled: list[int] = field(default_factory=list)
    """Nodes that did not answer when throttles were removed."""


class Execution:
    """One run over `moves`, and over `in_flight`, which are under way already.

    A move takes the place of what is under way with the same partition, at once if need be: the
    node that this waits for may never come back.
    """

    def __init__(
        self,
        admin: Admin,
        moves: Sequence[Move],
        in_flight: Sequence[Move],
        *,
        live: Sequence[int],
        throttle_bytes_per_s: int | None,
        concurrent_max: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._admin = admin
        replaced = {_key(move) for move in moves}
        awaited = [move for move in in_flight if _key(move) not in replaced]
        self._waiting = deque(moves)
        self._running = {_key(move): move for move in awaited}
        self._live = list(live)
        self._throttle = throttle_bytes_per_s
        self._concurrent_max = concurrent_max
        self._on_progress = on_progress
        self._throttled = [*in_flight, *moves]
        everything = [*awaited, *moves]
        self._progress = Progress(len(everything), moved_bytes(everything))
        self.outcome = Outcome()

    @property
    def running(self) -> int:
        """Partitions under way, as far as was seen."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Partitions whose move was not asked for yet."""
        return len(self._waiting)

    def run(self) -> Outcome:
        """Move everything and elect preferred leaders; throttles are gone at the end.

        Raises CliError, and KeyboardInterrupt; throttles are gone then, too.
        """
        try:
            if self._throttle is not None:
                set_throttles(self._admin, self._throttled, self._throttle, self._live)
            self._move()
        finally:
            self._clear()
        self._settle()
        self._elect()
        return self.outcome

    def _clear(self) -> None:
        if self._throttle is not None:
            topics = {move.topic for move in self._throttled if move.adding}
            self.outcome.still_throttled = clear_throttles(self._admin, topics, self._live)

    def _move(self) -> None:
        pause_s, failures, idle_s = POLL_MIN_S, 0, 0.0
        while self._waiting or self._running:
            try:
                self._start()
                advanced = self._look()
                if advanced or idle_s >= DOWN_LOOK_S:
                    self._progress.waiting_for = () if advanced else self._down()
                    idle_s = 0.0
                failures = 0
            except CliError as error:
                failures += 1
                if error.code is not ExitCode.UNREACHABLE or failures > UNREACHABLE_MAX:
                    raise
                advanced = False
            self._on_progress(self._progress)
            if self._waiting or self._running:
                pause_s = POLL_MIN_S if advanced else min(POLL_MAX_S, pause_s * 1.5)
                self._admin.pause(pause_s)
                idle_s += pause_s

    def _down(self) -> tuple[int, ...]:
        """Nodes without which what is under way cannot end.

        Those that are to hold it; and those that did, where nobody leads who could be copied from.
        """
        leaderless = {state.key for state in partitions(self._admin) if state.leader < 0}
        needed: set[int] = set()
        for key, move in self._running.items():
            needed.update(move.after, move.before if key in leaderless else ())
        return tuple(sorted(needed - set(self._admin.cluster().live)))

    def _start(self) -> None:
        wave: list[Move] = []
        while self._waiting and len(self._running) + len(wave) < self._concurrent_max:
            wave.append(self._waiting.popleft())
        if not wave:
            return
        try:
            refused = reassign(self._admin, {_key(move): move.after for move in wave})
        except CliError:
            self._waiting.extendleft(reversed(wave))
            raise
        for move in wave:
            error = refused.get(_key(move))
            if error is None:
                self._running[_key(move)] = move
                continue
            if error.code is ExitCode.NOT_FOUND:
                self.outcome.deleted.append(move)
            else:
                self.outcome.refused.append(error)
            self._progress.partitions_done += 1
            self._progress.bytes_total -= move.moved_bytes

    def _look(self) -> bool:
        """See what has ended and how far the rest is; True where something ended."""
        ongoing = reassignments(self._admin)
        ended = [key for key in self._running if key not in ongoing]
        for key in ended:
            self.outcome.moved.append(self._running.pop(key))
        self._progress.partitions_done += len(ended)
        self._progress.running = len(self._running)
        self._progress.bytes_done = moved_bytes(self.outcome.moved) + self._copied_bytes()
        return bool(ended)

    def _copied_bytes(self) -> int:
        """The bytes that the moving replicas have copied."""
        adding = {broker for move in self._running.values() for broker in move.adding}
        if not adding:
            return 0
        directories = log_directories(self._admin, sorted(adding), list(self._running))
        held = sizes_on(directories)
        return sum(
            min(held.get(broker, {}).get(key, 0), move.size_bytes)
            for key, move in self._running.items()
            for broker in move.adding
        )

    def _settle(self) -> None:
        """Separate completed moves from those that were deleted, cancelled or changed."""
        waited_s = 0.0
        while True:
            placed = {state.key: state.replicas for state in partitions(self._admin)}
            astray = [move for move in self.outcome.moved if placed.get(_key(move)) != move.after]
            if not astray or waited_s >= SETTLE_S:
                break
            self._admin.pause(POLL_MAX_S)
            waited_s += POLL_MAX_S
        gone = set(astray)
        self.outcome.moved = [move for move in self.outcome.moved if move not in gone]
        self.outcome.deleted += [move for move in astray if _key(move) not in placed]
        self.outcome.changed += [move for move in astray if _key(move) in placed]

    def _elect(self) -> None:
        """Let the first replicas lead; those that cannot (not in sync yet) will later."""
        keys = [_key(move) for move in self.outcome.moved]
        if keys:
            elect(self._admin, keys)


def _key(move: Move) -> TopicPartition:
    return TopicPartition(move.topic, move.index)
