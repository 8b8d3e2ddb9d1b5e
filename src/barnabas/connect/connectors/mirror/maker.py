"""The file of Kafka's connect-mirror-maker.sh: its clusters and flows, as workers and connectors.

`clusters` names the clusters, `A.` begins a cluster's settings, `A->B.` a flow's. Each flow has a
worker of its own in the target, whose topics and group are named after the source. Source:
MirrorMakerConfig (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.connect.config.client_overrides import ALLOWLIST, unsafe
from barnabas.connect.connectors.mirror import settings as definitions
from barnabas.connect.connectors.mirror.flow import client_names, is_client_setting
from barnabas.connect.engine.chain import names, with_prefix
from barnabas.schemas.data.errors import ConfigError

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
        raise ConfigError('Missing required configuration "clusters" which has no default value.')
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
    found = {
        key: value
        for key, value in given.items()
        if key in known or key.startswith((*_COMMON, "replication.policy"))
    }
    for side, alias in (("source", source), ("target", target)):
        for key, value in _cluster(given, alias).items():
            is_own = key.startswith(_CLIENTS)
            found[f"{side}.{key}" if is_own else f"{side}.cluster.{key}"] = value
    found |= {
        "name": name,
        "connector.class": f"{definitions.PACKAGE}{name}",
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "enabled": "false",
    }
    return found | with_prefix(given, f"{source}->{target}.")


def _cluster(given: Mapping[str, str], alias: str) -> dict[str, str]:
    """Return a cluster's settings; what the file says for all clusters holds for it too."""
    found = with_prefix(given, f"{alias}.")
    shared = {name: value for name, value in given.items() if is_client_setting(name)}
    if not found.get("bootstrap.servers", shared.get("bootstrap.servers")):
        raise ConfigError(
            f'Missing required configuration "{alias}.bootstrap.servers" '
            "which has no default value."
        )
    return {**shared, **found}


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
