"""Requests on their way: what this replica asks others, and who waits for its answers."""

import asyncio
import logging
from collections.abc import Callable

from barnabas.node.raft import wire_requests
from barnabas.node.raft.core.events import Event, Failure, ReplyReceived, RequestFailed, Send
from barnabas.node.raft.core.messages import Reply, Request
from barnabas.node.raft.interfaces import RaftTransport
from barnabas.protocol.errors import DecodeError, EncodeError

telemetry = logging.getLogger(__name__)


class Exchange:
    """`happened` receives every answer, and every request that gets none."""

    def __init__(
        self,
        transport: RaftTransport,
        cluster_id: str,
        timeout_ms: int,
        happened: Callable[[Event], None],
    ) -> None:
        self._transport = transport
        self._cluster_id = cluster_id
        self._timeout_ms = timeout_ms
        self._happened = happened
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._waiting: dict[int, tuple[Request, asyncio.Future[Reply]]] = {}
        self._next_token = 0

    # -- asking

    def send(self, effect: Send) -> None:
        """Ask another node, beside everything else."""
        task = asyncio.get_running_loop().create_task(self._ask(effect))
        self._tasks[effect.number] = task
        task.add_done_callback(lambda _: self._tasks.pop(effect.number, None))

    async def _ask(self, effect: Send) -> None:
        event: Event
        try:
            message = wire_requests.encode_request(
                effect.request, self._cluster_id, self._timeout_ms
            )
            response = await self._transport.send(
                effect.host, effect.port, message, self._timeout_ms
            )
            reply = wire_requests.decode_reply(effect.request, response)
            event = ReplyReceived(effect.peer_id, effect.number, reply)
        except OSError as error:
            event = RequestFailed(effect.peer_id, effect.number, _failure(error))
        except (DecodeError, EncodeError) as error:
            telemetry.warning(
                "%s to node %d (%s:%d) failed: %s",
                type(effect.request).__name__,
                effect.peer_id,
                effect.host,
                effect.port,
                error,
            )
            event = RequestFailed(effect.peer_id, effect.number, Failure.TIMED_OUT)
        self._happened(event)

    # -- answering

    def expect(self, asked: Request) -> tuple[int, asyncio.Future[Reply]]:
        """A token for a request that came in, and the answer to come."""
        self._next_token += 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        token = self._next_token
        self._waiting[token] = asked, future
        future.add_done_callback(lambda _: self._waiting.pop(token, None))
        return token, future

    def answer(self, token: int, reply: Reply, complete: Callable[[Reply, Request], Reply]) -> None:
        """Let an answer go, unless nobody waits for it any more.

        What it carries of the log, `complete` adds now: a moment later the log may be another's.
        """
        asked, future = self._waiting.get(token, (None, None))
        if asked is not None and future is not None and not future.done():
            future.set_result(complete(reply, asked))

    def fail_answers(self, failure: Exception) -> None:
        """There will be no answers: who waits for one gets `failure`."""
        for _, future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(failure)

    async def close(self, failure: Exception) -> None:
        """Give up all requests; who waits for an answer gets `failure`."""
        self.fail_answers(failure)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _failure(error: OSError) -> Failure:
    if isinstance(error, ConnectionRefusedError):
        return Failure.REFUSED
    return Failure.LOST if isinstance(error, ConnectionError) else Failure.TIMED_OUT
