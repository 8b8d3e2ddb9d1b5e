"""Typed values and their checks, by the rules of Kafka's ConfigDef.

A check is written in one of these forms:

    -                     anything of the type
    1.. or 0..1           a range, both ends allowed; `1..9 or -1` adds one value
    in a,b                one of these
    in-any-case A,B       one of these, however they are written
    filled                not empty
    set [filled] [of a,b] a list without blank entries, maybe not empty, maybe of these only
    voters                id@host:port entries (controller.quorum.voters)
    servers               host:port entries (controller.quorum.bootstrap.servers)
    registries            http(s)://host:port entries (confluent.schema.registry.url)
    throttled-replicas    partition:broker entries, or * (KIP-73)
    offset-reset          earliest, latest or by_duration:<ISO 8601> (KIP-932)
"""

import re
from collections.abc import Callable
from enum import StrEnum

from barnabas.base.errors import ConfigError

Value = bool | int | float | str | list[str] | None
Check = Callable[[str, Value], None]

INT_BITS = {"short": 16, "int": 32, "long": 64}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_SPECIAL_DOUBLES = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_COMMA = re.compile(r"\s*,\s*")
_VOTER = re.compile(r"(-?[0-9]+)@(.+)")
_SERVER = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([^:\[\]\s]+)):([0-9]+)")
_REGISTRY = re.compile(
    r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?(?:/[!-~]*)?", re.IGNORECASE
)
_THROTTLED_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_DURATION = re.compile(
    r"[+-]?P(?=.)(?:[+-]?\d+D)?(?:T(?=.)(?:[+-]?\d+H)?(?:[+-]?\d+M)?(?:[+-]?\d+(?:\.\d{0,9})?S)?)?",
    re.IGNORECASE,
)


class ConfigType(StrEnum):
    """The types of Kafka's ConfigDef."""

    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    SHORT = "short"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"
    PASSWORD = "password"
    CLASS = "class"


def parse_typed(name: str, type_: ConfigType, text: str) -> Value:
    """Read `text` as Kafka does, repeated entries of lists dropped.

    Raises ConfigError where it is not of the type.
    """
    trimmed = text.strip()
    if type_ in (ConfigType.STRING, ConfigType.CLASS, ConfigType.PASSWORD):
        return trimmed
    if type_ is ConfigType.LIST:
        return list(dict.fromkeys(_COMMA.split(trimmed))) if trimmed else []
    if type_ is ConfigType.BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in ("true", "false"):
            raise ConfigError(name, f"{text!r} is neither true nor false")
        return lowered == "true"
    if type_ is ConfigType.DOUBLE:
        return _parse_double(name, trimmed)
    return _parse_integer(name, trimmed, INT_BITS[type_])


def _parse_integer(name: str, text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ConfigError(name, f"{text!r} is not a whole number")
    value = int(text) if len(text) < 64 else 1 << 64
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise ConfigError(name, f"{text!r} does not fit into {bits} bits")
    return value


def _parse_double(name: str, text: str) -> float:
    if text in _SPECIAL_DOUBLES:
        return _SPECIAL_DOUBLES[text]
    if not _DECIMAL.fullmatch(text):
        raise ConfigError(name, f"{text!r} is not a number")
    return float(text.rstrip("fFdD"))


def parse_check(text: str) -> Check:
    """Turn a table's check into a function that raises ConfigError."""
    word, _, rest = text.partition(" ")
    if word in _NAMED_CHECKS:
        return _NAMED_CHECKS[word]
    if word == "in":
        return _one_of(rest.split(","))
    if word == "in-any-case":
        return _one_of_in_any_case(rest.split(","))
    if word == "set":
        return _set_check(rest)
    if ".." in word:
        return _range_check(word, rest)
    raise ValueError(f"unknown check {text!r}")


def _anything(name: str, value: Value) -> None:
    pass


def _filled(name: str, value: Value) -> None:
    if value == "":
        raise ConfigError(name, "must not be empty")


def _one_of(allowed: list[str]) -> Check:
    def check(name: str, value: Value) -> None:
        if value not in allowed:
            raise ConfigError(name, f"{value!r} is not one of {', '.join(allowed)}")

    return check


def _one_of_in_any_case(allowed: list[str]) -> Check:
    def check(name: str, value: Value) -> None:
        if str(value).upper() not in allowed:
            raise ConfigError(name, f"{value!r} is not one of {', '.join(allowed)}")

    return check


def _range_check(span: str, rest: str) -> Check:
    low_text, high_text = span.split("..")
    low = float(low_text)
    high = float(high_text) if high_text else None
    also = int(rest.removeprefix("or ")) if rest else None

    def check(name: str, value: Value) -> None:
        if not isinstance(value, int | float) or value == also:
            return
        if value < low:
            raise ConfigError(name, f"{value} is less than {low_text}")
        if high is not None and value > high:
            raise ConfigError(name, f"{value} is more than {high_text}")

    return check


def _set_check(words: str) -> Check:
    filled = words.startswith("filled")
    _, _, allowed_text = words.rpartition("of ")
    allowed = allowed_text.split(",") if "of " in words else None

    def check(name: str, value: Value) -> None:
        if not isinstance(value, list):
            return
        if filled and not value:
            raise ConfigError(name, "must not be empty")
        for entry in value:
            if allowed is not None and entry not in allowed:
                raise ConfigError(name, f"{entry!r} is not one of {', '.join(allowed)}")
            if not entry:
                raise ConfigError(name, "holds a blank entry")

    return check


def _voters(name: str, value: Value) -> None:
    for entry in value if isinstance(value, list) else ():
        match = _VOTER.fullmatch(entry)
        address = parse_host_port(match[2]) if match else None
        if address is None or address == ("0.0.0.0", 0):
            raise ConfigError(name, f"{entry!r} is not id@host:port")


def _servers(name: str, value: Value) -> None:
    for entry in value if isinstance(value, list) else ():
        if parse_host_port(entry) is None:
            raise ConfigError(name, f"{entry!r} is not host:port")


def _registries(name: str, value: Value) -> None:
    """The messages do not repeat the entry: it may hold a password."""
    for entry in value if isinstance(value, list) else ():
        if "@" in entry:
            raise ConfigError(
                name, "anyone may see it: put user:password into confluent.basic.auth.user.info"
            )
        if not _REGISTRY.fullmatch(entry):
            raise ConfigError(name, "an entry is not http://host:port or https://host:port")


def _throttled_replicas(name: str, value: Value) -> None:
    if not isinstance(value, list) or value == ["*"]:
        return
    for entry in value:
        if not _THROTTLED_REPLICA.fullmatch(entry):
            raise ConfigError(name, f"{entry!r} is not partition:broker")


def _offset_reset(name: str, value: Value) -> None:
    text = str(value)
    if text in ("earliest", "latest"):
        return
    kind, _, duration = text.partition(":")
    if kind != "by_duration" or not _DURATION.fullmatch(duration) or duration.startswith("-"):
        raise ConfigError(name, f"{text!r} is not earliest, latest or by_duration:PnDTnHnMn.nS")


def parse_host_port(text: str) -> tuple[str, int] | None:
    """Split host:port or [v6]:port; None where it is neither or the port is out of range."""
    match = _SERVER.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        return None
    return match[1] or match[2], int(match[3])


_NAMED_CHECKS: dict[str, Check] = {
    "-": _anything,
    "filled": _filled,
    "voters": _voters,
    "servers": _servers,
    "registries": _registries,
    "throttled-replicas": _throttled_replicas,
    "offset-reset": _offset_reset,
}
