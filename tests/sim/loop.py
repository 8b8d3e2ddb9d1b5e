"""An event loop on virtual time: one thread, no waiting, the same order in every run.

Time stands still while anything can run and then jumps to the next timer. Every callback belongs
to the process in whose context it was scheduled (nodes and clients are processes, all in this one
loop): what belongs to a killed process is dropped, what belongs to a stopped one waits until it
continues. Tasks of killed processes are kept until the end, so that the garbage collector does not
run their `finally` blocks at arbitrary times.
"""

import asyncio
import heapq
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any

CALLBACKS_PER_INSTANT_MAX = 300_000
"""More without time passing means that somebody spins."""
TASKS_KEPT_MIN = 1024
EXECUTOR_DELAY_S = 0.001


class LivelockError(Exception):
    """The loop runs callbacks and time does not pass."""


class Process:
    """One incarnation of a node or client. Callbacks scheduled in `context` belong to it."""

    __slots__ = ("context", "is_alive", "name", "number", "stalled", "stop_count")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.is_alive = True
        self.stop_count = 0
        self.stalled: list[Handle] = []
        """Callbacks that became due while the process is stopped."""
        self.context = Context()
        self.context.run(PROCESS.set, self)

    def __repr__(self) -> str:
        return f"{self.name}#{self.number}"


PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
"""Whose code is running; None for the simulator's own."""


class Handle:
    """A callback that is to run; what `call_soon` and `call_at` return."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_when", "process")

    def __init__(
        self, callback: Callable[..., Any], args: tuple[Any, ...], context: Context | None
    ) -> None:
        if context is None:
            context = copy_context()
        self._callback: Callable[..., Any] | None = callback
        self._args = args
        self._context = context
        self._cancelled = False
        self._when = 0.0
        self.process: Process | None = context.get(PROCESS)

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = None
        self._args = ()

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when

    def run(self) -> None:
        assert self._callback is not None
        self._context.run(self._callback, *self._args)


_EventLoop: Any = asyncio.AbstractEventLoop
"""Its many methods that nothing here calls stay abstract, which type checkers mind."""


class SimLoop(_EventLoop):
    """See the module. Times are seconds since the simulation began."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._sequence = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = TASKS_KEPT_MIN
        self._is_closed = False
        self._debug_name = 0
        self.callback_count = 0
        self.on_exception: Callable[[str, BaseException | None], None] | None = None
        """Told of what escapes from callbacks and tasks of live processes."""

    # Time and callbacks

    def time(self) -> float:
        return self._now_s

    @property
    def now_ms(self) -> int:
        """Virtual milliseconds since the simulation began."""
        return int(self._now_s * 1000)

    def call_soon(  # type: ignore[override]  # our own handles
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Handle:
        return self.call_at(self._now_s + max(delay, 0.0), callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, context)
        handle._when = when
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, handle))
        return handle

    # Processes

    def kill(self, process: Process) -> None:
        """End a process at once: nothing of it runs any more."""
        process.is_alive = False
        process.stalled.clear()

    def stop_process(self, process: Process) -> None:
        """Let a process stand still (SIGSTOP) until each stop has its `continue_process`."""
        process.stop_count += 1

    def continue_process(self, process: Process) -> None:
        """Let it continue, with everything that has become due in the meantime."""
        assert process.stop_count > 0, process
        process.stop_count -= 1
        if not process.stop_count:
            self._ready.extend(process.stalled)
            process.stalled.clear()

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Run until `future` (or a coroutine) is done; RuntimeError if nothing is left to run."""
        previous = events._get_running_loop()
        assert previous is None, "a loop is running in this thread"
        events._set_running_loop(self)
        try:
            task = asyncio.ensure_future(future, loop=self)
            self._run_ready()
            while not task.done():
                self._pass_time()
                self._run_ready()
        finally:
            events._set_running_loop(None)
        return task.result()

    def _run_ready(self) -> None:
        """Run until nothing is ready any more."""
        ready = self._ready
        budget = CALLBACKS_PER_INSTANT_MAX
        while ready:
            self._run(ready.popleft())
            budget -= 1
            if not budget:
                names = sorted({repr(handle.process) for handle in ready})
                raise LivelockError(f"at {self._now_s:.3f} s: {', '.join(names)}")

    def _pass_time(self) -> None:
        """Let time pass until something is due. RuntimeError if nothing ever will be."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise RuntimeError(f"nothing is left to run at {self._now_s:.3f} s")
        self._now_s = max(self._now_s, timers[0][0])
        while timers and timers[0][0] <= self._now_s:
            ready.append(heapq.heappop(timers)[2])

    def _run(self, handle: Handle) -> None:
        if handle._cancelled:
            return
        process = handle.process
        if process is not None:
            if not process.is_alive:
                return
            if process.stop_count:
                process.stalled.append(handle)
                return
        self.callback_count += 1
        try:
            handle.run()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  # it is reported, as asyncio's loop does
            self.call_exception_handler(
                {"message": f"a callback failed: {handle._callback}", "exception": error}
            )

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        source = context.get("future") or context.get("task")
        if self._is_closed or self.on_exception is None:
            return
        message = str(context.get("message"))
        if isinstance(source, asyncio.Task):
            message += f" ({source.get_name()}: {source.get_coro()})"
        self.on_exception(message, context.get("exception"))

    # Futures and tasks

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
        **options: Any,
    ) -> asyncio.Task[Any]:
        if name is None:
            process = PROCESS.get() if context is None else context.get(PROCESS)
            self._debug_name += 1
            name = f"{process}/{self._debug_name}"
        task = asyncio.Task(coro, loop=self, name=name, context=context, **options)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.append(task)
        if len(self._tasks) >= self._prune_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._prune_at = max(TASKS_KEPT_MIN, 2 * len(self._tasks))
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Run `func` here, a little later: threads would have an order of their own."""
        future = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001  # it goes to whoever waits
                future.set_exception(error)

        self.call_later(EXECUTOR_DELAY_S, run)
        return future

    # What asyncio asks

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """End everything that is left, quietly: it belongs to processes that are no more."""
        self._is_closed = True
        self._ready.clear()
        self._timers.clear()
        hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
        events._set_running_loop(self)
        try:
            for task in self._tasks:
                if not task.done():
                    with suppress(BaseException):  # a dead process's last words
                        task.get_coro().close()  # type: ignore[union-attr]
            self._tasks.clear()
        finally:
            events._set_running_loop(None)
            sys.unraisablehook = hook
