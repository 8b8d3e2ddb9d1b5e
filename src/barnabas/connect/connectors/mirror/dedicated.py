"""Runs the flows of a mirror maker's file in this process, each with a separate worker.

There is no REST interface: processes with the same file share a group, but the others cannot report
tasks to their leader, so one process serves a flow. Source: MirrorMaker (Kafka 4.3).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.connect.config.client_overrides import ALLOWLIST, unsafe
from barnabas.connect.config.providers import ConfigProviders
from barnabas.connect.config.values import missing, names, with_prefix
from barnabas.connect.connectors.mirror import settings as definitions
from barnabas.connect.connectors.mirror.flow import client_names, is_client_setting
from barnabas.connect.errors.requests import ElsewhereError, RequestError
from barnabas.connect.worker.distributed.herder import DistributedHerder
from barnabas.connect.worker.herder import Herder
from barnabas.connect.worker.making import make_herder
from barnabas.connect.worker.secrets import Secrets
from barnabas.schemas.data.errors import ConfigError, ConnectError

# The file of Kafka's connect-mirror-maker.sh: its clusters and flows, as workers and connectors.
#
# `clusters` names the clusters, `A.` begins a cluster's settings, `A->B.` a flow's. Each flow has
# its own worker in the target, whose topics and group are named after the source. Source:
# MirrorMakerConfig (Kafka 4.3).

_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CLIENTS: Final = ("consumer", "producer", "admin")
_WORKER: Final = (
    *("offset.storage", "config.storage", "status.storage", "key.converter", "value.converter"),
    *("header.converter", "task", "worker", "replication.policy", "config.providers", "barnabas."),
    "connector.client.config.override.",
)
_CONNECTORS: Final = {
    "MirrorSourceConnector": definitions.SOURCE,
    "MirrorHeartbeatConnector": definitions.HEARTBEAT,
    "MirrorCheckpointConnector": definitions.CHECKPOINT,
}
_COMMON: Final = ("tasks.max", "errors.", "transforms", "predicates", "exactly.once.support")


@dataclass(slots=True, frozen=True)
class FlowPlan:
    """One flow: the settings of its worker, and of its connectors by name."""

    source: str
    target: str
    worker: Mapping[str, str] = field(repr=False)
    connectors: Mapping[str, Mapping[str, str]] = field(repr=False)


def read_flows(given: Mapping[str, str]) -> list[FlowPlan]:
    """Return the flows of a file. Raises ConfigError."""
    clusters = names(given.get("clusters", ""))
    if not clusters:
        raise missing("clusters")
    beats = _is_true(given.get("emit.heartbeats.enabled", "true"))
    flows = []
    for source in clusters:
        for target in clusters:
            own = with_prefix(given, f"{source}->{target}.")
            is_on = _is_true(own.get("enabled", "false"))
            has_beats = _is_true(own.get("emit.heartbeats.enabled", str(beats)))
            if source != target and (is_on or has_beats):
                flows.append(_flow(given, source, target))
    return flows


def _flow(given: Mapping[str, str], source: str, target: str) -> FlowPlan:
    connectors = {name: _connector(given, source, target, name) for name in _CONNECTORS}
    worker = _worker(given, source, target)
    # The file is the operator's: what it sets of clients, its connectors may set.
    named = {name for one in connectors.values() for name in client_names(one).values()}
    allowed = {*names(worker.get(ALLOWLIST, "")), *unsafe(named)}
    if allowed:
        worker[ALLOWLIST] = ",".join(sorted(allowed))
    return FlowPlan(source, target, worker, connectors)


def _worker(given: Mapping[str, str], source: str, target: str) -> dict[str, str]:
    shared = {name: value for name, value in given.items() if name.startswith(_WORKER)}
    defaults = {
        "client.id": f"{source}->{target}",
        "group.id": f"{source}-mm2",
        "offset.storage.topic": f"mm2-offsets.{source}.internal",
        "status.storage.topic": f"mm2-status.{source}.internal",
        "config.storage.topic": f"mm2-configs.{source}.internal",
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "header.converter": _BYTES,
        "barnabas.connect.engine": "local",
    }
    return {**defaults, **_cluster(given, target), **shared}


def _connector(given: Mapping[str, str], source: str, target: str, name: str) -> dict[str, str]:
    known = _CONNECTORS[name].settings
    flows = {
        key: value
        for key, value in given.items()
        if key in known or key.startswith((*_COMMON, "replication.policy"))
    }
    for side, alias in (("source", source), ("target", target)):
        for key, value in _cluster(given, alias).items():
            is_own = key.startswith(_CLIENTS)
            flows[f"{side}.{key}" if is_own else f"{side}.cluster.{key}"] = value
    flows |= {
        "name": name,
        "connector.class": f"{definitions.PACKAGE}{name}",
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "enabled": "false",
    }
    return flows | with_prefix(given, f"{source}->{target}.")


def _cluster(given: Mapping[str, str], alias: str) -> dict[str, str]:
    """Return a cluster's settings; what the file says for all clusters holds for it too."""
    settings = with_prefix(given, f"{alias}.")
    shared = {name: value for name, value in given.items() if is_client_setting(name)}
    if not settings.get("bootstrap.servers", shared.get("bootstrap.servers")):
        raise missing(f"{alias}.bootstrap.servers")
    return {**shared, **settings}


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


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
                    time.sleep(_RETRY_SECONDS)  # the group is rebalancing
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
