"""Data contracts: the metadata and the rules that a schema carries.

They are kept, merged, hashed and returned. Rules are run by clients, never here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

VERSION_PROPERTY = "confluent:version"
"""The metadata property that holds the version of a schema, where one is asked for."""
RESERVED_PROPERTY = "confluent:reserved"
"""The metadata property that names fields, comma-separated, which may not be used."""

RULE_KINDS = ("TRANSFORM", "CONDITION")
MIGRATION_MODES = ("UPGRADE", "DOWNGRADE", "UPDOWN")
DOMAIN_MODES = ("WRITE", "READ", "WRITEREAD")
RULE_MODES = MIGRATION_MODES + DOMAIN_MODES
RULE_NAME_LENGTH_MAX = 64


@dataclass(frozen=True, slots=True)
class Metadata:
    """Tags by path, properties, and the names of properties that are sensitive. All sorted."""

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Any, place: str = "metadata") -> "Metadata":
        """Read decoded JSON. Unknown fields are skipped. Raises ValueError with the place."""
        body = _object(value, place)
        tags = _object(body.get("tags") or {}, f"{place}.tags")
        properties = _object(body.get("properties") or {}, f"{place}.properties")
        return cls(
            {key: _texts(tags[key], f"{place}.tags.{key}") for key in _in_order(tags)},
            {
                key: _text(properties[key], f"{place}.properties.{key}")
                for key in _in_order(properties)
            },
            _texts(body.get("sensitive"), f"{place}.sensitive"),
        )

    def to_json(self) -> dict[str, Any]:
        """JSON with Confluent's fields in its order; empty ones are left out."""
        body: dict[str, Any] = {}
        if self.tags:
            body["tags"] = {key: list(tags) for key, tags in self.tags.items()}
        if self.properties:
            body["properties"] = dict(self.properties)
        if self.sensitive:
            body["sensitive"] = list(self.sensitive)
        return body

    def hashed(self) -> Iterator[bytes]:
        """The bytes that stand for it in the hash of a schema."""
        for path, tags in self.tags.items():
            yield path.encode()
            yield from (tag.encode() for tag in tags)
        for key, value in self.properties.items():
            yield key.encode()
            yield value.encode()
        yield from (name.encode() for name in self.sensitive)

    @property
    def version(self) -> int | None:
        """The version that the metadata speaks of, None if it is not a number or not there."""
        try:
            return int(self.properties[VERSION_PROPERTY])
        except (KeyError, ValueError):
            return None

    @property
    def reserved(self) -> frozenset[str]:
        """Names of fields that may not be used."""
        names = self.properties.get(RESERVED_PROPERTY, "").split(",")
        return frozenset(name.strip() for name in names if name.strip())


def with_version(metadata: Metadata | None, version: int) -> Metadata:
    """Metadata that speaks of a version."""
    metadata = metadata or Metadata()
    properties = {**metadata.properties, VERSION_PROPERTY: str(version)}
    return replace(metadata, properties={key: properties[key] for key in _in_order(properties)})


def without_version(metadata: Metadata | None) -> Metadata:
    """Metadata that speaks of no version; none at all becomes empty."""
    metadata = metadata or Metadata()
    properties = {k: v for k, v in metadata.properties.items() if k != VERSION_PROPERTY}
    return replace(metadata, properties=properties)


def merged_metadata(older: Metadata | None, newer: Metadata | None) -> Metadata | None:
    """Both together; where both speak of one key, the newer holds."""
    if older is None or newer is None:
        return newer if older is None else older
    tags = {**older.tags, **newer.tags}
    properties = {**older.properties, **newer.properties}
    return Metadata(
        {key: tags[key] for key in _in_order(tags)},
        {key: properties[key] for key in _in_order(properties)},
        tuple(_in_order({*older.sensitive, *newer.sensitive})),
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `kind` is of RULE_KINDS, `mode` of RULE_MODES."""

    name: str | None = None
    doc: str | None = None
    kind: str = "TRANSFORM"
    mode: str = "WRITEREAD"
    type: str | None = None
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False

    @classmethod
    def from_json(cls, value: Any, place: str) -> "Rule":
        """Read decoded JSON. Unknown fields are skipped. Raises ValueError with the place."""
        body = _object(value, place)
        params = _object(body.get("params") or {}, f"{place}.params")

        def text(name: str) -> str | None:
            member = body.get(name)
            return None if member is None else _text(member, f"{place}.{name}")

        def word(name: str, words: tuple[str, ...], default: str) -> str:
            member = text(name) or default
            if member not in words:
                raise ValueError(f"{place}.{name} is {member!r}, not one of {', '.join(words)}")
            return member

        return cls(
            name=text("name"),
            doc=text("doc"),
            kind=word("kind", RULE_KINDS, "TRANSFORM"),
            mode=word("mode", RULE_MODES, "WRITEREAD"),
            type=text("type"),
            tags=_texts(body.get("tags"), f"{place}.tags"),
            params={key: _text(params[key], f"{place}.params.{key}") for key in _in_order(params)},
            expr=text("expr"),
            on_success=text("onSuccess"),
            on_failure=text("onFailure"),
            disabled=bool(body.get("disabled", False)),
        )

    def to_json(self) -> dict[str, Any]:
        """JSON with Confluent's fields in its order; empty ones are left out."""
        body: dict[str, Any] = {
            "name": self.name,
            "doc": self.doc,
            "kind": self.kind,
            "mode": self.mode,
            "type": self.type,
            "tags": list(self.tags),
            "params": dict(self.params),
            "expr": self.expr,
            "onSuccess": self.on_success,
            "onFailure": self.on_failure,
        }
        return {key: value for key, value in body.items() if value} | {"disabled": self.disabled}

    def hashed(self) -> Iterator[bytes]:
        """The bytes that stand for it in the hash of a schema."""
        for text in (self.name, self.doc, self.kind, self.mode, self.type, *self.tags):
            if text is not None:
                yield text.encode()
        for key, value in self.params.items():
            yield key.encode()
            yield value.encode()
        for text in (self.expr, self.on_success, self.on_failure):
            if text is not None:
                yield text.encode()
        if self.disabled:
            yield b"\x01"

    def fault(self) -> str | None:
        """Say what is wrong with the rule by itself; None if nothing is."""
        name = self.name
        if not name:
            return "a rule has no name"
        if len(name) > RULE_NAME_LENGTH_MAX:
            return f"the name of rule {name[:20]!r}… is longer than {RULE_NAME_LENGTH_MAX}"
        if not (name[0].isalpha() or name[0] == "_"):
            return f"the name of rule {name!r} starts with neither a letter nor an underscore"
        if not all(char.isalnum() or char in "_-" for char in name):
            return f"the name of rule {name!r} has a character that names may not have"
        if self.type is None:
            return f"rule {name!r} has no type"
        if self.mode not in ("WRITEREAD", "UPDOWN") and any(
            action is not None and "," in action for action in (self.on_success, self.on_failure)
        ):
            return f"rule {name!r} has two actions, which only WRITEREAD and UPDOWN may have"
        return None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules for migration between versions, for the domain and for encoding."""

    migration_rules: tuple[Rule, ...] = ()
    domain_rules: tuple[Rule, ...] = ()
    encoding_rules: tuple[Rule, ...] = ()
    enable_at: str | None = None

    @classmethod
    def from_json(cls, value: Any, place: str = "ruleSet") -> "RuleSet":
        """Read decoded JSON. Unknown fields are skipped. Raises ValueError with the place."""
        body = _object(value, place)

        def rules(name: str) -> tuple[Rule, ...]:
            members = body.get(name) or []
            if not isinstance(members, list):
                raise ValueError(f"{place}.{name} is not a list")
            return tuple(
                Rule.from_json(rule, f"{place}.{name}[{number}]")
                for number, rule in enumerate(members)
            )

        enable_at = body.get("enableAt")
        return cls(
            rules("migrationRules"),
            rules("domainRules"),
            rules("encodingRules"),
            None if enable_at is None else _text(enable_at, f"{place}.enableAt"),
        )

    def to_json(self) -> dict[str, Any]:
        """JSON with Confluent's fields in its order; empty ones are left out."""
        body: dict[str, Any] = {
            "migrationRules": [rule.to_json() for rule in self.migration_rules],
            "domainRules": [rule.to_json() for rule in self.domain_rules],
            "encodingRules": [rule.to_json() for rule in self.encoding_rules],
            "enableAt": self.enable_at,
        }
        return {key: value for key, value in body.items() if value}

    def hashed(self) -> Iterator[bytes]:
        """The bytes that stand for it in the hash of a schema."""
        for rule in (*self.migration_rules, *self.domain_rules, *self.encoding_rules):
            yield from rule.hashed()
        if self.enable_at is not None:
            yield self.enable_at.encode()

    def fault(self) -> str | None:
        """Say what is wrong with the rules, or None: repeated names, no type, a wrong mode."""
        names: set[str | None] = set()
        for kind, rules, modes in (
            ("migration", self.migration_rules, MIGRATION_MODES),
            ("domain", self.domain_rules, DOMAIN_MODES),
            ("encoding", self.encoding_rules, DOMAIN_MODES),
        ):
            for rule in rules:
                fault = rule.fault()
                if fault:
                    return fault
                if rule.name in names:
                    return f"two rules have the name {rule.name!r}"
                if rule.mode not in modes:
                    return f"{kind} rule {rule.name!r} is {rule.mode}, not of {', '.join(modes)}"
                names.add(rule.name)
        return None

    def without(self, names: Iterable[str]) -> "RuleSet":
        """The rules that do not have these names."""
        gone = frozenset(names)

        def kept(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
            return tuple(rule for rule in rules if rule.name not in gone)

        return RuleSet(
            kept(self.migration_rules),
            kept(self.domain_rules),
            kept(self.encoding_rules),
            self.enable_at,
        )

    def has_type(self, rule_type: str) -> bool:
        """Return whether a rule is of a type."""
        rules = (*self.migration_rules, *self.domain_rules, *self.encoding_rules)
        return any(rule.type == rule_type for rule in rules)


def merged_rule_set(older: RuleSet | None, newer: RuleSet | None) -> RuleSet | None:
    """Both together; a newer rule takes the place of an older one of its name."""
    if older is None or newer is None:
        return newer if older is None else older

    def merged(old: tuple[Rule, ...], new: tuple[Rule, ...]) -> tuple[Rule, ...]:
        names = {rule.name for rule in new}
        return (*(rule for rule in old if rule.name not in names), *new)

    return RuleSet(
        merged(older.migration_rules, newer.migration_rules),
        merged(older.domain_rules, newer.domain_rules),
        merged(older.encoding_rules, newer.encoding_rules),
        newer.enable_at or older.enable_at,
    )


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place} is not an object")
    return value


def _text(value: Any, place: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"{place} is not a text")


def _texts(value: Any, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"{place} is not a list")
    return tuple(_in_order({_text(item, place) for item in value}))


def _in_order(names: Iterable[str]) -> list[str]:
    """Sorted as Java sorts: by UTF-16 units. Hashes depend on it."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
