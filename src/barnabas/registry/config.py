"""schema-registry.properties: Confluent's keys and defaults, checked.

`keys.txt` has the table of keys, in the format of `barnabas.base.config.definitions`.
"""

import os
import re
import socket
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, cast

from barnabas.base.addresses import is_loopback
from barnabas.base.config.definitions import ConfigKey, Status, read_table
from barnabas.base.errors import ConfigError
from barnabas.registry.core.decision import Defaults, Limits
from barnabas.web.listening import ListenAddress

KEYS: Final[Mapping[str, ConfigKey]] = read_table(
    os.path.join(os.path.dirname(__file__), "keys.txt")
)
"""All keys by name."""
TOPIC_CONFIG_PREFIX = "kafkastore.topic.config."
"""The rest is a key of the topic, used when it is created."""
KEY_REGISTRY = "DekRegistryResourceExtension"
"""An extension that Confluent's own file names; nobody misses it who does not encrypt fields."""
SCHEMES = ("http", "https")
OLD_NAMES: Final = {
    "avro.compatibility.level": "schema.compatibility.level",
    "master.eligibility": "leader.eligibility",
    "schema.registry.inter.instance.protocol": "inter.instance.protocol",
    "schema.registry.resource.extension.class": "resource.extension.class",
}
_LISTENER = re.compile(r"([A-Za-z0-9_\-.]+)://(?:\[([0-9A-Fa-f:.%]+)\]|([^:/\[\]\s]*)):([0-9]+)/?")
_ENDPOINT = re.compile(r"(?:([A-Z_]+)://)?((?:\[[0-9A-Fa-f:.%]+\]|[^:/\[\]\s]+):[0-9]+)")


class RegistryConfig:
    """Values of every key.

    `originals` are the texts that were set; `warnings` has one line for each set key that is
    unknown or has no effect. Getters raise KeyError for a key that is not in the table.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        """Read and check. Raises ConfigError with the key and what is wrong with it."""
        self.originals: dict[str, str] = dict(values)
        self.warnings: list[str] = []
        given = dict(self.originals)
        for name, text in self.originals.items():
            self._note(name, text)
            if name in OLD_NAMES and text.strip():
                given[OLD_NAMES[name]] = text
        self._values: dict[str, Any] = {
            key.name: _value(key, given.get(key.name)) for key in KEYS.values()
        }
        self._check()

    def _note(self, name: str, text: str) -> None:
        """Refuse, warn or accept one key that was set."""
        key = KEYS.get(name)
        if key is None:
            if not name.startswith(TOPIC_CONFIG_PREFIX):
                self.warnings.append(f"{name} is not a key of the schema registry: ignored")
        elif text.strip().lower() == (key.default_text or "").lower():
            return
        elif key.status in (Status.NEVER, Status.REFUSED):
            raise ConfigError(name, f"is not supported. {key.doc}")
        elif key.status is Status.PLANNED:
            self.warnings.append(f"{name} is not supported and has no effect. {key.doc}")

    def _check(self) -> None:
        for name in ("resource.extension.class", "schema.registry.resource.extension.class"):
            for extension in self.get_list(name):
                if not extension.endswith(KEY_REGISTRY):
                    raise ConfigError(name, f"{extension} is a Java class, which cannot be loaded")
                self.warnings.append(f"{name}: ignored, because the key registry is not supported")
        if self.get_int("kafkagroup.heartbeat.interval.ms") >= self.session_timeout_ms:
            raise ConfigError(
                "kafkagroup.heartbeat.interval.ms",
                "must be less than kafkagroup.session.timeout.ms, and should be a third of it",
            )
        _ = self.bootstrap_servers, self.advertised_port

    def get(self, name: str) -> Any:
        """The typed value of `name`; None where it is null."""
        return self._values[name]

    def get_int(self, name: str) -> int:
        """The value of an INT or LONG key."""
        return cast(int, self._values[name])

    def get_bool(self, name: str) -> bool:
        """The value of a BOOLEAN key that is not null."""
        return cast(bool, self._values[name])

    def get_str(self, name: str) -> str:
        """The value of a STRING or PASSWORD key, empty where it is null."""
        return cast(str, self._values[name] or "")

    def get_list(self, name: str) -> list[str]:
        """The value of a LIST key."""
        return cast(list[str], self._values[name] or [])

    @cached_property
    def listeners(self) -> tuple[ListenAddress, ...]:
        """The listeners of the REST interface."""
        schemes: dict[str, str] = {}
        for pair in self.get_list("listener.security.protocol.map"):
            name, colon, scheme = pair.partition(":")
            if not colon or scheme.lower() not in SCHEMES:
                raise ConfigError(
                    "listener.security.protocol.map", f"{pair!r} is not NAME:http or NAME:https"
                )
            schemes[name.lower()] = scheme.lower()
        return tuple(_listener(entry, schemes) for entry in self.get_list("listeners"))

    @cached_property
    def inter_instance_listener(self) -> ListenAddress:
        """The listener that other instances use: the named one, else the last of the protocol."""
        name = self.get_str("inter.instance.listener.name").lower()
        scheme = self.get_str("inter.instance.protocol")
        for listener in self.listeners:
            if name and listener.name.lower() == name:
                return listener
        if name:
            raise ConfigError("inter.instance.listener.name", f"no listener is called {name!r}")
        listeners = [listener for listener in self.listeners if listener.scheme == scheme]
        if not listeners:
            raise ConfigError("inter.instance.protocol", f"no listener speaks {scheme}")
        return listeners[-1]

    @cached_property
    def advertised_host(self) -> str:
        """The name under which other instances reach this one."""
        listener = self.inter_instance_listener
        own = listener.host if is_loopback(listener.host) else socket.getfqdn()
        return self.get_str("host.name") or own

    @property
    def advertised_port(self) -> int:
        """The port under which other instances reach this one; 0 until a free one is bound."""
        if "host.port" in self.originals:
            return self.get_int("host.port")
        return self.inter_instance_listener.port

    @cached_property
    def security_protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self.get_str("kafkastore.security.protocol").upper()

    @cached_property
    def bootstrap_servers(self) -> list[str]:
        """host:port of the brokers to connect to first.

        An endpoint of another protocol is passed over, as Confluent does, with a warning.
        """
        key = "kafkastore.bootstrap.servers"
        servers = []
        for endpoint in self.get_list(key):
            match = _ENDPOINT.fullmatch(endpoint)
            if match is None:
                raise ConfigError(
                    key, f"{endpoint!r} is neither host:port nor PROTOCOL://host:port"
                )
            if match[1] in (None, self.security_protocol):
                servers.append(match[2])
            else:
                self.warnings.append(
                    f"{key}: {endpoint} is ignored, because kafkastore.security.protocol is "
                    f"{self.security_protocol}"
                )
        if not servers:
            raise ConfigError(
                key, f"no endpoint uses kafkastore.security.protocol={self.security_protocol}"
            )
        return servers

    @property
    def topic(self) -> str:
        """The topic of schemas and settings."""
        return self.get_str("kafkastore.topic")

    @property
    def topic_config(self) -> dict[str, str]:
        """Keys of the topic, for its creation."""
        return {
            name.removeprefix(TOPIC_CONFIG_PREFIX): text
            for name, text in self.originals.items()
            if name.startswith(TOPIC_CONFIG_PREFIX)
        }

    @property
    def group_id(self) -> str:
        """The group in which a leader is elected."""
        return self.get_str("schema.registry.group.id")

    @property
    def transactional_id(self) -> str:
        """The leader's transactional id, so that a new leader fences the former."""
        return f"{self.group_id}-{self.topic}"

    @property
    def session_timeout_ms(self) -> int:
        """The time after its last heartbeat at which an instance counts as dead."""
        return self.get_int("kafkagroup.session.timeout.ms")

    @property
    def timeout_ms(self) -> int:
        """The time limit for a write."""
        return self.get_int("kafkastore.timeout.ms")

    @property
    def init_timeout_ms(self) -> int:
        """The time limit for the start."""
        return self.get_int("kafkastore.init.timeout.ms")

    @cached_property
    def defaults(self) -> Defaults:
        """The defaults of settings in the registry."""

        def limits(of: str) -> Limits:
            keys = (f"{of}.search.{which}.limit" for which in ("default", "max"))
            return Limits(*map(self.get_int, keys))

        return Defaults(
            compatibility_level=self.get_str("schema.compatibility.level").upper(),
            mode_mutability=self.get_bool("mode.mutability"),
            validate_fields=self.get_bool("schema.validate.fields"),
            validate_new_schemas=self.get_bool("schema.validate.new.schemas"),
            schemas=limits("schema"),
            subjects=limits("subject"),
            contexts=limits("context"),
            versions=limits("subject.version"),
        )


def _value(key: ConfigKey, text: str | None) -> Any:
    if text is not None and (text.strip() or key.default_text is not None):
        return key.parse(text)
    if key.required:
        raise ConfigError(key.name, f"must be set. {key.doc}")
    return key.default


def _listener(entry: str, schemes: Mapping[str, str]) -> ListenAddress:
    match = _LISTENER.fullmatch(entry)
    if match is None:
        raise ConfigError("listeners", f"{entry!r} is not http://host:port")
    name, host, port = match[1], match[2] or match[3], int(match[4])
    scheme = schemes.get(name.lower(), name.lower())
    if scheme not in SCHEMES:
        raise ConfigError(
            "listeners", f"{entry!r} has no protocol in listener.security.protocol.map"
        )
    if port > 65535:
        raise ConfigError("listeners", f"{port} is not a port")
    return ListenAddress(host or "0.0.0.0", port, scheme == "https", name)
