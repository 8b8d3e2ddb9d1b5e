"""Hypothesis strategies for every message, made from the declarations."""

import dataclasses
import importlib
import inspect
import pkgutil
from functools import cache
from typing import Any

from hypothesis import strategies as st

from barnabas.protocol import messages
from barnabas.protocol.schema import Field, FieldType, Message, Struct

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.just("a" * 127)
BYTES = st.binary(max_size=5) | st.just(b"b" * 300)

PLAIN: dict[str, st.SearchStrategy[Any]] = {
    **{kind: st.integers(low, high) for kind, (low, high) in RANGES.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": TEXT,
    "bytes": BYTES,
    "records": BYTES,
}


def all_messages() -> list[type[Message]]:
    """Every declared message, by name."""
    modules = [
        importlib.import_module(f"{messages.__name__}.{module.name}")
        for module in pkgutil.iter_modules(messages.__path__)
    ]
    found = {
        member.__name__: member
        for module in modules
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Message) and member is not Message
    }
    return [found[name] for name in sorted(found)]


def versions(cls: type[Message]) -> range:
    """The versions of a message. Tests take them in one go: a test for each costs more than it."""
    return range(cls.SCHEMA.versions.first, cls.SCHEMA.versions.last + 1)


def all_versions() -> list[tuple[type[Message], int]]:
    """Every message in each of its versions."""
    return [(cls, version) for cls in all_messages() for version in versions(cls)]


def label(value: object) -> str:
    """A parameter as the test's id shows it."""
    return value.__name__ if isinstance(value, type) else str(value)


@cache
def struct_values(
    cls: type[Struct], version: int, peer: type | None = None
) -> st.SearchStrategy[Any]:
    """Instances that `version` can carry; absent fields keep their defaults.

    `peer` is kio's class for the same struct, whose types allow a little less.
    """
    fields = {
        field.name: field_values(field, version, peer_field(peer, field.name))
        for field in cls.SCHEMA.fields
        if field.versions.covers(version)
    }
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))


def field_values(field: Field, version: int, peer: dataclasses.Field[Any] | None) -> Any:
    values = type_values(field.type, version, peer)
    return st.none() | values if field.nullable.covers(version) else values


def type_values(
    of: FieldType, version: int, peer: dataclasses.Field[Any] | None
) -> st.SearchStrategy[Any]:
    if of.element is not None:
        return st.lists(type_values(of.element, version, peer), max_size=2)
    if of.struct is not None:
        made: Any = of.struct
        return struct_values(made, version, None if peer is None else peer_struct(peer))
    kind = "" if peer is None else peer.metadata.get("kafka_type", "")
    return PEER_LIMITS.get(kind, PLAIN[of.kind])


def peer_field(peer: type | None, name: str) -> dataclasses.Field[Any] | None:
    """kio's field of that name; it names a few in another way."""
    if peer is None:
        return None
    return {plain(field.name): field for field in dataclasses.fields(peer)}[plain(name)]


def plain(name: str) -> str:
    """A name without underscores and units, which kio drops where its type says them."""
    name = name.replace("_", "")
    for unit in ("timestampms", "timems", "ms"):
        if name.endswith(unit) and name != unit:
            return name.removesuffix("ms")
    return name


def peer_struct(field: dataclasses.Field[Any]) -> type:
    """The class in the type of one of kio's fields: `X`, `X | None`, `tuple[X, ...] | None`."""
    return next(found for found in classes_in(field.type) if dataclasses.is_dataclass(found))


def classes_in(annotation: Any) -> list[type]:
    inner = getattr(annotation, "__args__", ())
    if inner:
        return [found for part in inner for found in classes_in(part)]
    return [annotation] if isinstance(annotation, type) else []


YEAR_2200_MS = 7_258_118_400_000
PEER_LIMITS: dict[str, st.SearchStrategy[Any]] = {
    "datetime_i64": st.integers(0, YEAR_2200_MS),
    "timedelta_i64": st.integers(-YEAR_2200_MS, YEAR_2200_MS),
}


def limit_error_codes(codes: list[int]) -> None:
    """Tell which error codes the peer knows."""
    PEER_LIMITS["error_code"] = st.sampled_from(codes)


def sample(cls: type[Struct], version: int) -> Any:
    """A message with something in every field that `version` carries."""
    values = {
        field.name: sample_value(field.type, version)
        for field in cls.SCHEMA.fields
        if field.versions.covers(version)
    }
    return cls(**values)


SAMPLES: dict[str, Any] = {
    **{kind: high // 3 for kind, (_, high) in RANGES.items()},
    "bool": True,
    "float64": 1.5,
    "uuid": bytes(range(16)),
    "string": "name",
    "bytes": b"bytes",
    "records": b"records",
}


def sample_value(of: FieldType, version: int) -> Any:
    if of.element is not None:
        count = 1 if of.element.struct is not None else 2
        return [sample_value(of.element, version)] * count
    if of.struct is not None:
        return sample(of.struct, version)
    return SAMPLES[of.kind]
