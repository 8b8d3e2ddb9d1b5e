"""Work on large schemas in a thread, so that the event loop goes on serving other requests.

To parse and compare a megabyte of schema takes seconds. The thread works on a state that nobody
else changes, and with separate formats: parsed schemas are completed when they are first asked, and
may not be shared between threads.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from barnabas.registry import errors
from barnabas.registry.core.content import resolve
from barnabas.registry.core.decision import Formats, View
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import SchemaValue

LARGE_BYTES = 8 * 1024
"""Bodies of requests that are longer are large: the slowest shorter ones take a quarter second."""
WAITING_MAX = 64
"""Large requests that wait or are under way; more are refused."""

Result = TypeVar("Result")


def is_large(view: View, schema: SchemaValue) -> bool:
    """Return whether a stored schema, with all that it refers to, is large to parse."""
    try:
        _, resolved = resolve(view, schema.subject, schema.references, live_only=False)
    except RegistryError:
        return False  # who parses it finds that too, at once
    return len(schema.text) + sum(len(target.text) for target in resolved) > LARGE_BYTES


class LargeWork:
    """One thread; its work is done in the order in which it came."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "registry-large")
        self._formats: Formats | None = None
        self._waiting = 0

    async def run(self, work: Callable[[View], Result], view: View) -> Result:
        """Do work on a view whose state stays as it is until then.

        Raises RegistryError 50001 if too much waits, or it is closed before the work begins.

        If the caller is cancelled, work that has begun goes on, and may then see the state change:
        its result is lost.
        """
        if self._waiting >= WAITING_MAX:
            raise RegistryError(errors.STORE_ERROR, "too many large schemas are waiting; try again")
        if self._formats is None:
            self._formats = view.formats.apart()
        apart = View(view.state, self._formats, view.defaults)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, apart)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RegistryError(errors.STORE_ERROR, "the registry is stopping; try again") from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Drop what waits."""
        self._thread.shutdown(wait=False, cancel_futures=True)
