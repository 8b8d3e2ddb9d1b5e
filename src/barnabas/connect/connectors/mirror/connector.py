"""The parts that MirrorMaker's connectors share: a flow, a schedule, checks of users' offsets.

Source: MirrorUtils (Kafka 4.3), for the texts of the checks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, ClassVar, Final

from barnabas.connect.connectors.base import Settings, SourceConnector
from barnabas.connect.connectors.mirror.cluster import Cluster
from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)
RETRY_SECONDS: Final = 5.0
_STOP_SECONDS: Final = 10.0
_INT_MAX: Final = 2**31 - 1


class MirrorConnector(SourceConnector):
    """A connector of one flow. A source partition has a text under each key of `partition_texts`.

    `has_partition`: it also has the number of a partition. `has_zero_offset`: its offset is 0.
    """

    partition_texts: ClassVar[Sequence[str]]
    has_partition: ClassVar[bool] = True
    has_zero_offset: ClassVar[bool] = True
    _flow: Flow | None = None
    _schedule: Schedule | None = None
    _clusters: tuple[Cluster, ...] = ()

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: tasks are what is read side by side, and each has one split."""
        return False

    def _dealt(
        self, flow: Flow, tasks_max: int, key: str, items: Sequence[str]
    ) -> list[Mapping[str, str]]:
        """Deal out items to tasks, each of which has its own under the key."""
        tasks = min(tasks_max, len(items))
        return [
            {**flow.settings, key: ",".join(items[index::tasks]), "task.index": str(index)}
            for index in range(tasks)
        ]

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store; None is to be forgotten."""
        for partition, offset in offsets:
            if offset is None:
                continue
            for key in self.partition_texts:
                _check_text(partition, key)
            if self.has_partition:
                _check_partition(partition)
            _check_offset(partition, offset, is_zero=self.has_zero_offset)
        return True

    def stop(self) -> None:
        """End the watch."""
        if self._schedule is not None:
            self._schedule.stop()
        for cluster in self._clusters:
            cluster.close()


@dataclass(slots=True)
class _Duty:
    work: Callable[[], None]
    interval_s: float
    text: str
    due_s: float = 0.0


class Schedule:
    """Does what was added once at the start, in order, and then again and again.

    What fails is logged and tried again after `RETRY_SECONDS`, or its interval if that is shorter.
    """

    def __init__(self, name: str) -> None:
        self._duties: list[_Duty] = []
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=f"mirror-{name}", daemon=True)

    def once(
        self, work: Callable[[], None], text: str, later: Callable[[], None] | None = None
    ) -> None:
        """Do something now, and if that fails again later, or then what takes its place."""
        duty = _Duty(work, float("inf"), text)
        if not self._do(duty):
            duty.work = later or work
            self._duties.append(duty)

    def repeat(self, work: Callable[[], None], interval_s: float | None, text: str) -> None:
        """Do something every so often, for the first time after the interval."""
        if interval_s is not None:
            self._duties.append(_Duty(work, interval_s, text, time.monotonic() + interval_s))

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is being done may still be done."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while self._duties:
            next_s = min(duty.due_s for duty in self._duties)
            if self._stopping.wait(max(0.0, next_s - time.monotonic())):
                return
            for duty in list(self._duties):
                if duty.due_s > time.monotonic():
                    continue
                if self._stopping.is_set():
                    return
                if self._do(duty) and duty.interval_s == float("inf"):
                    self._duties.remove(duty)

    def _do(self, duty: _Duty) -> bool:
        try:
            duty.work()
        except Exception as error:  # noqa: BLE001  # a thread that must live on
            _log.warning("%s failed: %s", duty.text, error)
            duty.due_s = time.monotonic() + min(RETRY_SECONDS, duty.interval_s)
            return False
        duty.due_s = time.monotonic() + duty.interval_s
        return True


def _check_text(partition: JsonMap | None, key: str) -> None:
    value = _value(partition, key)
    if not isinstance(value, str):
        raise _wrong(partition, key, value, "which must be a string")


def _check_partition(partition: JsonMap | None) -> None:
    value = _value(partition, "partition")
    if not _is_int(value) or value > _INT_MAX:
        raise _wrong(partition, "partition", value, "which must be an integer")
    if value < 0:
        raise _wrong(partition, "partition", value, "which cannot be negative")


def _check_offset(partition: JsonMap, offset: JsonMap, *, is_zero: bool) -> None:
    where = f"Source offset {_java(offset)} for source partition {_java(partition)}"
    if "offset" not in offset:
        raise ConnectError(f"{where} is missing the 'offset' key, which is required")
    value = offset["offset"]
    said = f"{where} has an invalid value {value} for the 'offset' key"
    if not _is_int(value):
        raise ConnectError(f"{said}, which must be an integer")
    if is_zero and value != 0:
        raise ConnectError(f"{said}; the only accepted value is 0")
    if value < 0:
        raise ConnectError(f"{said}, which cannot be negative")


def _value(partition: JsonMap | None, key: str) -> Any:
    if partition is None:
        raise ConnectError("Source partitions may not be null")
    if key not in partition:
        raise ConnectError(
            f"Source partition {_java(partition)} is missing the '{key}' key, which is required"
        )
    return partition[key]


def _wrong(partition: JsonMap | None, key: str, value: Any, text: str) -> ConnectError:
    return ConnectError(
        f"Source partition {_java(partition or {})} has an invalid value {value} for the "
        f"'{key}' key, {text}"
    )


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _java(mapping: JsonMap) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in mapping.items()) + "}"
