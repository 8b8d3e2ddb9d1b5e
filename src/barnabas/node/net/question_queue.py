"""A queue of questions for other nodes: one request under way, the next has all that came since.

Questions are queued by lane: a node, or those of its questions that may be under way at the same
time as others. A request takes along all questions that wait when it can leave, each key once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from barnabas.protocol.errors import EncodeError
from barnabas.protocol.schema import Message

Lane = TypeVar("Lane", bound=Hashable)
Question = TypeVar("Question")

WAITING_MAX = 100_000
"""Questions that may wait in one queue. More than that are refused."""

telemetry = logging.getLogger(__name__)


class _GivenUpError(ConnectionAbortedError):
    """The event loop ended while a question waited."""


class QuestionQueue(Generic[Lane, Question]):
    """Asks in batches. Every question that is taken is answered, or fails, once."""

    def __init__(
        self,
        ask: Callable[[Lane, Message], Awaitable[Any]],
        request: Callable[[Lane, list[Question]], Message | None],
        answered: Callable[[Lane, Iterator[Question], Any], None],
        failed: Callable[[Lane, list[Question], Exception], None],
        *,
        key: Callable[[Question], Hashable],
        batch_max: int,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        """`ask` sends a request and raises OSError or EncodeError, which `failed` then gets.

        `request` makes one of questions with different keys, at most `batch_max`; None: they need
        not be asked any more. `answered` tells the questions if an answer is wrong. It
        answers each before it takes the next: if it raises, or ends before it took the last, that
        one and those behind it fail.
        """
        self._ask = ask
        self._request = request
        self._answered = answered
        self._failed = failed
        self._key = key
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self._waiting: dict[Lane, list[Question]] = {}
        self._waiting_count = 0
        self._tasks: dict[Lane, asyncio.Future[None]] = {}
        """The one request under way in each lane."""
        self._is_closed = False

    def put(self, lane: Lane, question: Question) -> bool:
        """Ask as soon as may be; False if the queue is full, or closed."""
        if self._is_closed or self._waiting_count >= self._waiting_max:
            return False
        self._waiting.setdefault(lane, []).append(question)
        self._waiting_count += 1
        self._start(lane)
        return True

    async def close(self) -> None:
        """Take no more questions, and return when all that were taken have their answers.

        The connections must have been closed before: then every one fails at once.
        """
        self._is_closed = True
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _start(self, lane: Lane) -> None:
        if lane in self._waiting and lane not in self._tasks:
            # Questions that are put before its first step go along.
            self._tasks[lane] = task = asyncio.ensure_future(self._send(lane))
            task.add_done_callback(partial(self._ended, lane))

    async def _send(self, lane: Lane) -> None:
        unanswered = deque(self._take(lane))
        try:
            request = self._request(lane, list(unanswered))
            if request is not None:
                response = await self._ask(lane, request)
                self._answered(lane, _one_by_one(unanswered), response)
                if unanswered:
                    raise AssertionError(f"{len(unanswered)} questions were left without an answer")
        except (OSError, EncodeError) as error:
            self._failed(lane, list(unanswered), error)
        except asyncio.CancelledError:
            self._failed(lane, list(unanswered), _GivenUpError())
            raise
        except Exception as error:  # noqa: BLE001  # our own fault: logged, and nobody waits for ever
            telemetry.exception("asking %s failed", lane)
            self._failed(lane, list(unanswered), error)

    def _ended(self, lane: Lane, task: "asyncio.Future[None]") -> None:
        del self._tasks[lane]
        if not task.cancelled():
            self._start(lane)
            return
        # Nobody else cancels it: the event loop ends, and would run no other request.
        self._is_closed = True
        waiting = self._waiting.pop(lane, [])
        self._waiting_count -= len(waiting)
        if waiting:
            self._failed(lane, waiting, _GivenUpError())

    def _take(self, lane: Lane) -> list[Question]:
        """The questions of the next request; the others go on waiting, in their order."""
        batch: dict[Hashable, Question] = {}
        later = []
        for question in self._waiting.pop(lane):
            key = self._key(question)
            if key in batch or len(batch) == self._batch_max:
                later.append(question)
            else:
                batch[key] = question
        if later:
            self._waiting[lane] = later
        self._waiting_count -= len(batch)
        return list(batch.values())


def _one_by_one(unanswered: deque[Question]) -> Iterator[Question]:
    """The questions in order; each is taken out when it has its answer."""
    while unanswered:
        yield unanswered[0]
        unanswered.popleft()
