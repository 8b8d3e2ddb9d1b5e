"""Look-ups by time, run in the node's turns: small ones at once, others later."""

import asyncio
import logging
from collections.abc import Callable

from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.log_state import LogState
from barnabas.node.log.results import FoundOffset, LookedUp
from barnabas.node.log.turns import Begun, Steps
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode

IsWanted = Callable[[], bool]

telemetry = logging.getLogger(__name__)


def always() -> bool:
    """The caller waits, however long it takes."""
    return True


def look_up(
    log: LogState, steps: Steps[FoundOffset | None], is_wanted: IsWanted
) -> LookedUp | Promise[LookedUp]:
    """Return the result of `steps`, or a promise if they do not fit into this turn of the event
    loop.

    Raises LogDirFailure; a promise has KAFKA_STORAGE_ERROR instead.
    """
    guarded = _guarded(log, steps)
    begun = log.log_directory.turns.begin(guarded)
    if not isinstance(begun, Begun):
        return begun
    promise: Promise[LookedUp] = Promise()
    log.log_directory.turns.keep(
        asyncio.ensure_future(_look_up_later(log, guarded, begun, is_wanted, promise))
    )
    return promise


async def _look_up_later(
    log: LogState,
    steps: Steps[FoundOffset | None],
    begun: Begun,
    is_wanted: IsWanted,
    promise: Promise[LookedUp],
) -> None:
    directory = log.log_directory
    result: LookedUp
    try:
        result = await directory.turns.run(steps, directory.clock, is_wanted, begun.aside)
    except LogDirFailure:
        result = ErrorCode.KAFKA_STORAGE_ERROR
    except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
        telemetry.exception("a look-up by time in %s failed", log.topic_partition)
        result = ErrorCode.UNKNOWN_SERVER_ERROR
    promise.settle(result)


def _guarded(log: LogState, steps: Steps[FoundOffset | None]) -> Steps[FoundOffset | None]:
    try:
        return (yield from steps)
    except OSError as error:
        raise log.fail(error) from error
