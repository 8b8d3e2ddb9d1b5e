"""An admin client that is no network's, and knows of a leader no better than when it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, ClassVar


class StaleAdmin:
    """Gives one of `answers` for as long as it lives: an error, an offset, or groups and errors."""

    answers: ClassVar[list[Any]] = []
    asked_s: ClassVar[list[float]] = []
    """The time limit of each request."""

    def __init__(self, _settings: object = None) -> None:
        self._answer = self.answers.pop(0)

    @classmethod
    def begin(cls, *answers: Any) -> None:
        """Forget what was asked; clients that are made from here on give these answers."""
        cls.answers, cls.asked_s = list(answers), []

    def list_offsets(
        self, asked: Mapping[Any, Any], *, request_timeout: float, **_: object
    ) -> dict[Any, Future[Any]]:
        future = self._future(SimpleNamespace(offset=self._answer), request_timeout)
        return dict.fromkeys(asked, future)

    def list_consumer_groups(self, *, request_timeout: float) -> Future[Any]:
        given: Sequence[Any] = self._answer if isinstance(self._answer, tuple) else ()
        valid = [SimpleNamespace(group_id=one) for one in given if isinstance(one, str)]
        errors = [one for one in given if not isinstance(one, str)]
        return self._future(SimpleNamespace(valid=valid, errors=errors), request_timeout)

    def _future(self, answer: Any, timeout_s: float) -> Future[Any]:
        self.asked_s.append(timeout_s)
        future: Future[Any] = Future()
        if isinstance(self._answer, Exception):
            future.set_exception(self._answer)
        else:
            future.set_result(answer)
        return future
