"""Requests are counted by API; some are timed, and their percentiles shown."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from struct import pack

import pytest

from barnabas.base.network import ListenerOptions, Part
from barnabas.node.loop.histogram import Histogram, quantiles
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.net.request_times import (
    ERROR_KINDS_MAX,
    FETCH_KEY,
    FOLLOWER_FETCH_KEY,
    SAMPLES_PER_TICK,
    WINDOW_TICKS,
    ApiTimes,
    RequestTimes,
)

PRODUCE, FETCH = b"\x00\x00", b"\x00\x01"


class Clock:
    """A clock that goes on by as much as the test says."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000
        self.reads = 0

    def __call__(self) -> int:
        self.reads += 1
        return self.now_ns

    def after_us(self, microseconds: int) -> None:
        self.now_ns += microseconds * 1000


class Transport:
    """Takes what is sent, in two microseconds."""

    peer_host, peer_port, tls = "client", 1, None

    def __init__(self, clock: Clock) -> None:
        self.sent: list[bytes] = []
        self._clock = clock

    def send(self, parts: Sequence[Part]) -> None:
        self._clock.after_us(2)
        self.sent += [bytes(part) for part in parts]  # type: ignore[arg-type]

    def unsent_bytes(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def close_when_sent(self) -> None: ...


class World:
    """A connection that is counted. The service takes ten microseconds for a request."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.times = RequestTimes(self.clock)
        self.waiting: list[Reply] = []
        self.waits = False
        self.runs = False
        self.connection = Connection(
            Transport(self.clock),
            self._serve,
            ListenerOptions(name="A"),
            lambda _: None,
            times=self.times,
        )

    def _serve(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        self.clock.after_us(10)
        if self.waits:
            reply = Reply()
            self.waiting.append(reply)
            return reply
        answers: list[Part] = [bytes(frame)]
        while self.runs and connection.frames:
            answers.append(bytes(connection.frames.popleft()))
        return answers

    def ask(self, *requests: bytes) -> None:
        data = b"".join(pack(">i", len(request)) + request for request in requests)
        while data:
            room = self.connection.get_buffer()
            size = min(len(room), len(data))
            room[:size] = data[:size]
            data = data[size:]
            self.connection.received(size)

    def of(self, key: int) -> ApiTimes:
        return dict(self.times.items())[key]


def test_a_request_that_is_only_counted_reads_the_clock_once_at_its_arrival() -> None:
    world = World()
    for _ in range(SAMPLES_PER_TICK):
        world.ask(PRODUCE + b"x")
    before = world.clock.reads
    world.ask(PRODUCE + b"x")
    assert world.clock.reads == before + 1
    world.runs = True
    world.ask(PRODUCE + b"x", PRODUCE + b"y", PRODUCE + b"z")
    assert world.clock.reads == before + 2
    assert world.of(0).count == SAMPLES_PER_TICK + 4
    assert world.of(0).total.count == SAMPLES_PER_TICK


def test_all_requests_are_counted_and_some_are_timed() -> None:
    world = World()
    for _ in range(SAMPLES_PER_TICK + 3):
        world.ask(PRODUCE + b"x")
    produce = world.of(0)
    assert produce.count == SAMPLES_PER_TICK + 3
    assert produce.total.count == SAMPLES_PER_TICK
    world.times.tick()
    world.ask(PRODUCE + b"x")
    assert produce.total.count == SAMPLES_PER_TICK + 1


def test_where_the_time_of_a_request_goes() -> None:
    world = World()
    world.waits = True
    world.ask(FETCH + b"x")
    world.clock.after_us(500)
    world.waiting[0].complete([b"records"])
    fetch = world.of(1)
    found = [histogram.total for histogram in fetch.histograms()]
    queue, local, remote, response_queue, send, total = found
    assert (queue, local, remote, response_queue, send) == (0, 10, 500, 0, 2)
    assert total == 512


def test_a_run_is_one_sample_of_many_requests() -> None:
    world = World()
    world.runs = True
    world.ask(*[PRODUCE + b"x"] * 7)
    produce = world.of(0)
    assert produce.count == 7
    assert produce.total.count < 7


def test_fetches_of_followers_are_counted_apart() -> None:
    world = World()
    world.ask(FETCH + b"x")
    world.connection.is_follower = True
    world.ask(FETCH + b"x", PRODUCE + b"x")
    counts = {key: times.count for key, times in world.times.items()}
    assert counts == {0: 1, FETCH_KEY: 1, FOLLOWER_FETCH_KEY: 1}


def test_the_times_of_requests_do_not_grow_with_their_number() -> None:
    """What is kept is bounded: buckets, not samples; kinds of errors, not errors."""
    world, random = World(), Random(4)
    for _ in range(20_000):
        world.clock.after_us(random.randrange(5000))
        world.ask(PRODUCE + b"x")
        world.times.tick()
    kept = sum(len(list(histogram.recent)) for histogram in world.of(0).histograms())
    assert kept < 1000
    for code in range(ERROR_KINDS_MAX + 10):
        world.times.failed(3, code)
    assert len(world.times.errors) == ERROR_KINDS_MAX


def test_percentiles_are_of_the_last_windows() -> None:
    histogram = Histogram()
    for value in range(1, 1001):
        histogram.add(value)
    middle, most, longest = quantiles([histogram], [0.5, 0.99, 1.0])
    assert 500 <= middle <= 535
    assert 990 <= most <= 1000
    assert longest == histogram.longest == 1000
    histogram.turn()
    assert quantiles([histogram], [1.0]) == [1000]
    histogram.turn()
    assert quantiles([histogram], [1.0]) == [0]
    assert (histogram.count, histogram.total) == (1000, 500_500)


@pytest.mark.parametrize("value", [-5, 0, 1, 15, 16, 17, 31, 32, 33, 1000, 10**6, 2**32, 2**40])
def test_a_value_is_found_again_within_its_bucket(value: int) -> None:
    histogram = Histogram()
    histogram.add(value)
    histogram.add(2**32 - 1)
    (found,) = quantiles([histogram], [0.5])
    expected = min(max(value, 0), 2**32 - 1)
    assert expected <= found <= expected * 1.0625 + 1


def test_a_window_ends_after_some_ticks() -> None:
    times = RequestTimes(Clock())
    times.of(bytearray(PRODUCE)).total.add(9)
    for _ in range(2 * WINDOW_TICKS):
        times.tick()
    (found,) = [found for _, found in times.items()]
    assert list(found.total.recent) == []
