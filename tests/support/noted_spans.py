"""Spans of requests, noted in memory: a tracer for nodes of tests."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from barnabas.node.net.request_trace import Attributes


@dataclass(eq=False)
class NotedSpan:
    """A span; `ended_ns` is None until it has ended."""

    tracer: NotedSpans
    node_id: int
    name: str
    started_ns: int
    attributes: dict[str, str | int | bool]
    parent: NotedSpan | None = None
    ended_ns: int | None = None
    error: str | None = None

    def part(self, name: str, started_ns: int, attributes: Attributes) -> NotedSpan:
        return self.tracer.note(
            NotedSpan(self.tracer, self.node_id, name, started_ns, dict(attributes), self)
        )

    def end(self, ended_ns: int, attributes: Attributes, error: str | None) -> None:
        assert self.ended_ns is None, f"{self.name} has ended already"
        self.attributes |= attributes
        self.error = error
        self.ended_ns = ended_ns

    @property
    def parts(self) -> list[NotedSpan]:
        """Its parts, in the order in which they began."""
        return [span for span in self.tracer.all() if span.parent is self]

    def part_named(self, name: str) -> NotedSpan:
        """The one part of that name, which has ended."""
        (found,) = [span for span in self.parts if span.name == name]
        assert found.ended_ns is not None, f"{name} has not ended"
        return found


@dataclass
class NotedSpans:
    """The spans of all nodes. Nodes write them, tests read them."""

    spans: list[NotedSpan] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, span: NotedSpan) -> NotedSpan:
        with self.lock:
            self.spans.append(span)
        return span

    def all(self) -> list[NotedSpan]:
        with self.lock:
            return list(self.spans)

    def requests(self, name: str) -> list[NotedSpan]:
        """Requests of an API that have ended."""
        return [
            span
            for span in self.all()
            if span.name == name and span.parent is None and span.ended_ns is not None
        ]


class NotingTracer:
    """A node's tracer that traces each request, unless `is_on` says otherwise."""

    def __init__(self, noted: NotedSpans, node_id: int = 0) -> None:
        self._noted, self._node_id = noted, node_id
        self.clock_ns = time.perf_counter_ns
        self.is_on = True
        self.is_closed = False

    def wants(self) -> bool:
        return self.is_on

    def request(self, name: str, started_ns: int, attributes: Attributes) -> NotedSpan:
        span = NotedSpan(self._noted, self._node_id, name, started_ns, dict(attributes))
        return self._noted.note(span)

    async def close(self) -> None:
        self.is_closed = True
