"""Inputs of a run from outside: signals, and the dashboard's answers."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


class SignalsTo(AbstractContextManager[None]):
    """Hands SIGINT, SIGTERM and SIGHUP to a function, and gives them back afterwards."""

    def __init__(self, handler: Callable[[int], None]) -> None:
        self._handler = handler
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, lambda n, _: self._handler(n))

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)


def fetch_json(url: str) -> dict[str, Any] | None:
    """Return what a local URL answers, None where nobody does yet."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5.0) as answer:
            content: dict[str, Any] = json.load(answer)
            return content
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return None
