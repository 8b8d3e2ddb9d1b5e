"""Stands for the ways to other brokers (`BrokerPeers`), with one broker that answers as told."""

from collections.abc import Callable
from typing import Any

HERE, THERE = 1, 2


class OtherBrokers:
    """Node 1 asks node 2, whose answer `answer` makes of a request; an exception is raised."""

    node_id = HERE

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer
        self.requests: list[Any] = []
        self.is_known = True
        self.is_closed = False

    def channel(self, _purpose: str) -> "OtherBrokers":
        return self

    def reaches(self, broker_id: int) -> bool:
        return self.is_known and broker_id == THERE

    async def ask(self, broker_id: int, request: Any) -> Any:
        assert broker_id == THERE
        self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.is_closed = True
