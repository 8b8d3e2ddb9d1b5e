"""Answers leave in the order of their requests; a connection that waits holds back the next."""

from collections.abc import Sequence
from struct import pack

import pytest

from barnabas.base.network import ListenerOptions, Part
from barnabas.node.net.connection import UNSENT_MAX_BYTES, Connection, Reply
from barnabas.protocol.errors import DecodeError
from sim.manual_clock import ManualClock

PRODUCE = b"\x00\x00"
FETCH = b"\x00\x01"


class FakeTransport:
    """Remembers what was sent and whether reading is on."""

    peer_host = "client"
    peer_port = 1
    tls = None

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.reading = True
        self.is_closed = False
        self.backlog_bytes = 0
        self.connection: Connection | None = None

    def send(self, parts: Sequence[Part]) -> None:
        self.sent += [bytes(part) for part in parts]  # type: ignore[arg-type]

    def unsent_bytes(self) -> int:
        return self.backlog_bytes

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.is_closed = True
        assert self.connection is not None
        self.connection.closed(None)

    def close_when_sent(self) -> None:
        self.close()


class Bench:
    """A connection whose service answers as the test says."""

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self.waiting: dict[bytes, Reply] = {}
        self.transport = FakeTransport()
        self.closed: list[Connection] = []
        self.connection = Connection(
            self.transport, self.serve, ListenerOptions("PLAINTEXT"), self.closed.append
        )
        self.transport.connection = self.connection

    def serve(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        body = bytes(frame[2:])
        self.handled.append(body)
        if body.startswith(b"bad"):
            raise DecodeError("no such thing")
        if body.startswith(b"bug"):
            raise ZeroDivisionError
        if body.startswith(b"wait"):
            reply = self.waiting[body] = Reply()
            return reply
        return () if body == b"silent" else (body,)

    def receive(self, *frames: bytes) -> None:
        data = b"".join(pack(">i", len(frame)) + frame for frame in frames)
        buffer = self.connection.get_buffer()
        buffer[: len(data)] = data
        self.connection.received(len(data))


def test_answers_at_once_in_order_and_in_one_write() -> None:
    bench = Bench()
    bench.receive(FETCH + b"a", FETCH + b"b", PRODUCE + b"silent", FETCH + b"c")
    assert bench.transport.sent == [b"a", b"b", b"c"]


def test_a_waiting_request_holds_back_the_next() -> None:
    bench = Bench()
    bench.receive(FETCH + b"wait1", FETCH + b"b")
    assert bench.handled == [b"wait1"]
    assert not bench.transport.reading
    bench.waiting[b"wait1"].complete((b"one",))
    assert bench.transport.sent == [b"one", b"b"]
    assert bench.transport.reading


def test_produce_requests_overlap_but_answer_in_order() -> None:
    bench = Bench()
    bench.receive(PRODUCE + b"wait1", PRODUCE + b"wait2", PRODUCE + b"c", FETCH + b"d")
    assert bench.handled == [b"wait1", b"wait2", b"c"]
    bench.waiting[b"wait2"].complete((b"two",))
    assert bench.transport.sent == []
    bench.waiting[b"wait1"].complete((b"one",))
    assert bench.transport.sent == [b"one", b"two", b"c", b"d"]


def test_a_produce_does_not_pass_another_waiting_request() -> None:
    bench = Bench()
    bench.receive(FETCH + b"wait1", PRODUCE + b"b")
    assert bench.handled == [b"wait1"]


def test_a_reply_completed_while_handled_is_sent() -> None:
    bench = Bench()
    serve = bench.serve

    def complete_at_once(connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        reply = serve(connection, frame)
        assert isinstance(reply, Reply)
        reply.complete((b"now",))
        return reply

    bench.connection._service = complete_at_once
    bench.receive(FETCH + b"wait1")
    assert bench.transport.sent == [b"now"]
    assert bench.transport.reading


def test_a_request_that_completes_those_before_it_leaves_none_unanswered() -> None:
    bench = Bench()
    serve = bench.serve

    def complete_the_first(connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        answer = serve(connection, frame)
        if frame[2:] == b"b":  # as where it finds the disk broken that the first one waits for
            bench.waiting[b"wait1"].complete((b"one",))
        return answer

    bench.connection._service = complete_the_first
    bench.receive(PRODUCE + b"wait1", PRODUCE + b"b")
    assert bench.transport.sent == [b"one", b"b"]


def test_a_run_of_requests_is_cut_where_their_answers_grow_large() -> None:
    bench = Bench()
    transport = bench.transport
    large = bytes(UNSENT_MAX_BYTES // 2 + 1)
    handled = []

    def serve(connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        handled.append(bytes(frame[2:]))
        return (large,)

    def send(parts: Sequence[Part]) -> None:
        transport.backlog_bytes += sum(map(len, parts))

    bench.connection._service = serve
    transport.send = send  # type: ignore[method-assign]
    bench.receive(*(FETCH + b"%d" % number for number in range(9)))
    assert handled == [b"0", b"1"]
    assert not transport.reading
    transport.backlog_bytes = 0
    bench.connection.drained()
    assert handled == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("body", [b"bad", b"bug"])
def test_what_cannot_be_handled_closes_the_connection_only(body: bytes) -> None:
    bench = Bench()
    bench.receive(FETCH + b"a", FETCH + body, FETCH + b"b")
    assert bench.transport.is_closed
    assert bench.handled == [b"a", body]
    assert bench.transport.sent == [b"a"]
    assert bench.closed == [bench.connection]


def test_closing_abandons_what_waits() -> None:
    bench = Bench()
    bench.receive(FETCH + b"wait1")
    abandoned = []
    bench.waiting[b"wait1"].on_abandon = lambda: abandoned.append(True)
    bench.connection.close()
    assert abandoned == [True]
    bench.waiting[b"wait1"].complete((b"late",))
    assert bench.transport.sent == []


def test_a_slow_reader_has_to_wait() -> None:
    bench = Bench()
    bench.transport.backlog_bytes = UNSENT_MAX_BYTES + 1
    bench.receive(FETCH + b"a")
    assert bench.handled == []
    assert not bench.transport.reading
    bench.transport.backlog_bytes = 0
    bench.connection.drained()
    assert bench.transport.sent == [b"a"]
    assert bench.transport.reading


def test_an_answer_counts_as_activity() -> None:
    bench = Bench()
    bench.receive(FETCH + b"wait1")
    bench.connection.last_active_tick = 3
    bench.waiting[b"wait1"].complete((b"one",))
    assert bench.connection.last_active_tick == -1
    bench.connection.last_active_tick = 3
    bench.connection.drained()
    assert bench.connection.last_active_tick == -1


def test_all_who_asked_are_told_once_when_the_connection_has_gone() -> None:
    bench = Bench()
    first: list[Connection] = []
    second: list[list[Connection]] = []
    bench.connection.when_closed(first.append)
    bench.connection.when_closed(first.append)
    bench.connection.when_closed(lambda connection: second.append([connection]))
    assert not first
    bench.transport.close()
    bench.transport.close()
    assert first == [bench.connection]
    assert second == [[bench.connection]]


def test_who_asks_after_the_end_is_told_at_once() -> None:
    bench = Bench()
    bench.transport.close()
    told: list[Connection] = []
    bench.connection.when_closed(told.append)
    assert told == [bench.connection]


def test_a_muted_connection_begins_nothing_and_reads_nothing() -> None:
    bench, clock = Bench(), ManualClock()
    bench.receive(FETCH + b"wait one")
    bench.connection.mute(clock, 1000)
    assert not bench.transport.reading
    assert bench.connection.is_waiting  # it is not idle
    bench.waiting[b"wait one"].complete((b"first",))
    assert bench.transport.sent == [b"first"]  # answers still leave
    bench.receive(FETCH + b"two")  # what was under way when it was muted
    clock.advance(999)
    assert bench.handled == [b"wait one"]
    clock.advance(1)
    assert bench.handled == [b"wait one", b"two"]
    assert bench.transport.reading
    assert not bench.connection.is_waiting


def test_of_several_mutes_the_longest_holds() -> None:
    bench, clock = Bench(), ManualClock()
    for duration_ms in (500, 2000, 1000):
        bench.connection.mute(clock, duration_ms)
    bench.receive(FETCH + b"one")
    clock.advance(1999)
    assert bench.handled == []
    clock.advance(1)
    assert bench.handled == [b"one"]


def test_requests_that_have_arrived_wait_when_one_before_them_mutes() -> None:
    bench, clock = Bench(), ManualClock()
    serve = bench.serve

    def serve_and_mute(connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        connection.mute(clock, 100)
        return serve(connection, frame)

    bench.connection._service = serve_and_mute
    bench.receive(FETCH + b"one", FETCH + b"two", FETCH + b"three")
    assert bench.handled == [b"one"]
    assert bench.transport.sent == [b"one"]
    clock.advance(100)
    assert bench.handled == [b"one", b"two"]
    clock.advance(100)
    assert bench.transport.sent == [b"one", b"two", b"three"]


def test_a_connection_that_closes_while_muted_leaves_no_timer() -> None:
    bench, clock = Bench(), ManualClock()
    bench.connection.mute(clock, 100)
    bench.transport.close()
    assert all(timer.is_cancelled for timer in clock.timers)
    bench.connection.mute(clock, 100)
    clock.advance(100)
    assert bench.handled == []


def test_an_answer_may_be_changed_before_it_leaves() -> None:
    bench = Bench()
    bench.receive(FETCH + b"wait one")
    reply = bench.waiting[b"wait one"]
    reply.change(lambda parts: [b"changed ", *parts])
    reply.complete((b"answer",))
    assert bench.transport.sent == [b"changed ", b"answer"]
    done = Reply()
    done.complete((b"x",))
    done.change(lambda parts: [*parts, b"y"])
    assert done.take() == [b"x", b"y"]
