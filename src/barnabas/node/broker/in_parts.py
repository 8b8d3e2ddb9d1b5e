"""Requests that ask about many things: each is answered once, and a part of them at a time.

`route` takes an `Each` for an API whose elements are answered each for itself. Then

- what a request names repeatedly is answered once, so that an answer cannot be many times as large
  as what the node holds. Kafka answers it as often; its clients put answers into a map;
- between two parts other connections have their turn;
- an answer larger than `socket.request.max.bytes` ends the connection, before it is encoded whole.

`decided_in_parts` is for what the controller decides: a part is one decision, with one write to the
metadata log, so parts are larger.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.base.peer_lines import peer_logger
from barnabas.node.broker.context import RequestContext
from barnabas.protocol.answers import encode_answer
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.schema import Message

PART_ELEMENTS_MAX = 32
DECIDED_ELEMENTS_MAX = 512
"""Deciding a change of configurations takes some ten microseconds for each."""

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)

telemetry = peer_logger(__name__)


def itself(element: Hashable) -> Hashable:
    """The key of elements that are names."""
    return element


@dataclass(frozen=True, slots=True)
class Each:
    """The list of a request, and the list of its response with an element for each."""

    asked: str
    answered: str
    key: Callable[[Any], Hashable] = itself
    """Elements with equal keys are one."""
    merge: Callable[[Any, Any], None] | None = None
    """Adds to an element what a later one of its key asks; None: the later one adds nothing."""

    def once(self, request: Message) -> bool:
        """Leave each element in the request once; whether there are more than one part takes."""
        elements = getattr(request, self.asked)
        if not elements or len(elements) == 1:
            return False
        kept: dict[Hashable, Any] = {}
        for element in elements:
            key = self.key(element)
            if key not in kept:
                kept[key] = element
            elif self.merge is not None:
                self.merge(kept[key], element)
        if len(kept) < len(elements):
            setattr(request, self.asked, list(kept.values()))
        return len(kept) > PART_ELEMENTS_MAX

    async def answer(
        self,
        context: RequestContext,
        request: Req,
        handle: Callable[[Req], Resp | Awaitable[Resp]],
    ) -> Resp:
        """Answer part by part. Raises ConnectionAbortedError for an answer that is too large."""
        size_max_bytes = context.connection.listener.frame_size_max_bytes
        elements, size_bytes = getattr(request, self.asked), 0
        whole: Resp | None = None
        for start in range(0, len(elements), PART_ELEMENTS_MAX):
            setattr(request, self.asked, elements[start : start + PART_ELEMENTS_MAX])
            result = handle(request)
            response = result if isinstance(result, Message) else await result
            size_bytes += sum(map(len, encode_answer(response, context.api_version)))
            if size_bytes > size_max_bytes:
                name = ApiKey(context.api_key).name
                telemetry.warning(
                    "closing %s: its %s asks for more than %d bytes",
                    *(context.client_host, name, size_max_bytes),
                )
                raise ConnectionAbortedError
            if whole is None:
                whole = response
            else:
                getattr(whole, self.answered).extend(getattr(response, self.answered))
            await asyncio.sleep(0)
        assert whole is not None, "a request of one part is answered at once"
        return whole


async def decided_in_parts(each: Each, request: Req, ask: Callable[[Req], Awaitable[Resp]]) -> Resp:
    """The controller's answer to a request whose elements it decides each for itself.

    Elements with equal keys are asked for together, as it refuses what is named repeatedly.
    """
    whole: Resp | None = None
    for part in _parts(getattr(request, each.asked), each.key):
        if whole is not None:
            await asyncio.sleep(0)
        setattr(request, each.asked, part)
        response = await ask(request)
        if whole is None:
            whole = response
        else:
            getattr(whole, each.answered).extend(getattr(response, each.answered))
    assert whole is not None, "there is a part at least"
    return whole


def _parts(elements: Iterable[Any], key: Callable[[Any], Hashable]) -> Iterator[list[Any]]:
    by_key: dict[Hashable, list[Any]] = {}
    for element in elements:
        by_key.setdefault(key(element), []).append(element)
    part: list[Any] = []
    for equal in by_key.values():
        part += equal[:2]  # more are refused as two are
        if len(part) >= DECIDED_ELEMENTS_MAX:
            yield part
            part = []
    if part or not by_key:
        yield part
