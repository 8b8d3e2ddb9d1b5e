"""Broker sessions of the active controller.

A broker's session is kept alive by its heartbeats. It is over when the last is
`broker.session.timeout.ms` old, or when there is proof that the process is gone. Sessions are
not metadata: a controller that becomes active gives every broker the whole time again.
Source: Kafka's BrokerHeartbeatManager.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.node.metadata.image import BrokerImage


@dataclass(slots=True)
class Session:
    """One incarnation of a broker; times are monotonic milliseconds."""

    epoch: int
    heard_ms: int
    is_connected: bool = True


class BrokerSessions:
    """The sessions of all brokers, by id."""

    __slots__ = ("_sessions", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[int, Session] = {}

    def start(self, brokers: Iterable[BrokerImage], now_ms: int) -> None:
        """Start over: every unfenced broker counts as heard of now."""
        self._sessions = {
            broker.id: Session(broker.epoch, now_ms, is_connected=False)
            for broker in brokers
            if not broker.fenced
        }

    def heard(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """An incarnation of a broker has shown that it lives."""
        self._sessions[broker_id] = Session(epoch, now_ms)

    def disconnected(self, broker_id: int, epoch: int) -> None:
        """The connection that an incarnation was heard over has ended."""
        session = self._sessions.get(broker_id)
        if session is not None and session.epoch == epoch:
            session.is_connected = False

    def end(self, broker_id: int, epoch: int) -> None:
        """An incarnation is known to be gone; harmless for one that was replaced."""
        session = self._sessions.get(broker_id)
        if session is not None and session.epoch == epoch:
            del self._sessions[broker_id]

    def is_live(self, broker_id: int, now_ms: int) -> bool:
        """Return whether the broker was heard of within the time-out."""
        session = self._sessions.get(broker_id)
        return session is not None and now_ms - session.heard_ms < self.timeout_ms

    def holds_id(self, broker_id: int, now_ms: int) -> bool:
        """Whether another process must not take the broker's id: this one is live, and connected.

        A broker that restarts quickly need not wait for the end of its former session.
        """
        session = self._sessions.get(broker_id)
        return session is not None and session.is_connected and self.is_live(broker_id, now_ms)

    def heard_ms(self, broker_id: int) -> int | None:
        """Return when the broker was heard of last."""
        session = self._sessions.get(broker_id)
        return None if session is None else session.heard_ms

    def overdue(self, brokers: Iterable[BrokerImage], now_ms: int) -> list[BrokerImage]:
        """The unfenced brokers that have no live session."""
        return [
            broker
            for broker in brokers
            if not broker.fenced and not self.is_live(broker.id, now_ms)
        ]
