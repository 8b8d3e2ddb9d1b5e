"""One client connection: frames in, answers out in the order of their requests.

Most requests are answered while they are handled. One that must wait (a long-polling fetch, a
produce that waits for replicas, a group join) leaves a `Reply` behind, and its connection stands
still until that is completed, as in Kafka. The exception is a run of produce requests: the next
is handled while the ones before it still wait, so that pipelined `acks=all` fills the disk.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.base.clock import Clock, Timer
from barnabas.base.network import ListenerOptions, Part, TlsSession, Transport
from barnabas.base.peer_lines import peer_logger
from barnabas.node.net.frames import FrameReader
from barnabas.node.net.reply import Reply, Timed
from barnabas.node.net.request_memory import RequestMemory, RequestShare
from barnabas.node.net.request_times import FETCH_KEY, RequestTimes, Sample
from barnabas.protocol.errors import DecodeError

__all__ = ["Connection", "Gate", "Reply", "Service"]

REPLIES_PENDING_MAX = 256
"""Overlapping requests of one connection that may wait at once."""
UNSENT_MAX_BYTES = 8 << 20
"""Bytes a slow reader may leave unsent before its next request has to wait."""
PRODUCE_KEY = b"\x00\x00"

telemetry = peer_logger(__name__)


class Service(Protocol):
    """A server's entry point for each frame."""

    def __call__(self, connection: "Connection", frame: bytearray, /) -> "Sequence[Part] | Reply":
        """Answer one request: parts at once (none for no answer), or a Reply to wait for.

        Raises DecodeError when the peer broke the protocol; the connection is then closed.
        """


@dataclass(frozen=True, slots=True)
class Gate:
    """The check that a listener's clients must pass before they are served."""

    service: Service
    """Answers until it calls `Connection.admit`."""
    frame_size_max_bytes: int
    """`sasl.server.max.receive.size`: for frames of those who have not logged in."""


class Connection:
    """A StreamHandler for the request-answer protocol."""

    __slots__ = (
        "_arrived_ns",
        "_busy",
        "_is_held",
        "_is_standing",
        "_may_overlap",
        "_may_overlap_inside",
        "_memory",
        "_mute_end_ms",
        "_mute_timer",
        "_on_closed",
        "_paused",
        "_produce_only",
        "_reader",
        "_replies",
        "_service",
        "_share",
        "_transport",
        "_when_closed",
        "frames",
        "get_buffer",
        "is_admitted",
        "is_closed",
        "is_follower",
        "last_active_tick",
        "listener",
        "listener_name",
        "peer_host",
        "state",
        "times",
    )

    def __init__(
        self,
        transport: Transport,
        service: Service,
        listener: ListenerOptions,
        on_closed: "Callable[[Connection], None]",
        *,
        may_overlap: bool = False,
        gate: Gate | None = None,
        memory: RequestMemory | None = None,
        times: RequestTimes | None = None,
    ) -> None:
        """`may_overlap`: any request may start while those before it still wait.

        `gate`: what the client has to pass first. `times`: what counts the requests.
        """
        self.times = times
        self._arrived_ns = 0
        self._transport = transport
        self._service = service if gate is None else gate.service
        self._reader = FrameReader(
            listener.frame_size_max_bytes if gate is None else gate.frame_size_max_bytes
        )
        self.get_buffer = self._reader.buffer
        self._replies: deque[Reply] = deque()
        self.frames: deque[bytearray] = deque()
        """Requests that have arrived and not been begun. The service may take the next ones from
        here with the one that it answers, and answer them all in their order."""
        self._produce_only = True  # every pending reply is one to a produce request
        self._paused = False
        self._busy = False
        self._may_overlap = may_overlap and gate is None
        self._may_overlap_inside = may_overlap
        self._memory = memory
        # Connections that have not logged in do not share the common memory, so they cannot exhaust
        # it.
        self._share = (
            RequestShare(memory, self._reader, self._resume)
            if memory is not None and gate is None
            else None
        )
        self._is_held = False  # muted, standing or closed: no request may begin
        self._is_standing = False
        self._mute_timer: Timer | None = None
        self._mute_end_ms = 0
        self._on_closed = on_closed
        self._when_closed: tuple[Callable[[Connection], None], ...] = ()
        self.listener = listener
        """The listener that it came by."""
        self.listener_name = listener.name
        self.peer_host = transport.peer_host
        self.is_closed = False
        self.is_follower = False
        """Whether a follower fetches here: its fetches are counted apart."""
        self.is_admitted = gate is None
        """True if the client is past the listener's gate."""
        self.last_active_tick = 0
        self.state: object = None
        """The service's state of this client (software name, principal)."""

    def serve_by(self, service: Service) -> None:
        """Have `service` answer from the next request on."""
        self._service = service

    def admit(self, service: Service) -> None:
        """The client has logged in: the listener's own limits hold from now on."""
        self._service = service
        self._reader.frame_size_max_bytes = self.listener.frame_size_max_bytes
        self._may_overlap = self._may_overlap_inside
        self.is_admitted = True
        if self._share is None and self._memory is not None and not self.is_closed:
            self._share = share = RequestShare(self._memory, self._reader, self._resume)
            self._take_room(share)

    @property
    def tls(self) -> TlsSession | None:
        """The result of its TLS handshake, None in plain text."""
        return self._transport.tls

    @property
    def peer_port(self) -> int:
        """The client's port."""
        return self._transport.peer_port

    @property
    def arrived_ns(self) -> int:
        """When the newest bytes arrived, by the clock of `times`; 0 if requests are not timed."""
        return self._arrived_ns

    @property
    def is_waiting(self) -> bool:
        """True if an answer is outstanding, or the client has been told to wait."""
        return (
            bool(self._replies)
            or self._mute_timer is not None
            or self._transport.unsent_bytes() > 0
        )

    def mute(self, clock: Clock, duration_ms: int) -> None:
        """Begin no request, and read none, for so long: the client is above its quota.

        Answers still leave. Of several times, that which ends last holds.
        """
        end_ms = clock.monotonic_ms() + duration_ms
        if self.is_closed or (self._mute_timer is not None and end_ms <= self._mute_end_ms):
            return
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._mute_end_ms = end_ms
        self._mute_timer = clock.call_later(duration_ms, self._unmute)
        self._is_held = True
        self._regulate()

    def _unmute(self) -> None:
        self._mute_timer = None
        self._is_held = self._is_standing
        self._work()

    def stand(self) -> None:
        """Begin no request, and read none, until `go_on`: the one under way must come first."""
        self._is_standing = self._is_held = True

    def go_on(self) -> None:
        """Begin the requests that have waited since `stand`."""
        self._is_standing = False
        if not self.is_closed:
            self._is_held = self._mute_timer is not None
            self._work()

    def received(self, size_bytes: int) -> None:
        self.last_active_tick = -1
        try:
            frames = self._reader.advance(size_bytes)
        except DecodeError as error:
            telemetry.warning("closing %s: %s", self.peer_host, error)
            self.close()
            return
        if self._share is not None:
            self._received(frames, self._share)
        elif frames:
            if self.times is not None:
                self._arrived_ns = self.times.clock_ns()
            self.frames.extend(frames)
            self._work()

    def drained(self) -> None:
        self.last_active_tick = -1
        self._work()

    def closed(self, error: OSError | None) -> None:
        if self.is_closed:
            return
        self.is_closed = self._is_held = True
        if self._mute_timer is not None:
            self._mute_timer.cancel()
            self._mute_timer = None
        self._reader.clear()
        self.frames.clear()
        share, self._share = self._share, None
        if share is not None:
            share.close()  # it knows this connection: to keep it would be a cycle
        replies, self._replies = self._replies, deque()
        for reply in replies:
            reply.abandon()
        self._on_closed(self)
        callbacks, self._when_closed = self._when_closed, ()
        for callback in callbacks:
            callback(self)

    def when_closed(self, callback: "Callable[[Connection], None]") -> None:
        """Call `callback` with this connection once it has gone: now, if it has gone already.

        One that equals a callback given before is not called a second time.
        """
        if self.is_closed:
            callback(self)
        elif callback not in self._when_closed:
            self._when_closed = (*self._when_closed, callback)

    def close(self) -> None:
        """Close now; answers not yet sent are lost."""
        self._transport.close()

    def close_when_sent(self) -> None:
        """Close after what is queued has left."""
        self._transport.close_when_sent()

    def reply_ready(self) -> None:
        """One of the pending answers is there: send what is next in order, then go on."""
        self.last_active_tick = -1
        self._work()

    def _work(self) -> None:
        """Send answers that are due and handle requests that may start."""
        if self._busy:
            return  # a reply completed while its own request was being handled
        self._busy = True
        out: list[Part] = []
        out_bytes = 0
        times = self.times
        samples: list[Timed] = []
        try:
            if self._replies:
                self._collect(out, samples)
            frames = self.frames
            is_open = self._transport.unsent_bytes() <= UNSENT_MAX_BYTES
            while frames and is_open and not self._is_held:
                if self._replies and not self._may_overlap_now(frames[0]):
                    break
                frame = frames.popleft()
                answer = (
                    self._service(self, frame)
                    if times is None
                    else self._answer_counted(frame, times, samples)
                )
                if isinstance(answer, Reply):
                    self._await_reply(answer, frame)
                    self._collect(out, samples)
                elif self._replies:
                    reply = Reply()
                    reply.complete(answer)
                    self._replies.append(reply)
                    self._collect(out, samples)  # handling it may have completed those before
                else:
                    out += answer
                    if frames:
                        out_bytes += sum(map(len, answer))
                        if out_bytes > UNSENT_MAX_BYTES:
                            self._transport.send(out)
                            out, out_bytes = [], 0
                            is_open = self._transport.unsent_bytes() <= UNSENT_MAX_BYTES
        except DecodeError as error:
            telemetry.warning("closing %s: %s", self.peer_host, error)
            self._close_after(out)
            return
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
            telemetry.exception("closing %s: a request could not be handled", self.peer_host)
            self._close_after(out)
            return
        finally:
            self._busy = False
        if out:
            self._send(out, samples)
        if self._share is not None:
            self._share.count(frames)
        if frames or self._paused:
            self._regulate()

    def _answer_counted(
        self, frame: bytearray, times: RequestTimes, samples: list[Timed]
    ) -> "Sequence[Part] | Reply":
        """Answer a request, count it, and time it if it is the turn of its API."""
        frames = self.frames
        left = len(frames) if frames else 0
        try:
            api = times.by_key[frame[1]]
        except IndexError:  # the service refuses so short a frame
            api = None
        if api is not None and not api.left and frame[1] != FETCH_KEY:
            # Under load most requests are counted and not timed: these read no clock. Whether a
            # fetch is a follower's, its handler finds out.
            answer = self._service(self, frame)
            api.count += (1 + left - len(frames)) if left else 1  # a run is answered at once
            return answer
        begun_ns = times.clock_ns()
        answer = self._service(self, frame)
        api = times.of(frame, is_follower=self.is_follower)
        api.count += (1 + left - len(frames)) if left else 1
        if api.left > 0:
            api.left -= 1
            clock_ns = times.clock_ns
            sample = Sample(api, self._arrived_ns, begun_ns, clock_ns(), clock_ns)
            if isinstance(answer, Reply):
                answer.counted(sample)
            else:
                samples.append(sample)
        return answer

    def _send(self, out: list[Part], samples: list[Timed]) -> None:
        if not samples:
            self._transport.send(out)
            return
        clock_ns = samples[0].clock_ns
        collected_ns = clock_ns()
        self._transport.send(out)
        now_ns = clock_ns()
        for sample in samples:
            sample.sent(collected_ns, now_ns)

    def _received(self, frames: Sequence[bytearray], share: RequestShare) -> None:
        """As `received`, where all connections share the memory of their requests."""
        if frames:
            if self.times is not None:
                self._arrived_ns = self.times.clock_ns()
            share.has_room = False
            self.frames.extend(frames)
            self._work()
        self._take_room(share)

    def _take_room(self, share: RequestShare) -> None:
        """Say what has arrived; it is not read on where there is no room."""
        if not self.is_closed:
            share.arrived(self.frames)
            if share.is_short or self._paused:
                self._regulate()

    def _resume(self) -> None:
        """There is room for requests again."""
        assert self._share is not None
        self._take_room(self._share)

    def _close_after(self, out: list[Part]) -> None:
        """Close, but not without the answers to the requests before."""
        if out:
            self._transport.send(out)
        self.close()

    def _collect(self, out: list[Part], samples: list[Timed]) -> None:
        replies = self._replies
        while replies and replies[0].is_done:
            reply = replies.popleft()
            out += reply.take()
            if reply.sample is not None:
                samples.append(reply.sample)
        if not replies:
            self._produce_only = True

    def _may_overlap_now(self, frame: bytearray) -> bool:
        """Return whether the request of `frame` may start while those before it still wait."""
        return len(self._replies) < REPLIES_PENDING_MAX and (
            self._may_overlap or (self._produce_only and frame[:2] == PRODUCE_KEY)
        )

    def _await_reply(self, reply: Reply, frame: bytearray) -> None:
        reply.bind(self)
        self._replies.append(reply)
        if frame[:2] != PRODUCE_KEY:
            self._produce_only = False

    def _regulate(self) -> None:
        """Read on only when every request that has arrived could start, and others may."""
        if self.is_closed:
            return
        is_short = self._share is not None and self._share.is_short
        if self.frames or self._is_held or is_short:
            if not self._paused:
                self._paused = True
                self._transport.pause_reading()
        elif self._paused:
            self._paused = False
            self._transport.resume_reading()
