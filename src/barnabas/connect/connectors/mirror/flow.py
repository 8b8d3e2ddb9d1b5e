"""One flow of mirroring, from a source to a target: its settings, names and clients.

A client's settings are those of `source.cluster.` or `target.cluster.`, over them `producer.`,
`consumer.` or `admin.`, over them `source.consumer.` and so on. Source: MirrorConnectorConfig,
MirrorClientConfig (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from barnabas.connect.config.client_overrides import refusal
from barnabas.connect.config.definition import Definition
from barnabas.connect.config.values import invalid, missing, with_prefix
from barnabas.connect.connectors.base import Settings
from barnabas.connect.connectors.mirror.filters import (
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
)
from barnabas.connect.connectors.mirror.policy import DefaultReplicationPolicy
from barnabas.connect.plugins import load
from barnabas.connect.tasks.clients import Client, client_settings
from barnabas.schemas.data.errors import ConfigError

Side = Literal["source", "target"]
_SHARED: Final = (
    *("bootstrap.servers", "client.dns.lookup", "client.id", "connections.max.idle.ms"),
    *("metadata.max.age.ms", "receive.buffer.bytes", "reconnect.backoff.max.ms"),
    *("reconnect.backoff.ms", "request.timeout.ms", "retries", "retry.backoff.max.ms"),
    *("retry.backoff.ms", "send.buffer.bytes", "socket.connection.setup.timeout.max.ms"),
    *("socket.connection.setup.timeout.ms",),
)
_SECURITY: Final = ("security.", "sasl.", "ssl.")
_CLIENTS: Final = tuple(
    f"{side}{client}."
    for side in ("", "source.", "target.")
    for client in ("producer", "consumer", "admin")
)
_OWN: Final = ("consumer.poll.timeout.ms", "admin.timeout.ms")
"""MirrorMaker's own settings that look like clients'."""
_INTERFACES: Final[Mapping[str, type]] = {
    "replication.policy.class": DefaultReplicationPolicy,
    "topic.filter.class": DefaultTopicFilter,
    "group.filter.class": DefaultGroupFilter,
    "config.property.filter.class": DefaultConfigPropertyFilter,
}
"""The base class of a custom class, by setting."""


@dataclass(slots=True, frozen=True)
class Flow:
    """A connector's flow, from its settings. `values` are parsed."""

    settings: Settings = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def read(settings: Settings, definition: Definition) -> Flow:
        """Return the flow of a configuration. Raises ConfigError."""
        for name, texts in client_errors(settings).items():
            raise ConfigError(f"{name}: {texts[0]}")
        return Flow(settings, definition.parse(settings))

    @property
    def is_enabled(self) -> bool:
        """True if anything is mirrored at all."""
        return bool(self.values["enabled"])

    @property
    def source(self) -> str:
        """Return the source's alias."""
        return str(self.values["source.cluster.alias"])

    @property
    def target(self) -> str:
        """Return the target's alias."""
        return str(self.values["target.cluster.alias"])

    def policy(self) -> DefaultReplicationPolicy:
        """Return how topics are named. Raises ConfigError."""
        policy: DefaultReplicationPolicy = self.plugin("replication.policy.class")
        return policy

    def plugin(self, name: str) -> Any:
        """Return the object whose class a setting names. Raises ConfigError."""
        base, class_name = _INTERFACES[name], str(self.values[name])
        kind = load(class_name)
        if not issubclass(kind, base):
            raise invalid(name, class_name, f"it is not a subclass of {base.__name__}")
        made = kind()
        made.configure(self.settings)
        return made

    def interval_s(self, name: str) -> float | None:
        """Return how often something is done, None for never."""
        if not self.values[f"{name}.enabled"]:
            return None
        return float(self.values[f"{name}.interval.seconds"])

    @property
    def timeout_s(self) -> float:
        """Return how long a request of administration may take."""
        return float(self.values["admin.timeout.ms"]) / 1000

    @property
    def syncs_side(self) -> Side:
        """Return the cluster that has the offset syncs."""
        return "source" if self.values["offset-syncs.topic.location"] == "source" else "target"

    @property
    def syncs_topic(self) -> str:
        """Return the topic of offset syncs, named after the other cluster."""
        other = self.target if self.syncs_side == "source" else self.source
        return self.policy().offset_syncs_topic(other)

    @property
    def checkpoints_topic(self) -> str:
        """Return the topic of checkpoints."""
        return self.policy().checkpoints_topic(self.source)

    def java_client(self, side: Side, client: Client) -> dict[str, str]:
        """Return a client's settings under Java's names."""
        given = {
            name: value
            for name, value in with_prefix(self.settings, f"{side}.cluster.").items()
            if is_client_setting(name)
        }
        given |= with_prefix(self.settings, f"{client}.")
        given |= with_prefix(self.settings, f"{side}.{client}.")
        return given

    def client(self, side: Side, client: Client, role: str, **defaults: Any) -> dict[str, Any]:
        """Return a client's settings under librdkafka's names. Raises ConfigError."""
        given = self.java_client(side, client)
        own = f"{self.source}->{self.target}|{self.settings.get('name', '')}|{role}"
        name = f"{given.pop('client.id')}|{own}" if "client.id" in given else own
        if not given.get("bootstrap.servers"):
            raise missing(f"{side}.cluster.bootstrap.servers")
        worker = {f"{client}.{key}": value for key, value in given.items()}
        return {**client_settings(client, {}, worker, defaults), "client.id": name}

    def consumer(self, side: Side, role: str) -> dict[str, Any]:
        """Return the settings of a consumer that is in no group. Raises ConfigError."""
        return {
            "group.id": f"mirror-{self.source}-{self.target}",
            **self.client(side, "consumer", role, **{"isolation.level": "read_uncommitted"}),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
        }

    @property
    def reads_committed(self) -> bool:
        """True if records of open and aborted transactions are passed over."""
        given = self.java_client("source", "consumer")
        return given.get("isolation.level", "").lower() == "read_committed"


def client_names(settings: Settings) -> dict[str, str]:
    """Return the client's setting that each of a connector's settings stands for."""
    flows = {}
    for side in ("source", "target"):
        for name in with_prefix(settings, f"{side}.cluster."):
            if is_client_setting(name):
                flows[f"{side}.cluster.{name}"] = name
    for prefix in _CLIENTS:
        for name in with_prefix(settings, prefix):
            if prefix + name not in _OWN and not name.startswith("override."):
                flows[prefix + name] = name
    return flows


def client_errors(settings: Settings) -> dict[str, list[str]]:
    """Return what a connector may not set of its clients, by the names of its settings."""
    refused = {name: refusal(inner) for name, inner in client_names(settings).items()}
    return {name: [text] for name, text in refused.items() if text is not None}


def is_client_setting(name: str) -> bool:
    """Return whether a setting is one of all clients: of a cluster."""
    return name in _SHARED or name.startswith(_SECURITY)
