"""State and timers of your own, for each group of rows: `Processor`.

@dataclass
class Charging:
    since: datetime
    kwh: float

class Watch(Processor[dict, Charging, dict]):
    state = Charging
    output = "station STRING, kwh DOUBLE, is_lost BOOLEAN"

    def on_record(self, record, context):
        charging = context.state or Charging(context.time, 0.0)
        charging.kwh += record["kwh"]
        context.state = charging
        context.set_timer(charging.since + timedelta(minutes=10))

    def on_timer(self, at, context):
        yield {"station": context.key, "kwh": context.state.kwh, "is_lost": True}
        context.state = None

stream(…).group_by("station").process(Watch())
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from barnabas.streams.schemas import SchemaLike

RowT_contra = TypeVar("RowT_contra", contravariant=True)
StateT = TypeVar("StateT")
OutT_co = TypeVar("OutT_co", covariant=True)


class Context(Protocol[StateT]):
    """A processor's access to one group."""

    @property
    def key(self) -> Any:
        """The group: the value of its column, or a dict of several."""

    @property
    def time(self) -> datetime:
        """The event time of the record, or the time for which the timer was set; in UTC."""

    @property
    def state(self) -> StateT | None:
        """The group's state; None before it is set, and after it is set to None.

        A state that was changed in place is kept when it is assigned again.
        """

    @state.setter
    def state(self, state: StateT | None) -> None: ...

    def set_timer(self, at: datetime) -> None:
        """Have `on_timer` called when the watermark has passed `at`; to say so twice is once."""

    def cancel_timer(self, at: datetime) -> None:
        """Take back a timer."""

    def timers(self) -> list[datetime]:
        """Return the timers that are set."""


class Processor(ABC, Generic[RowT_contra, StateT, OutT_co]):
    """Handles the rows of each group one by one, in the order of their event times.

    `record`, `state` and `output` are schemas: with a dataclass, rows are its instances, with DDL
    dicts. Yielded or returned values become rows of `output`. One instance serves many groups:
    what belongs to a group belongs in `context.state`.
    """

    record: ClassVar[SchemaLike | None] = None
    """None: a dict of all columns."""
    state: ClassVar[SchemaLike]
    output: ClassVar[SchemaLike]
    timers: ClassVar[Literal["event", "processing"]] = "event"
    """The time of timers: event time (the watermark) or the clock."""

    @abstractmethod
    def on_record(self, record: RowT_contra, context: Context[StateT]) -> Iterable[OutT_co] | None:
        """Handle a row; give none, one or several."""

    def on_timer(self, at: datetime, context: Context[StateT]) -> Iterable[OutT_co] | None:
        """Handle a timer that was set for `at`."""
        return None
