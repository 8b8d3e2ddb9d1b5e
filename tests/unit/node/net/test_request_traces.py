"""A traced request: its times, those of a sample that counts it, its end without an answer."""

from __future__ import annotations

import pytest

from barnabas.node.net.reply import Reply
from barnabas.node.net.request_times import ApiTimes, Sample
from barnabas.node.net.request_trace import RequestTrace
from barnabas.protocol.errors import DecodeError
from support.noted_spans import NotedSpan, NotedSpans


class World:
    """A request that arrived at 1 ms of a clock that goes on by as much as a test says."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000
        noted = NotedSpans()
        self.root = noted.note(NotedSpan(noted, 1, "PRODUCE", self.now_ns, {}))
        self.trace = RequestTrace(self.root, lambda: self.now_ns)

    def after_us(self, microseconds: int) -> None:
        self.now_ns += microseconds * 1000

    def times_us(self) -> dict[str, tuple[int, int]]:
        """Beginning and end of the request's parts, since its arrival."""
        return {
            span.name: (span.started_ns // 1000 - 1000, (span.ended_ns or 0) // 1000 - 1000)
            for span in [self.root, *self.root.parts]
        }


@pytest.fixture
def world() -> World:
    return World()


def test_a_request_that_is_answered_at_once(world: World) -> None:
    def answer() -> list[bytes]:
        world.after_us(10)
        return [b"answer"]

    reply = world.trace.watch(answer)
    assert reply.is_done
    assert reply.take() == [b"answer"]
    assert reply.sample is world.trace
    world.after_us(5)
    world.trace.sent(world.now_ns, world.now_ns)
    assert world.times_us() == {"PRODUCE": (0, 15), "response": (10, 15)}


def test_a_request_that_was_queued(world: World) -> None:
    trace = RequestTrace(world.root, lambda: world.now_ns, world.now_ns)
    world.after_us(20)
    trace.watch(lambda: [b"answer"])
    trace.sent(world.now_ns, world.now_ns)
    times = {"PRODUCE": (0, 20), "queue": (0, 20), "response": (20, 20)}
    assert world.times_us() == times


def test_a_request_that_waits_and_says_nothing_of_it(world: World) -> None:
    reply = world.trace.watch(Reply)
    world.after_us(30)
    reply.complete([b"answer"])
    world.after_us(2)
    world.trace.sent(world.now_ns, world.now_ns)
    times = {"PRODUCE": (0, 32), "wait": (0, 30), "response": (30, 32)}
    assert world.times_us() == times


def test_parts_end_when_they_do_and_say_how(world: World) -> None:
    reply = world.trace.watch(Reply)
    part = world.trace.begin("write marker", partition="3")
    world.after_us(10)
    reply.complete([b"answer"])
    world.trace.sent(world.now_ns, world.now_ns)
    world.after_us(10)
    part.end("NOT_LEADER_OR_FOLLOWER", attempts=2)
    assert world.times_us() == {"PRODUCE": (0, 10), "write marker": (0, 20), "response": (10, 10)}
    span = next(span for span in world.root.parts if span.name == "write marker")
    assert span.attributes == {"partition": "3", "attempts": 2}
    assert (span.error, world.root.error) == ("NOT_LEADER_OR_FOLLOWER", None)


@pytest.mark.parametrize("is_at_once", [True, False])
def test_a_sample_that_counts_has_the_same_times(world: World, is_at_once: bool) -> None:
    api = ApiTimes()
    reply = world.trace.watch(lambda: [b"answer"] if is_at_once else Reply())
    begun_ns = world.now_ns
    reply.counted(Sample(api, begun_ns, begun_ns, begun_ns, lambda: world.now_ns))
    if not is_at_once:
        world.after_us(40)
        reply.complete([b"answer"])
    world.after_us(3)
    assert reply.sample is not None
    reply.sample.sent(world.now_ns, world.now_ns)
    assert (api.remote.count, api.remote.total) == (1, 0 if is_at_once else 40)
    assert (api.total.count, api.total.total) == (1, 3 if is_at_once else 43)
    assert world.times_us()["PRODUCE"] == (0, 3 if is_at_once else 43)


def test_a_request_that_breaks_the_protocol_ends_with_it(world: World) -> None:
    def answer() -> Reply:
        raise DecodeError("no request")

    with pytest.raises(DecodeError):
        world.trace.watch(answer)
    assert world.root.error == "DecodeError"
    assert world.root.ended_ns == world.now_ns


def test_a_request_whose_client_has_gone_ends(world: World) -> None:
    reply = world.trace.watch(Reply)
    world.after_us(7)
    reply.abandon()
    assert world.root.error == "the connection has gone"
    assert world.times_us() == {"PRODUCE": (0, 7)}
    reply.complete([b"nobody reads it"])
