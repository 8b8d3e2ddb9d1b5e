"""An answer that comes later, and the connection that waits for it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.base.network import Part
from barnabas.node.net.request_times import Sample


class Timed(Protocol):
    """What notes the times of a request: a `Sample` that counts, or a trace."""

    completed: int
    """When the answer was there, in nanoseconds of `clock_ns`."""

    @property
    def clock_ns(self) -> Callable[[], int]:
        """The clock of all its times."""

    def with_count(self, sample: Sample) -> None:
        """Tell `sample` the same times."""

    def sent(self, collected: int, now: int) -> None:
        """Its answer was next at `collected`, and had been given to the socket at `now`."""

    def lost(self) -> None:
        """Nobody waits for the answer any more."""


class Waiting(Protocol):
    """The connection that waits for an answer."""

    def reply_ready(self) -> None:
        """An answer is there."""

    def close(self) -> None:
        """No answer comes."""


class Reply:
    """An answer that comes later."""

    __slots__ = (
        "_change",
        "_clock_ns",
        "_connection",
        "_parts",
        "busy_ns",
        "on_abandon",
        "sample",
    )

    def __init__(self) -> None:
        self._change: Callable[[Sequence[Part]], Sequence[Part]] | None = None
        self._connection: Waiting | None = None
        self._parts: Sequence[Part] | None = None
        self.busy_ns = 0
        """Time that making it kept the loop, if that is measured."""
        self.on_abandon: Callable[[], None] | None = None
        self.sample: Timed | None = None
        """Set where the request is timed or traced."""
        self._clock_ns: Callable[[], int] | None = None

    @property
    def is_done(self) -> bool:
        return self._parts is not None

    def complete(self, parts: Sequence[Part]) -> None:
        """Give the answer. Harmless when the connection has gone."""
        assert self._parts is None, "a request is answered once"
        self._parts = parts if self._change is None else self._change(parts)
        if self.sample is not None and self._clock_ns is not None:
            self.sample.completed = self._clock_ns()
        if self._connection is not None:
            self._connection.reply_ready()

    def fail(self) -> None:
        """Close the connection in place of an answer (our own fault; it has been logged)."""
        if self._connection is not None:
            self._connection.close()

    def change(self, change: Callable[[Sequence[Part]], Sequence[Part]]) -> None:
        """Send what `change` makes of the answer, once it is there."""
        self._change = change
        if self._parts is not None:
            self._parts = change(self._parts)

    def counted(self, sample: Sample) -> None:
        """Note in `sample` when the answer comes, and in the trace of the request if it has one."""
        if self.sample is None:
            self.timed(sample, sample.clock_ns)
        else:
            self.sample.with_count(sample)

    def timed(self, sample: Timed, clock_ns: Callable[[], int]) -> None:
        """Note in `sample` when the answer comes."""
        self.sample = sample
        self._clock_ns = clock_ns
        if self._parts is not None:
            sample.completed = clock_ns()

    def bind(self, connection: Waiting) -> None:
        """Say which connection waits."""
        self._connection = connection

    def take(self) -> Sequence[Part]:
        """The answer, once done."""
        assert self._parts is not None
        return self._parts

    def abandon(self) -> None:
        """The connection has gone: nobody waits any more."""
        self._connection = None
        if self.sample is not None:
            self.sample.lost()
        if self.on_abandon is not None:
            self.on_abandon()
