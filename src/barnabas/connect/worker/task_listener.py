"""Hears how a task fares, from the engine's threads, and writes its status."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.connect.engine.base import TaskId
from barnabas.connect.worker.state import (
    FAILED,
    PAUSED,
    RUNNING,
    UNASSIGNED,
    TopicStatus,
)

if TYPE_CHECKING:
    from barnabas.connect.worker.running import Worker

_log = logging.getLogger(__name__)


class StatusListener:
    """A `TaskListener`. After `leave` nothing more is written: the task is somebody else's."""

    def __init__(self, task: TaskId, worker: Worker, confirm: Callable[[], None]) -> None:
        self._task, self._worker, self._confirm = task, worker, confirm
        self._topics: set[str] = set()
        self._lock = threading.Lock()
        self._is_left = False
        self.is_failed = False

    def leave(self) -> None:
        """Hear no more."""
        with self._lock:
            self._is_left = True

    def _say(self, state: str, error: BaseException | None = None, *, safely: bool = False) -> None:
        with self._lock:
            if not self._is_left:
                self._worker.put_status(self._task, state, error, safely=safely)

    def confirm(self) -> None:
        """See TaskListener."""
        self._confirm()

    def started(self) -> None:
        """See TaskListener."""
        self._say(RUNNING)

    def paused(self) -> None:
        """See TaskListener."""
        self._say(PAUSED)

    def resumed(self) -> None:
        """See TaskListener."""
        self._say(RUNNING)

    def failed(self, error: BaseException) -> None:
        """See TaskListener."""
        _log.error("task %s failed: %s", self._task, error, exc_info=error)
        self.is_failed = True
        self._say(FAILED, error, safely=True)
        if not self._is_left:
            self._worker.on_task_failed(self._task, error)

    def stopped(self) -> None:
        """See TaskListener."""
        self._say(UNASSIGNED, safely=True)

    def topics_used(self, topics: Sequence[str]) -> None:
        """See TaskListener."""
        if str(self._worker.settings.get("topic.tracking.enable", "true")).lower() != "true":
            return
        now_ms = time.time_ns() // 1_000_000
        for topic in topics:
            with self._lock:
                if topic in self._topics or self._is_left:
                    continue
                self._topics.add(topic)
            status = TopicStatus(topic, self._task.connector, self._task.task, now_ms)
            self._worker.store.put_topic(status)

    def forget_topics(self) -> None:
        """The connector's topics were reset: each is told again when it is used."""
        with self._lock:
            self._topics.clear()
