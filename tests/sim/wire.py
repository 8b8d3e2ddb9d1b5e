"""The network between simulated machines: streams as TCP gives them, and what goes wrong there.

Bytes of one connection arrive in order, in pieces of any size, after the delay of their link.
Each direction of each link may be cut by itself: what is under way then waits, as TCP's
retransmissions do, and arrives once the link heals. A process that is killed leaves resets
behind; one that is stopped still has its connections accepted by its system, whose buffers then
fill; a machine without power does not answer at all until it is back, and then resets what it
does not know.
"""

import asyncio
import errno
import os
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from random import Random

from barnabas.base.network import (
    PLAIN_LISTENER,
    SYSTEM_OPTIONS,
    Listener,
    ListenerOptions,
    Part,
    SocketOptions,
    StreamHandler,
    Transport,
)
from sim.loop import Process, SimLoop

WINDOW_BYTES = 256 << 10
"""Bytes that may be under way or unread in one direction of a connection."""
PIECE_BYTES_MAX = 64 << 10
FIRST_FREE_PORT = 32_768
PROBE_S = 0.2
"""The pause before another attempt to deliver."""
CONNECT_GIVE_UP_S = 127.0
"""As Linux's six retransmitted SYNs."""

Trace = Callable[[str, str, int, int], None]
"""Told of every delivery: from, to, bytes, their CRC."""


@dataclass(slots=True)
class Link:
    """One direction between two machines."""

    delay_ms: float = 0.5
    jitter_ms: float = 0.5
    cut_count: int = 0
    """Number of faults that cut the link at present."""


@dataclass(slots=True)
class Host:
    """A machine as the network sees it."""

    name: str
    is_powered: bool = True
    listeners: dict[int, "SimListener"] = field(default_factory=dict)
    next_port: int = FIRST_FREE_PORT

    def free_port(self) -> int:
        self.next_port += 1
        return self.next_port


class Wire:
    """All machines' network."""

    def __init__(self, loop: SimLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.hosts: dict[str, Host] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self.default_delay_ms = (0.3, 0.7)
        self.trace: Trace | None = None
        self.bytes_delivered = 0
        self.pieces_delivered = 0

    def host(self, name: str) -> Host:
        if name not in self.hosts:
            self.hosts[name] = Host(name)
        return self.hosts[name]

    def link(self, source: str, target: str) -> Link:
        """The direction from `source` to `target`."""
        key = (source, target)
        found = self._links.get(key)
        if found is None:
            found = self._links[key] = Link(*self.default_delay_ms)
        return found

    def cut(self, source: str, target: str) -> None:
        """Let nothing more arrive that goes from `source` to `target`."""
        self.link(source, target).cut_count += 1

    def repair(self, source: str, target: str) -> None:
        """Undo one `cut`."""
        link = self.link(source, target)
        link.cut_count = max(0, link.cut_count - 1)

    def heal(self) -> None:
        """Repair every link and take away added delays."""
        for link in self._links.values():
            link.cut_count = 0
            link.delay_ms, link.jitter_ms = self.default_delay_ms

    def passes(self, source: str, target: str) -> bool:
        """Return whether anything gets from `source` to `target` now."""
        if not (self.host(source).is_powered and self.host(target).is_powered):
            return False
        return source == target or not self.link(source, target).cut_count

    def delay_s(self, source: str, target: str) -> float:
        if source == target:
            return 0.00005
        link = self.link(source, target)
        return (link.delay_ms + self.random.random() * link.jitter_ms) / 1000


class SimNetwork:
    """One process's network; see `base.network.Network`. Its ends die with it.

    All windows have the same size; `options` are ignored.
    """

    def __init__(self, wire: Wire, host_name: str, process: Process) -> None:
        self.wire = wire
        self.host = wire.host(host_name)
        self.process = process
        self._ends: dict[SimTransport, None] = {}
        self._listeners: dict[SimListener, None] = {}

    def listen(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: ListenerOptions = PLAIN_LISTENER,
    ) -> Listener:
        if port == 0:
            port = self.host.free_port()
        if port in self.host.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = SimListener(self, host, port, factory)
        self.host.listeners[port] = listener
        self._listeners[listener] = None
        return listener

    async def connect(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: SocketOptions = SYSTEM_OPTIONS,
        tls: object = None,
    ) -> Transport:
        wire, here = self.wire, self.host.name
        if host not in wire.hosts:
            raise OSError(-2, f"the name {host} is not known")
        give_up_at = wire.loop.time() + CONNECT_GIVE_UP_S
        while not wire.passes(here, host) or not wire.passes(host, here):
            if wire.loop.time() >= give_up_at:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            await asyncio.sleep(PROBE_S)
        await asyncio.sleep(wire.delay_s(here, host))
        listener = wire.hosts[host].listeners.get(port)
        if listener is not None and wire.passes(here, host):
            local_port = self.host.free_port()
            near = SimTransport(self, host, port)
            far = SimTransport(listener.network, here, local_port)
            near.other, far.other = far, near
            listener.arrived(far)
            try:
                await asyncio.sleep(wire.delay_s(host, here))
                if near.is_closed:
                    raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
                near.attach(factory(near))
            except BaseException:
                near.close()  # its dialer has gone
                raise
            return near
        await asyncio.sleep(wire.delay_s(host, here))
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    def opened(self, end: "SimTransport") -> None:
        self._ends[end] = None

    def closed(self, end: "SimTransport") -> None:
        self._ends.pop(end, None)

    def forget_listener(self, listener: "SimListener") -> None:
        self._listeners.pop(listener, None)
        if self.host.listeners.get(listener.port) is listener:
            del self.host.listeners[listener.port]

    def process_ended(self) -> None:
        """The process is dead: nobody listens, and its peers are told as far as they can be."""
        for listener in list(self._listeners):
            listener.close()
        for end in list(self._ends):
            end.abort()
        self._ends.clear()


class SimListener:
    """A bound port; connections wait until it accepts."""

    def __init__(
        self,
        network: SimNetwork,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
    ) -> None:
        self.network = network
        self.host = host
        self.port = port
        self._factory = factory
        self._is_accepting = False
        self._waiting: deque[SimTransport] = deque()

    def start(self) -> None:
        if not self._is_accepting:
            self._is_accepting = True
            self._accept_soon()

    def pause(self) -> None:
        self._is_accepting = False

    def close(self) -> None:
        self._is_accepting = False
        self.network.forget_listener(self)
        while self._waiting:
            self._waiting.popleft().abort()

    def arrived(self, end: "SimTransport") -> None:
        """A connection came in."""
        self._waiting.append(end)
        self._accept_soon()

    def _accept_soon(self) -> None:
        if self._waiting and self._is_accepting:
            process = self.network.process
            self.network.wire.loop.call_soon(self._accept, context=process.context)

    def _accept(self) -> None:
        while self._waiting and self._is_accepting:
            end = self._waiting.popleft()
            if not end.is_closed:
                end.attach(self._factory(end))


class SimTransport:
    """One end of a connection; see `base.network.Transport`."""

    def __init__(self, network: SimNetwork, peer_host: str, peer_port: int) -> None:
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.tls = None
        self.other: SimTransport
        self.is_closed = False
        self.network = network
        self._wire = network.wire
        self._here = network.host.name
        self._handler: StreamHandler | None = None
        self._outbox: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._is_closing = False
        # Data on its way to the other end: (when, bytes), or (when, None) for its end.
        self._transit: deque[tuple[float, bytes | None]] = deque()
        self._transit_bytes = 0
        self._is_moving = False
        # Data that has arrived here and was not read.
        self._inbox = bytearray()
        self._has_end = False
        self._is_reading = False
        self._is_paused = False
        self._read_is_due = False
        network.opened(self)

    def attach(self, handler: StreamHandler) -> None:
        """Give the end its handler and begin to read, unless that was paused before."""
        self._handler = handler
        if not self._is_paused:
            self.resume_reading()

    # Sending

    def unsent_bytes(self) -> int:
        return self._unsent_bytes

    def send(self, parts: Sequence[Part]) -> None:
        if self.is_closed or self._is_closing:
            return
        try:
            data = b"".join(
                bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read()
                for part in parts
            )
        except OSError as error:  # of the disk that holds the file
            self._finish(error)
            self._put(None)
            return
        if data:
            self._outbox.append(data)
            self._unsent_bytes += len(data)
            self._transmit()

    def _transmit(self) -> None:
        """Hand to the system what its window has room for."""
        wire = self._wire
        room = WINDOW_BYTES - self._transit_bytes - len(self.other._inbox)
        while self._outbox and room > 0:
            data = self._outbox.popleft()
            if len(data) > room:
                self._outbox.appendleft(data[room:])
                data = data[:room]
            room -= len(data)
            self._unsent_bytes -= len(data)
            self._transit_bytes += len(data)
            while data:
                size = min(len(data), PIECE_BYTES_MAX)
                if size > 1 and wire.random.random() < 0.1:
                    size = wire.random.randint(1, size)
                self._put(data[:size])
                data = data[size:]

    def _put(self, data: bytes | None) -> None:
        wire = self._wire
        when = wire.loop.time() + wire.delay_s(self._here, self.peer_host)
        if self._transit:
            when = max(when, self._transit[-1][0])
        self._transit.append((when, data))
        self._move_at(when)

    def _move_at(self, when: float) -> None:
        if not self._is_moving:
            self._is_moving = True
            self._wire.loop.call_at(when, self._move, context=_WIRE_CONTEXT)

    def _move(self) -> None:
        """Let arrive what is due, as far as the link lets it."""
        self._is_moving = False
        wire, transit = self._wire, self._transit
        now = wire.loop.time()
        if transit and transit[0][0] <= now and not wire.passes(self._here, self.peer_host):
            self._move_at(now + PROBE_S)
            return
        while transit and transit[0][0] <= now:
            _, data = transit.popleft()
            if data is None:
                transit.clear()
                self.other._end_arrived()
                return
            self._transit_bytes -= len(data)
            self.other._arrived(data)
        if transit:
            self._move_at(transit[0][0])

    # Receiving

    def _arrived(self, data: bytes) -> None:
        wire = self._wire
        wire.pieces_delivered += 1
        wire.bytes_delivered += len(data)
        if wire.trace is not None:
            wire.trace(self.peer_host, self._here, len(data), zlib.crc32(data))
        if self.is_closed:
            # Nobody is there (any more): the sender gets a reset.
            self.other._reset_later()
            return
        self._inbox += data
        self._read_soon()

    def _end_arrived(self) -> None:
        self._has_end = True
        self._read_soon()

    def _read_soon(self) -> None:
        if self._is_reading and not self._read_is_due and not self.is_closed:
            self._read_is_due = True
            self._wire.loop.call_soon(self._read, context=self.network.process.context)

    def _read(self) -> None:
        """What a readable socket makes the process do: one receive."""
        self._read_is_due = False
        if not self._is_reading or self.is_closed:
            return
        assert self._handler is not None
        if self._inbox:
            buffer = self._handler.get_buffer()
            size = min(len(buffer), len(self._inbox))
            buffer[:size] = self._inbox[:size]
            del self._inbox[:size]
            if not self.other.is_closed:
                self._wire.loop.call_soon(self.other._room_made, context=_WIRE_CONTEXT)
            self._handler.received(size)
            if self._inbox or self._has_end:
                self._read_soon()
        elif self._has_end:
            self._finish(None)

    def _room_made(self) -> None:
        if self._outbox and not self.is_closed:
            self._transmit()
            if not self._outbox:
                self._wire.loop.call_soon(self._drained, context=self.network.process.context)

    def _drained(self) -> None:
        if self.is_closed or self._outbox:
            return
        if self._is_closing:
            self._finish(None)
        elif self._handler is not None:
            self._handler.drained()

    def pause_reading(self) -> None:
        self._is_paused = True
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_paused = False
        if not self._is_reading and not self.is_closed and not self._is_closing:
            self._is_reading = True
            if self._inbox or self._has_end:
                self._read_soon()

    # Ending

    def close(self) -> None:
        self._finish(None)

    def close_when_sent(self) -> None:
        if not self._outbox:
            self._finish(None)
            return
        self._is_closing = True
        self.pause_reading()

    def abort(self) -> None:
        """The process of this end is dead: its system says so for it, if it has power."""
        if self.is_closed:
            return
        self.is_closed = True
        self._outbox.clear()
        self._unsent_bytes = 0
        self._handler = None
        if not self.network.host.is_powered:
            self._transit.clear()  # the other end finds out when it sends
        elif self._wire.random.random() < 0.5:
            self._put(None)
        else:
            self._transit.clear()
            self.other._reset_later()

    def _reset_later(self) -> None:
        """This end gets a reset from the other's machine, once one can get through."""
        wire = self._wire
        if self.is_closed:
            return
        if wire.passes(self.peer_host, self._here):
            delay_s = wire.delay_s(self.peer_host, self._here)
            wire.loop.call_later(delay_s, self._reset, context=self.network.process.context)
        else:
            wire.loop.call_later(PROBE_S, self._reset_later, context=_WIRE_CONTEXT)

    def _reset(self) -> None:
        self._finish(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def _finish(self, error: OSError | None) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._is_reading = False
        self._outbox.clear()
        self._unsent_bytes = 0
        self._inbox.clear()
        self.network.closed(self)
        if error is None:
            self._put(None)
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.closed(error)


_WIRE_CONTEXT = Context()
