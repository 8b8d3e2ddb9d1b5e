"""A Processor's groups as state of Spark's: what runs in its Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from barnabas.streams.avro_format import avro_bytes, avro_value
from barnabas.streams.processor import Processor
from barnabas.streams.schemas import Maker, to_row

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Schemas:
    """The schemas that groups, rows, state and results are packed with."""

    group: str
    row: str
    state: str
    output: str


@dataclass(frozen=True)
class Makers:
    """The functions that make Python values of rows and of state."""

    record: Maker
    state: Maker


class GroupContext:
    """The Context of one group, for the time of one micro-batch."""

    def __init__(self, owner: ProcessorState, key: Any) -> None:
        self.key = key
        self.time = _EPOCH
        self._owner = owner
        self._state: Any = None
        self._is_read = False

    @property
    def state(self) -> Any:
        """The group's state."""
        if not self._is_read:
            self._state = self._owner.read_state()
            self._is_read = True
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._state = state
        self._is_read = True
        self._owner.write_state(state)

    def set_timer(self, at: datetime) -> None:
        """Set a timer."""
        self._owner.handle.registerTimer(_milliseconds(at))

    def cancel_timer(self, at: datetime) -> None:
        """Take back a timer."""
        self._owner.handle.deleteTimer(_milliseconds(at))

    def timers(self) -> list[datetime]:
        """Return the timers that are set."""
        return [_EPOCH + at * _MILLISECOND for at in self._owner.handle.listTimers()]


class ProcessorState(StatefulProcessor):
    """Gives rows and timers to a Processor."""

    handle: Any

    def __init__(
        self,
        processor: Processor[Any, Any, Any],
        schemas: Schemas,
        makers: Makers,
        key_names: Sequence[str],
    ) -> None:
        self._processor = processor
        self._schemas = schemas
        self._makers = makers
        self._key_names = key_names

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self._state = handle.getValueState("state", "state BINARY")

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[pd.DataFrame]:
        taken: list[tuple[Any, ...]] = []
        for frame in rows:
            names = ("time", "offset", "row")
            taken += zip(*(frame[name] for name in names), strict=True)
        taken.sort(key=lambda row: row[:2])
        group = bytes(key[0])
        context = GroupContext(self, self._key(group))
        made: list[tuple[bytes, Any, bytes]] = []
        for time, _, data in taken:
            context.time = _python_time(time)
            row = avro_value(self._schemas.row, data)
            record = self._makers.record.make(row)
            results = self._processor.on_record(record, context) or ()
            made += [(group, time, self._packed(result)) for result in results]
        yield _frame(made)

    def handleExpiredTimer(  # noqa: N802  Spark's name
        self,
        key: Any,
        timerValues: Any,  # noqa: N803  Spark's name
        expiredTimerInfo: Any,  # noqa: N803  Spark's name
    ) -> Iterator[pd.DataFrame]:
        at = expiredTimerInfo.getExpiryTimeInMs()
        group = bytes(key[0])
        context = GroupContext(self, self._key(group))
        context.time = _EPOCH + at * _MILLISECOND
        # Spark takes no row that is older than the watermark from an operator.
        now = max(at, timerValues.getCurrentWatermarkInMs())
        time = _pandas_time(now)
        results: Iterable[Any] = self._processor.on_timer(context.time, context) or ()
        yield _frame([(group, time, self._packed(result)) for result in results])

    def close(self) -> None:
        """Nothing is held."""

    def read_state(self) -> Any:
        """Return the state of the group at hand."""
        row = self._state.get()
        if row is None or row[0] is None:
            return None
        return self._makers.state.make(avro_value(self._schemas.state, bytes(row[0])))

    def write_state(self, state: Any) -> None:
        """Keep the state of the group at hand."""
        if state is None:
            self._state.clear()
        else:
            self._state.update((avro_bytes(self._schemas.state, to_row(state)),))

    def _key(self, group: bytes) -> Any:
        values = avro_value(self._schemas.group, group)
        if not self._key_names:
            return None
        return values[self._key_names[0]] if len(self._key_names) == 1 else values

    def _packed(self, result: Any) -> bytes:
        return avro_bytes(self._schemas.output, to_row(result))


def _frame(made: list[tuple[bytes, Any, bytes]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(made, columns=["group", "time", "made"])


def _python_time(time: Any) -> datetime:
    moment: datetime = time.to_pydatetime()
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _pandas_time(milliseconds: int) -> Any:
    import pandas as pd

    return pd.Timestamp(milliseconds, unit="ms")


def _milliseconds(at: datetime) -> int:
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return (at - _EPOCH) // _MILLISECOND
