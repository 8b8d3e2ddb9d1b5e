"""A clock that stands still until it is moved."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class ManualTimer:
    """A callback that is due at `due_ms`."""

    due_ms: float
    callback: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


@dataclass(eq=False)
class ManualClock:
    """Wall and monotonic time are one number; `advance` runs the timers that fall due."""

    time_ms: int = 1_700_000_000_000
    timers: list[ManualTimer] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self.time_ms + delay_ms, callback)
        self.timers.append(timer)
        return timer

    def advance(self, duration_ms: int) -> None:
        """Let time pass, running timers in the order in which they are due."""
        end_ms = self.time_ms + duration_ms
        while True:
            self.timers = [timer for timer in self.timers if not timer.is_cancelled]
            due = [timer for timer in self.timers if timer.due_ms <= end_ms]
            if not due:
                break
            timer = min(due, key=lambda timer: timer.due_ms)
            self.timers.remove(timer)
            self.time_ms = max(self.time_ms, int(timer.due_ms))
            timer.callback()
        self.time_ms = end_ms
