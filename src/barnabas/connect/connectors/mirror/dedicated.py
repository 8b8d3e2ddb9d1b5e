"""Runs the flows of a mirror maker's file in this process, each with a worker of its own.

There is no REST interface: processes with the same file share a group, but their leader cannot be
told of tasks by the others, so one process serves a flow. Source: MirrorMaker (Kafka 4.3).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final

from barnabas.connect.config.providers import ConfigProviders
from barnabas.connect.connectors.mirror.maker import FlowPlan, read_flows
from barnabas.connect.errors.requests import ElsewhereError, RequestError
from barnabas.connect.worker.distributed.herder import DistributedHerder
from barnabas.connect.worker.herder import Herder
from barnabas.connect.worker.making import make_herder
from barnabas.connect.worker.secrets import Secrets
from barnabas.schemas.data.errors import ConfigError, ConnectError

START_SECONDS: Final = 120.0
_CHANGING: Final = 409
_RETRY_SECONDS: Final = 0.2
_log = logging.getLogger(__name__)


class DedicatedMirror:
    """All flows of a file that are to run in this process."""

    def __init__(self, given: Mapping[str, str], targets: tuple[str, ...] = ()) -> None:
        self._providers = ConfigProviders.of_worker(given)
        self.flows = [flow for flow in read_flows(given) if not targets or flow.target in targets]
        if not self.flows:
            raise ConfigError("no flow is enabled: set A->B.enabled=true for clusters A and B")
        self._herders: list[Herder] = []
        self._secrets: list[Secrets] = []

    def start(self) -> None:
        """Start all; returns once their connectors are configured. Raises ConnectError."""
        for flow in self.flows:
            self._start(flow)

    def _start(self, flow: FlowPlan) -> None:
        resolve = Secrets(self._providers)
        resolve.guard_logs()
        self._secrets.append(resolve)
        name = f"{flow.source}->{flow.target}"
        # No REST interface: the address only tells workers apart.
        herder = make_herder(resolve(flow.worker), f"mirror://{name}", resolve=resolve)
        self._herders.append(herder)
        herder.start()
        assert isinstance(herder, DistributedHerder)
        if not herder.wait_until_ready(START_SECONDS):
            raise ConnectError(f"the worker of {name} has not joined its group")
        for connector, config in flow.connectors.items():
            self._configure(herder, name, connector, config)

    def _configure(
        self, herder: Herder, flow: str, connector: str, config: Mapping[str, str]
    ) -> None:
        if herder.store.snapshot().connectors.get(connector) == config:
            return  # it runs on, with its tasks
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                herder.put(connector, dict(config), None, may_replace=True)
            except ElsewhereError as error:
                # Another process leads, and has the same file.
                _log.info("%s: %s is left to the leader (%s)", flow, connector, error)
            except RequestError as error:
                if error.status == _CHANGING and time.monotonic() < deadline:
                    time.sleep(_RETRY_SECONDS)  # the group deals anew just now
                    continue
                # As with Kafka's, the others of the file run nevertheless.
                _log.error("%s: %s cannot be configured: %s", flow, connector, error)
            return

    def states(self) -> dict[str, dict[str, object]]:
        """Return the states of the connectors by flow and name."""
        return {
            f"{flow.source}->{flow.target}": {
                name: herder.status(name) for name in herder.connectors()
            }
            for flow, herder in zip(self.flows, self._herders, strict=False)
        }

    def close(self) -> None:
        """Stop all."""
        for herder in self._herders:
            herder.close()
        self._providers.close()
        for secrets in reversed(self._secrets):
            secrets.leave_logs()
