"""A thread that does a connector's tasks of administration, each at its interval."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final

_log = logging.getLogger(__name__)
RETRY_SECONDS: Final = 5.0
_STOP_SECONDS: Final = 10.0


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
