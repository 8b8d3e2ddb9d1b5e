"""Requests that are traced: what a node does for one, as spans with a beginning and an end.

    request ─┬─ queue                 from its arrival until the node begins with it
             ├─ wait for turn         until the producer's request before has its answer
             ├─ verify                until the transaction's coordinator has answered
             ├─ log append            each partition of a produce request
             ├─ wait for replicas     until the high watermark has passed what was appended
             ├─ prepare, write marker, complete      the end of a transaction, after the answer too
             ├─ wait                  of any other request that is not answered at once
             └─ response              from the answer to its last byte in the socket's buffer

Nothing is traced unless the node's configuration says where spans go; `app/tracing.py` sends them.
Trace contexts in the headers of records are the clients' own and are not touched.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from barnabas.base.network import Part
from barnabas.node.net.reply import Reply
from barnabas.node.net.request_times import Sample

Attributes = Mapping[str, str | int | bool]


class Span(Protocol):
    """Something that takes time. Times are in nanoseconds of the tracer's clock."""

    def part(self, name: str, started_ns: int, attributes: Attributes) -> "Span":
        """Begin a part of it, which may end later than it does."""

    def end(self, ended_ns: int, attributes: Attributes, error: str | None) -> None:
        """End it, once."""


class Tracer(Protocol):
    """Chooses requests, and takes their spans. Neither waits nor raises."""

    clock_ns: Callable[[], int]

    def wants(self) -> bool:
        """Return True if the next request is to be traced."""

    def request(self, name: str, started_ns: int, attributes: Attributes) -> Span:
        """Begin the span of a request."""


class OpenSpan:
    """A part of a request that has begun."""

    __slots__ = ("_clock_ns", "_span")

    def __init__(self, span: Span, clock_ns: Callable[[], int]) -> None:
        self._span = span
        self._clock_ns = clock_ns

    def end(self, error: str | None = None, /, **attributes: str | int | bool) -> None:
        """End it, once; `error` says why it failed."""
        self._span.end(self._clock_ns(), attributes, error)


class RequestTrace:
    """One traced request. It is the `sample` of its reply, and passes times on to one that counts.

    Parts may be begun as long as something of it goes on, after its answer too.
    """

    __slots__ = (
        "_arrived",
        "_completed",
        "_counted",
        "_handled",
        "_has_parts",
        "_root",
        "clock_ns",
    )

    def __init__(
        self, root: Span, clock_ns: Callable[[], int], arrived_ns: int | None = None
    ) -> None:
        """`arrived_ns`: when the request arrived, if that is known."""
        self._root = root
        self.clock_ns = clock_ns
        self._arrived = arrived_ns
        self._counted: Sample | None = None
        self._handled = self._completed = 0
        self._has_parts = False
        """True once a part of the request was reported."""

    def begin(self, name: str, /, **attributes: str | int | bool) -> OpenSpan:
        """Begin a part of the request."""
        self._has_parts = True
        return OpenSpan(self._root.part(name, self.clock_ns(), attributes), self.clock_ns)

    def watch(self, answer: Callable[[], Sequence[Part] | Reply]) -> Reply:
        """Have the request answered; the reply says when its answer is there, and has left."""
        if self._arrived is not None:
            self._root.part("queue", self._arrived, {}).end(self.clock_ns(), {}, None)
        try:
            answered = answer()
        except Exception as error:
            self._root.end(self.clock_ns(), {}, type(error).__name__)
            raise
        self._handled = self.clock_ns()
        reply = answered if isinstance(answered, Reply) else Reply()
        reply.timed(self, self.clock_ns)
        if not isinstance(answered, Reply):
            reply.complete(answered)
        return reply

    # As a sample

    @property
    def completed(self) -> int:
        """When the answer was there."""
        return self._completed

    @completed.setter
    def completed(self, now: int) -> None:
        self._completed = now
        if self._counted is not None:
            self._counted.completed = now

    def with_count(self, sample: Sample) -> None:
        """Tell `sample` the same times."""
        self._counted = sample
        if self._completed:
            sample.completed = self._completed

    def sent(self, collected: int, now: int) -> None:
        """Its answer was next at `collected`, and had been given to the socket at `now`."""
        if self._counted is not None:
            self._counted.sent(collected, now)
        completed = self._completed
        if not self._has_parts and completed > self._handled:
            self._root.part("wait", self._handled, {}).end(completed, {}, None)
        self._root.part("response", completed, {}).end(now, {}, None)
        self._root.end(now, {}, None)

    def lost(self) -> None:
        """Nobody waits for the answer any more."""
        self._root.end(self.clock_ns(), {}, "the connection has gone")
