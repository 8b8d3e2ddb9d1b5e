"""The values of a node's configuration: typed and complete; `node_config.py` checks them.

Source: KafkaConfig of Kafka 4.3.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from barnabas.base.config.definitions import HIDDEN, ConfigKey, Status
from barnabas.base.errors import ConfigError
from barnabas.node.config import removed
from barnabas.node.config.definitions import BROKER_KEYS, DYNAMIC_ONLY
from barnabas.node.config.listeners import (
    ANY_ADDRESS,
    ListenerConfig,
    listener_name_of,
    parse_listeners,
    parse_protocol_map,
)

CORDONED_KEY = "cordoned.log.dirs"
PROTOCOL_MAP = "listener.security.protocol.map"
LISTENER_KEY = re.compile(r"listener\.name\.([^.]+)\.(.+)")
"""A key for a single listener: its name in lower case, and the key that holds there."""
MECHANISM_KEY = re.compile(r"(plain|scram-sha-256|scram-sha-512|oauthbearer)\.(.+)")
"""A key for a single SASL mechanism, of one listener or of all."""
ALL_DIRECTORIES = "*"
PLUGIN_PREFIXES = ("rlmm.config.", "rsm.config.")


class NodeValues:
    """Values of every broker key.

    `originals` are the texts that were set; `warnings` has one line for each set key that is
    unknown or has no effect yet. Getters raise KeyError for a key that Kafka does not have.
    """

    def __init__(self, values: Mapping[str, str], dynamic: Collection[str] = ()) -> None:
        """Those of `dynamic` keys were set at run time. Raises ConfigError."""
        self.originals: dict[str, str] = dict(values)
        self._without_effect = DYNAMIC_ONLY.difference(dynamic)
        self.warnings: list[str] = []
        self._values: dict[str, Any] = {}
        self._read()

    def get(self, name: str) -> Any:
        """The typed value of `name`; None where it is null."""
        return self._values[name]

    def get_int(self, name: str) -> int:
        """The value of an INT, SHORT or LONG key that is not null."""
        return cast(int, self._values[name])

    def get_float(self, name: str) -> float:
        """The value of a DOUBLE key."""
        return cast(float, self._values[name])

    def get_bool(self, name: str) -> bool:
        """The value of a BOOLEAN key."""
        return cast(bool, self._values[name])

    def get_str(self, name: str) -> str:
        """The value of a STRING key that is not null."""
        return cast(str, self._values[name])

    def get_str_or_none(self, name: str) -> str | None:
        """The value of a STRING, CLASS or PASSWORD key, or None."""
        return cast(str | None, self._values[name])

    def get_list(self, name: str) -> list[str]:
        """The value of a LIST key; empty where it is null."""
        return cast(list[str], self._values[name] or [])

    def shown(self, name: str) -> str | None:
        """The text of a set key, with secrets hidden; None where it is not set."""
        if name not in self.originals:
            return None
        return HIDDEN if is_secret(name) else self.originals[name]

    def __repr__(self) -> str:
        shown = {name: self.shown(name) for name in self.originals}
        return f"{type(self).__name__}({shown})"

    @cached_property
    def node_id(self) -> int:
        """node.id, or broker.id where only that is set."""
        return self.get_int("node.id")

    @cached_property
    def process_roles(self) -> frozenset[str]:
        """`broker`, `controller` or both."""
        return frozenset(self.get_list("process.roles"))

    @cached_property
    def controller_listener_names(self) -> list[str]:
        """Upper-case names of the controller's listeners, in their order."""
        return [name.upper() for name in self.get_list("controller.listener.names")]

    @cached_property
    def protocol_map(self) -> dict[str, str]:
        """Security protocol by listener name.

        Controller listeners are PLAINTEXT by default as long as the map is not set and no
        listener asks for TLS or SASL.
        """
        protocols = parse_protocol_map(PROTOCOL_MAP, self.get_str(PROTOCOL_MAP))
        if PROTOCOL_MAP in self.originals:
            return protocols
        names = [listener_name_of(entry) for entry in self.get_list("listeners")]
        secure = {"SSL", "SASL_SSL", "SASL_PLAINTEXT"}
        if secure.isdisjoint(names) and secure.isdisjoint(self.controller_listener_names):
            for name in self.controller_listener_names:
                protocols[name] = "PLAINTEXT"
        return protocols

    @cached_property
    def listeners(self) -> list[ListenerConfig]:
        """The listeners to bind, including those of controllers."""
        entries = self.get_list("listeners")
        return parse_listeners("listeners", entries, self.protocol_map, distinct_ports=True)

    @cached_property
    def broker_listeners(self) -> list[ListenerConfig]:
        """Those of `listeners` for clients and other brokers."""
        return [each for each in self.listeners if each.name not in self.controller_listener_names]

    @cached_property
    def controller_listeners(self) -> list[ListenerConfig]:
        """Those of `listeners` for the quorum, brokers and administrators' tools."""
        return [each for each in self.listeners if each.name in self.controller_listener_names]

    @cached_property
    def advertised_listeners(self) -> list[ListenerConfig]:
        """The listeners that brokers report to clients, without those of controllers.

        An empty host stands for this machine's name, which the node fills in.
        """
        return [
            listener
            for listener in self.all_advertised_listeners
            if listener.name not in self.controller_listener_names
        ]

    @cached_property
    def all_advertised_listeners(self) -> list[ListenerConfig]:
        """advertised.listeners, or listeners where it is not set."""
        entries = self.get("advertised.listeners")
        if entries is None:
            return self.listeners
        key = "advertised.listeners"
        return parse_listeners(key, entries, self.protocol_map, distinct_ports=False)

    @cached_property
    def advertised_controller_listeners(self) -> list[ListenerConfig]:
        """Controller listeners by their advertised address, or their bound one.

        An empty host stands for this machine's name.
        """
        advertised = {listener.name: listener for listener in self.all_advertised_listeners}
        bound = {listener.name: listener for listener in self.listeners}
        if self.get("advertised.listeners") is None:
            advertised = {}
        for name, listener in bound.items():
            if listener.host == ANY_ADDRESS:
                bound[name] = replace(listener, host="")
        listeners = {**bound, **advertised}
        return [listeners[name] for name in self.controller_listener_names if name in listeners]

    @cached_property
    def inter_broker_listener_name(self) -> str:
        """The listener over which brokers reach each other."""
        name = self.get_str_or_none("inter.broker.listener.name")
        if name is None:
            return self.get_str("security.inter.broker.protocol")
        return name.upper()

    @cached_property
    def log_dirs(self) -> list[str]:
        """Data directories. Relative paths count from the working directory, as in Kafka."""
        return [*map(os.path.abspath, self.get_list("log.dirs") or self.get_list("log.dir"))]

    @cached_property
    def cordoned_log_dirs(self) -> list[str]:
        """Those of `log_dirs` that get no new replicas, in their order (KIP-1066)."""
        cordoned = self.get_list(CORDONED_KEY)
        if ALL_DIRECTORIES in cordoned:
            return self.log_dirs
        wanted = {*map(os.path.abspath, cordoned)}
        return [path for path in self.log_dirs if path in wanted]

    @cached_property
    def metadata_log_dir(self) -> str:
        """Directory that holds the metadata log."""
        path = self.get_str_or_none("metadata.log.dir")
        return os.path.abspath(path) if path else self.log_dirs[0]

    def listener_value(self, listener_name: str, name: str) -> Any:
        """The value of `name` for one listener: its own, or the common one."""
        own = f"listener.name.{listener_name.lower()}.{name}"
        return self._values[own] if own in self._values else self._values[name]

    def values_of(self, names: Collection[str]) -> dict[str, Any]:
        """The typed values of some keys, by name, with those that single listeners have."""
        values = {name: self._values[name] for name in names}
        for name, value in self._values.items():
            match = LISTENER_KEY.fullmatch(name)
            if match and match[2] in names:
                values[name] = value
        for name, text in self.originals.items():
            match = LISTENER_KEY.fullmatch(name)
            own = MECHANISM_KEY.fullmatch(match[2] if match else name)
            if own and own[2] in names:
                values[name] = text
        return values

    def _read(self) -> None:
        given = _with_synonyms(self.originals)
        for name, text in self.originals.items():
            self._note(name, text)
        for key in BROKER_KEYS.values():
            value = _value(key, given.get(key.name))
            self._values[key.name] = key.default if key.name in self._without_effect else value
        for name, text in given.items():
            match = LISTENER_KEY.fullmatch(name)
            if match and match[2] in BROKER_KEYS:
                self._values[name] = BROKER_KEYS[match[2]].parse(text)

    def _note(self, name: str, text: str) -> None:
        """Refuse, warn or accept one key that was set."""
        match = LISTENER_KEY.fullmatch(name)
        base = match[2] if match else name
        key = BROKER_KEYS.get(base)
        if key is None and (match or MECHANISM_KEY.fullmatch(name)):
            key = next((k for k in BROKER_KEYS.values() if base.endswith("." + k.name)), None)
        if key is None:
            self._note_unknown(name)
            return
        if text.strip() == (key.default_text or ""):
            return
        if key.status is Status.NEVER:
            raise ConfigError(name, f"is not supported. {key.doc}")
        if key.status is Status.REFUSED:
            raise ConfigError(name, f"is not supported yet, and is unsafe to ignore. {key.doc}")
        if key.status is Status.PLANNED:
            self.warnings.append(f"{name} is not supported yet and has no effect")
        if base == "sasl.jaas.config":
            self.warnings.append(
                f"{name} has no effect: it needs a listener and a mechanism in front, as in "
                f"listener.name.internal.plain.{base}"
            )

    def _note_unknown(self, name: str) -> None:
        reason = removed.refusal(name)
        if reason:
            raise ConfigError(name, reason)
        if name in removed.IGNORED:
            self.warnings.append(f"{name} is ignored: {removed.IGNORED[name]}")
        elif not name.startswith(PLUGIN_PREFIXES):
            import difflib  # rarely needed

            close = difflib.get_close_matches(name, BROKER_KEYS, n=1, cutoff=0.8)
            hint = f"; did you mean {close[0]}?" if close else ""
            self.warnings.append(f"{name} is not a key of Kafka 4.3 and is ignored{hint}")


def is_secret(name: str) -> bool:
    """Whether the values of a broker key must never be shown; unknown keys count as secret."""
    key = BROKER_KEYS.get(name)
    if key is None:
        match = LISTENER_KEY.fullmatch(name)
        return match is None or _ends_in_secret(match[2])
    return key.is_secret


def _ends_in_secret(name: str) -> bool:
    key = BROKER_KEYS.get(name)
    if key is not None:
        return key.is_secret
    return any(k.is_secret and name.endswith("." + k.name) for k in BROKER_KEYS.values())


def _with_synonyms(originals: Mapping[str, str]) -> dict[str, str]:
    given = dict(originals)
    if "node.id" in given:
        given.setdefault("broker.id", given["node.id"])
    elif "broker.id" in given:
        given["node.id"] = given["broker.id"]
    return given


def _value(key: ConfigKey, text: str | None) -> Any:
    if text is not None:
        return key.parse(text)
    if key.required:
        raise ConfigError(key.name, f"must be set. {key.doc}")
    return key.default
