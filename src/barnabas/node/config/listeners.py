"""Listeners: addresses with a name and a security protocol, validated as Kafka validates them.

Source: SocketServerConfigs.listenerListToEndPoints and KafkaConfig.validateValues.
"""

import ipaddress
import re
from collections import defaultdict
from dataclasses import dataclass

from barnabas.base.errors import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ANY_ADDRESS = "0.0.0.0"
_LISTENER = re.compile(r"([a-zA-Z0-9_\-.]*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """One listener. An empty `host` binds every interface; port 0 takes a free one."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(key: str, text: str) -> dict[str, str]:
    """NAME:PROTOCOL pairs by upper-case name. Raises ConfigError."""
    protocols: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.rpartition(":")
        if not colon or not name:
            raise ConfigError(key, f"{pair!r} is not NAME:PROTOCOL")
        protocol = protocol.strip().upper()
        if protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(
                key, f"{protocol!r} is not a security protocol ({', '.join(SECURITY_PROTOCOLS)})"
            )
        protocols[name.strip().upper()] = protocol
    return protocols


def parse_listeners(
    key: str, entries: list[str], protocols: dict[str, str], *, distinct_ports: bool
) -> list[ListenerConfig]:
    """Read a list of NAME://host:port. Raises ConfigError."""
    listeners = [_parse_listener(key, entry, protocols) for entry in entries]
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ConfigError(key, f"a listener name is used twice in {','.join(entries)}")
    if distinct_ports:
        _check_ports(key, listeners)
    return listeners


def listener_name_of(entry: str) -> str:
    """The upper-case name in front of an entry's first colon."""
    return entry.partition(":")[0].upper()


def _parse_listener(key: str, entry: str, protocols: dict[str, str]) -> ListenerConfig:
    match = _LISTENER.fullmatch(entry.strip())
    if match is None:
        raise ConfigError(key, f"{entry!r} is not NAME://host:port")
    name, host, port = match[1].upper(), match[2], int(match[3])
    if name not in protocols:
        raise ConfigError(
            key, f"listener {name!r} has no protocol in listener.security.protocol.map"
        )
    if not -1 <= port <= 65535:
        raise ConfigError(key, f"{port} is not a port")
    return ListenerConfig(name, host, port, protocols[name])


def _check_ports(key: str, listeners: list[ListenerConfig]) -> None:
    """One port may be shared only by one IPv4 and one IPv6 address."""
    by_port: dict[int, list[str]] = defaultdict(list)
    for listener in listeners:
        if listener.port != 0:
            by_port[listener.port].append(listener.host)
    for port, hosts in by_port.items():
        versions = [_ip_version(host) for host in hosts]
        if len(hosts) > 1 and sorted(versions, key=str) != [4, 6]:
            raise ConfigError(
                key,
                f"port {port} is used {len(hosts)} times; only one IPv4 and one IPv6 address "
                "may share a port",
            )


def _ip_version(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).version
    except ValueError:
        return None
