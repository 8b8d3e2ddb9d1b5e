"""A connector's owner asks it for its tasks, and has the leader write them.

Source: org.apache.kafka.connect.runtime.distributed.DistributedHerder.reconfigureConnector and
publishConnectorTaskConfigs (Kafka 4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from barnabas.base.backoff import doubled
from barnabas.connect.errors.requests import RequestError
from barnabas.connect.worker.distributed.position import Position
from barnabas.connect.worker.distributed.ticks import Ticks
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.state import STARTED, Properties, tasks_changed
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)
_BACKOFF_S: Final = 0.25
_BACKOFF_S_MAX: Final = 60.0


class TaskConfigs:
    """`write` does it as the leader, `send` sends them to the leader at a URL."""

    def __init__(
        self,
        position: Position,
        worker: Worker,
        ticks: Ticks,
        *,
        write: Callable[[str, Sequence[Properties]], None],
        send: Callable[[str, str, Sequence[Properties]], None],
    ) -> None:
        self._position = position
        self._worker = worker
        self._ticks = ticks
        self._write = write
        self._send = send
        self._pool = ThreadPoolExecutor(1, "connect-forward")

    def request(self, name: str) -> None:
        """Ask a connector for its tasks soon; from any thread."""
        self._ticks.post(lambda: self._reconfigure(name, 0))

    def _reconfigure(self, name: str, attempt: int) -> None:
        state = self._position.state
        if not self._worker.is_running(name) or state.target_states.get(name) != STARTED:
            return
        config = state.connectors.get(name)
        if config is None:
            return
        try:
            configs = self._worker.raw_task_configs(name, config)
            if not tasks_changed(state, name, configs):
                return
            if self._position.is_leader:
                self._write(name, configs)
                return
        except Exception as error:  # noqa: BLE001  a connector of a user's
            self._again(name, attempt, error)
            return
        self._pool.submit(self._publish, name, configs, attempt)

    def _publish(self, name: str, configs: Sequence[Properties], attempt: int) -> None:
        url = self._position.leader_url
        try:
            if url is None:
                raise RequestError("the leader's URL is not known now")
            self._send(url, name, configs)
        except ConnectError as error:
            self._again(name, attempt, error)

    def _again(self, name: str, attempt: int, error: Exception) -> None:
        tell = _log.info if attempt == 0 else _log.error
        tell("tasks of %s could not be configured, trying again: %s", name, error)
        pause_s = doubled(_BACKOFF_S, _BACKOFF_S_MAX, attempt)
        self._ticks.post(lambda: self._reconfigure(name, attempt + 1), pause_s)

    def close(self) -> None:
        """End; what is sent now is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
