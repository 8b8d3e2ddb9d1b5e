"""A node's configuration: typed, checked and complete. Here are the rules between keys.

Source: KafkaConfig.validateValues, GroupCoordinatorConfig and ShareGroupConfig of Kafka 4.3.
"""

import os
import re
from collections.abc import Collection, Mapping

from barnabas.base.errors import ConfigError
from barnabas.node.config.listeners import ANY_ADDRESS
from barnabas.node.config.node_values import CORDONED_KEY, NodeValues
from barnabas.node.config.sasl import check_sasl

_HOST = re.compile(r"\[?[0-9a-zA-Z\-%._:]+\]?")
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
AUTHORIZER_KEY = "authorizer.class.name"
SUPER_USERS_KEY = "super.users"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS = (STANDARD_AUTHORIZER, "StandardAuthorizer")
"""The names of the one authorizer that there is."""
DEDUPE_BUFFER_PER_THREAD_MIN_BYTES = 1024 * 1024
SOCKET_BUFFERS = (
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
    "replica.socket.receive.buffer.bytes",
)
TIMEOUTS = (
    "controller.socket.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
)
CODEC_IDS = range(5)
_TIMES = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_STANDBY_REPLICAS = "num.standby.replicas"
PER_IP_KEY = "max.connections.per.ip"
PER_IP_OVERRIDES_KEY = "max.connections.per.ip.overrides"
_LIMITED_GROUP_KEYS = {
    "consumer": _TIMES,
    "share": (
        *_TIMES,
        "delivery.count.limit",
        "partition.max.record.locks",
        "record.lock.duration.ms",
    ),
    "streams": (*_TIMES, _STANDBY_REPLICAS),
}
"""By kind of group: what a group may set for itself, within limits that the node sets."""


class NodeConfig(NodeValues):
    """Values of every broker key that fit together."""

    @classmethod
    def from_properties(
        cls, values: Mapping[str, str], dynamic: Collection[str] = ()
    ) -> "NodeConfig":
        """Type, check and complete `values`; those of `dynamic` keys were set at run time.

        Raises ConfigError at the first key that cannot be used.
        """
        config = cls(values, dynamic)
        _check(config)
        return config

    def with_dynamic(self, values: Mapping[str, str]) -> "NodeConfig":
        """This configuration with dynamic values on top. Raises ConfigError."""
        return NodeConfig.from_properties({**self.originals, **values}, values.keys())


def _check(config: NodeValues) -> None:
    """Raises ConfigError at the first broken rule."""
    _check_node(config)
    _check_log(config)
    _check_cordoned(config)
    _check_groups(config)
    _check_replication(config)
    _check_quorum(config)
    _check_roles(config)
    _check_broker_listeners(config)
    _check_advertised_hosts(config)
    check_sasl(config)
    _check_connections(config)
    _check_authorizer(config)


def _check_node(config: NodeValues) -> None:
    if config.get_int("broker.id") != config.get_int("node.id"):
        raise ConfigError("broker.id", "must equal node.id where both are set")
    roles = config.originals["process.roles"].split(",")
    if len(roles) != len(config.process_roles):
        raise ConfigError("process.roles", "lists a role twice")
    if not config.log_dirs:
        raise ConfigError("log.dirs", "at least one directory is needed")
    if len(set(config.log_dirs)) != len(config.log_dirs):
        raise ConfigError("log.dirs", "names a directory twice")


def _check_log(config: NodeValues) -> None:
    for key in ("log.roll.ms",):
        value = config.get(key)
        if value is not None and value < 1:
            raise ConfigError(key, "must be at least 1")
    jitter_ms = config.get("log.roll.jitter.ms")
    if jitter_ms is not None and jitter_ms < 0:
        raise ConfigError("log.roll.jitter.ms", "must not be negative")
    for key in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if config.get(key) is not None:
            if config.get(key) == 0:
                raise ConfigError(key, "must be at least 1, or -1 for no limit")
            break
    buffer_bytes = config.get_int("log.cleaner.dedupe.buffer.size")
    threads = max(config.get_int("log.cleaner.threads"), 1)
    if buffer_bytes // threads <= DEDUPE_BUFFER_PER_THREAD_MIN_BYTES:
        raise ConfigError("log.cleaner.dedupe.buffer.size", "needs more than 1 MiB per thread")


def _check_cordoned(config: NodeValues) -> None:
    """Only what is one of this node's directories can be cordoned (KIP-1066)."""
    key = CORDONED_KEY
    cordoned = config.get_list(key)
    if "*" in cordoned:
        if len(cordoned) > 1:
            raise ConfigError(key, "must not contain other values beside *")
        return
    unknown = [path for path in cordoned if os.path.abspath(path) not in config.log_dirs]
    if unknown:
        raise ConfigError(key, f"{', '.join(unknown)} is not in log.dirs")


def _check_groups(config: NodeValues) -> None:
    for key in (
        "offsets.topic.compression.codec",
        "share.coordinator.state.topic.compression.codec",
    ):
        if config.get_int(key) not in CODEC_IDS:
            raise ConfigError(key, "is not a codec id: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd")
    if "classic" not in config.get_list("group.coordinator.rebalance.protocols"):
        raise ConfigError("group.coordinator.rebalance.protocols", "must contain classic")
    for kind, limited in _LIMITED_GROUP_KEYS.items():
        for name in limited:
            _check_limits(config, kind, name)
        heartbeat_key = f"group.{kind}.heartbeat.interval.ms"
        session_key = f"group.{kind}.session.timeout.ms"
        if config.get_int(heartbeat_key) >= config.get_int(session_key):
            raise ConfigError(heartbeat_key, f"must be below {session_key}")
    if len(config.get_list("group.share.assignors")) != 1:
        raise ConfigError("group.share.assignors", "must name exactly one assignor")
    if config.get_int("group.share.max.share.sessions") < config.get_int("group.share.max.size"):
        raise ConfigError(
            "group.share.max.share.sessions", "must not be below group.share.max.size"
        )


def _check_limits(config: NodeValues, kind: str, name: str) -> None:
    """The defaults of a kind of group are within the limits for single groups."""
    key = f"group.{kind}.{name}"
    low_key = f"group.{kind}.min.{name}"
    high_key = f"group.{kind}.max.{name.removeprefix('num.')}"
    if name != _STANDBY_REPLICAS and config.get_int(key) < config.get_int(low_key):
        raise ConfigError(key, f"must not be below {low_key}")
    if config.get_int(key) > config.get_int(high_key):
        raise ConfigError(key, f"must not be above {high_key}")


def _check_replication(config: NodeValues) -> None:
    wait_ms = config.get_int("replica.fetch.wait.max.ms")
    if wait_ms > config.get_int("replica.socket.timeout.ms"):
        raise ConfigError(
            "replica.socket.timeout.ms", "must not be below replica.fetch.wait.max.ms"
        )
    if wait_ms > config.get_int("replica.lag.time.max.ms"):
        raise ConfigError("replica.lag.time.max.ms", "must not be below replica.fetch.wait.max.ms")
    if config.get_str_or_none("replica.selector.class") not in (None, "", RACK_AWARE_SELECTOR):
        raise ConfigError(
            "replica.selector.class",
            f"{RACK_AWARE_SELECTOR} is known; other Java classes cannot be loaded here",
        )


def _check_quorum(config: NodeValues) -> None:
    voters = _voter_ids(config)
    if not voters and not config.get_list("controller.quorum.bootstrap.servers"):
        raise ConfigError(
            "controller.quorum.bootstrap.servers",
            "this or controller.quorum.voters must name the controllers",
        )
    roles = config.process_roles
    if "controller" in roles and voters and config.node_id not in voters:
        raise ConfigError("controller.quorum.voters", f"must contain this node ({config.node_id})")
    if roles == {"broker"} and config.node_id in voters:
        raise ConfigError(
            "controller.quorum.voters",
            f"holds this node ({config.node_id}), whose process.roles is broker alone",
        )


def _voter_ids(config: NodeValues) -> set[int]:
    return {int(entry.partition("@")[0]) for entry in config.get_list("controller.quorum.voters")}


def _check_roles(config: NodeValues) -> None:
    key = "controller.listener.names"
    names = config.controller_listener_names
    if not names:
        raise ConfigError(key, "must name at least one listener")
    bound = [listener.name for listener in config.listeners]
    if config.process_roles == {"broker"}:
        if set(names) & set(bound):
            raise ConfigError(key, "a broker without the controller role cannot bind these")
        for name in names:
            if name not in config.protocol_map:
                raise ConfigError(
                    "listener.security.protocol.map", f"has no protocol for listener {name!r}"
                )
        return
    missing = [name for name in names if name not in bound]
    if missing:
        raise ConfigError(key, f"{', '.join(missing)} is not in listeners")
    if config.process_roles == {"controller"} and set(bound) - set(names):
        raise ConfigError(
            "listeners", "a controller without the broker role binds controller listeners only"
        )


def _check_broker_listeners(config: NodeValues) -> None:
    name_key = "inter.broker.listener.name"
    originals = config.originals
    if name_key in originals and "security.inter.broker.protocol" in originals:
        raise ConfigError(name_key, "cannot be set together with security.inter.broker.protocol")
    inter_broker = config.inter_broker_listener_name
    if inter_broker not in config.protocol_map:
        raise ConfigError(name_key, f"listener {inter_broker!r} has no security protocol")
    if "broker" not in config.process_roles:
        return
    advertised = {listener.name for listener in config.advertised_listeners}
    if not advertised:
        raise ConfigError("advertised.listeners", "there is no listener for clients")
    if inter_broker not in advertised:
        choice = ", ".join(sorted(advertised))
        raise ConfigError(
            name_key, f"listener {inter_broker!r} is not advertised; choose from {choice}"
        )
    unbound = advertised - {listener.name for listener in config.listeners}
    if unbound:
        raise ConfigError(
            "advertised.listeners", f"{', '.join(sorted(unbound))} is not in listeners"
        )


def _check_advertised_hosts(config: NodeValues) -> None:
    for listener in (*config.advertised_listeners, *config.advertised_controller_listeners):
        if listener.host == ANY_ADDRESS:
            raise ConfigError(
                "advertised.listeners",
                f"{listener}: {ANY_ADDRESS} is not an address that a client can connect to; set an "
                "address that clients reach",
            )


def _check_connections(config: NodeValues) -> None:
    queued_bytes = config.get_int("queued.max.request.bytes")
    if 0 < queued_bytes < config.get_int("socket.request.max.bytes"):
        raise ConfigError("queued.max.request.bytes", "must not be below socket.request.max.bytes")
    for key in SOCKET_BUFFERS:
        if config.get_int(key) < 1 and config.get_int(key) != -1:
            raise ConfigError(key, "must be above 0, or -1 for the system's choice")
    for key in TIMEOUTS:
        if config.get_int(key) < 1:
            raise ConfigError(key, "must be above 0, or no other node could be reached")
    overrides = parse_overrides(config.get_str(PER_IP_OVERRIDES_KEY))
    if config.get_int(PER_IP_KEY) == 0 and not overrides:
        raise ConfigError(PER_IP_KEY, f"may be 0 only with {PER_IP_OVERRIDES_KEY}")
    idle_ms = config.get_int("connections.max.idle.ms")
    if 0 <= idle_ms <= config.get_int("connection.failed.authentication.delay.ms"):
        raise ConfigError(
            "connections.max.idle.ms", "must exceed connection.failed.authentication.delay.ms"
        )


def parse_overrides(text: str) -> dict[str, int]:
    """max.connections.per.ip.overrides as counts by host. Raises ConfigError."""
    key = PER_IP_OVERRIDES_KEY
    overrides: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = pair.rpartition(":")
        if not colon or not host or not count.strip().isdecimal():
            raise ConfigError(key, f"{pair!r} is not host:count")
        if not _HOST.fullmatch(host.strip()):
            raise ConfigError(key, f"{host.strip()!r} is not a host")
        overrides[host.strip()] = int(count)
    return overrides


def _check_authorizer(config: NodeValues) -> None:
    name = config.get_str(AUTHORIZER_KEY).strip()
    if name and name not in AUTHORIZERS:
        raise ConfigError(
            AUTHORIZER_KEY, f"Java classes cannot be loaded here; use {STANDARD_AUTHORIZER}"
        )
    parse_super_users(config.get_str(SUPER_USERS_KEY))


def parse_super_users(text: str) -> frozenset[str]:
    """The principals of super.users, as texts. Raises ConfigError."""
    users = frozenset(filter(None, (part.strip() for part in text.split(";"))))
    for user in users:
        if ":" not in user:
            raise ConfigError(SUPER_USERS_KEY, f"{user!r} is not kind:name, such as User:admin")
    return users
