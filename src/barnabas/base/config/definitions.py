"""Configuration keys, and the tables that describe them.

A table holds two lines per key, the facts and our words about it:

    name | type | default | check | importance | scope | status [| internal]
        What it does.

`check` is described in `values.py`. The node's tables are `node/config/keys/`, the registry's is
`registry/keys.txt`.
"""

from dataclasses import dataclass
from enum import StrEnum

from barnabas.base.config.values import Check, ConfigType, Value, parse_check, parse_typed

NO_DEFAULT = "(required)"
NULL_DEFAULT = "(none)"
EMPTY_DEFAULT = "(empty)"
HIDDEN = "[hidden]"
"""Shown in place of a secret."""


class Importance(StrEnum):
    """The importance that Kafka assigns to a key."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Scope(StrEnum):
    """The ways in which a key may change while the node runs; READ_ONLY needs a restart."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    DYNAMIC = "dynamic"
    """Belongs to a topic, group or metrics subscription, which can change at any time."""


class Status(StrEnum):
    """The status of a key."""

    SUPPORTED = "supported"
    PLANNED = "planned"
    """Checked and kept, without effect yet: one warning where it is set."""
    MOOT = "moot"
    """Nothing here needs it (thread pools, purgatories): accepted without a word."""
    REFUSED = "refused"
    """Not served yet, and ignoring it would be unsafe: an error where it is set."""
    NEVER = "never"
    """Will not be served (Java classes): an error where it is set to another value."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key. `default_text` is None where Kafka's default is null."""

    name: str
    type: ConfigType
    default_text: str | None
    required: bool
    check_text: str
    check: Check
    importance: Importance
    scope: Scope
    status: Status
    internal: bool
    doc: str

    @property
    def is_secret(self) -> bool:
        """True if values must never be shown."""
        return self.type is ConfigType.PASSWORD

    @property
    def default(self) -> Value:
        """The typed default; None for a null default or a required key."""
        if self.default_text is None:
            return None
        return parse_typed(self.name, self.type, self.default_text)

    def parse(self, text: str) -> Value:
        """The typed and checked value of `text`. Raises ConfigError."""
        value = parse_typed(self.name, self.type, text)
        self.check(self.name, value)
        return value


def read_table(path: str) -> dict[str, ConfigKey]:
    """The keys of a table in this format, in its order."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    keys = [_parse_key(facts, doc) for facts, doc in zip(lines[::2], lines[1::2], strict=True)]
    return {key.name: key for key in keys}


def _parse_key(facts: str, doc: str) -> ConfigKey:
    name, type_, default, check, importance, scope, status, *flags = facts.split(" | ")
    return ConfigKey(
        name=name,
        type=ConfigType(type_),
        default_text=_default_text(default),
        required=default == NO_DEFAULT,
        check_text=check,
        check=parse_check(check),
        importance=Importance(importance),
        scope=Scope(scope),
        status=Status(status),
        internal="internal" in flags,
        doc=doc.strip(),
    )


def _default_text(text: str) -> str | None:
    if text in (NO_DEFAULT, NULL_DEFAULT):
        return None
    return "" if text == EMPTY_DEFAULT else text
