"""The output of queries, compared with what a test expects."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.records import WindowBounds
from barnabas.sql.runtime.topics import TopicRecord, key_reader
from barnabas.sql.testing.sides import window_of
from barnabas.sql.testing.world import World, header_value


class MismatchError(Exception):
    """The output differs from what is expected; the message says where."""


@dataclass(frozen=True)
class Shown:
    """A record that came out."""

    key: Any
    value: Any
    timestamp_ms: int
    window: WindowBounds | None
    headers: tuple[tuple[str, bytes | None], ...]


def shown(world: World, topic: str, record: TopicRecord) -> Shown:
    """A record of a topic, read as the first source over the topic says."""
    key_side, value_side = world.sides(topic)
    read_key = key_reader(lambda data: [key_side.decode(data)], world.window(topic))
    key, window = read_key(record.key)
    value = value_side.decode(record.value)
    return Shown(key and key[0], value, record.timestamp_ms, window, record.headers)


def difference(shown: Shown, spec: Mapping[str, Any]) -> str:
    """Describe the difference from what a test expects; empty if it matches."""
    if not equal(shown.key, spec.get("key")):
        return f"expected key {spec.get('key')!r}, got {shown.key!r}"
    if not equal(shown.value, spec.get("value")):
        return f"expected value {spec.get('value')!r}, got {shown.value!r}"
    timestamp = spec.get("timestamp")
    if timestamp is not None and int(timestamp) != shown.timestamp_ms:
        return f"expected timestamp {timestamp}, got {shown.timestamp_ms}"
    window = window_of(spec.get("window"))
    if window is not None and window != shown.window:
        return f"expected window {window}, got {shown.window}"
    headers = spec.get("headers")
    if headers is not None:
        wanted = tuple((h["KEY"], header_value(h["VALUE"])) for h in headers)
        if wanted != shown.headers:
            return f"expected headers {wanted}, got {shown.headers}"
    return ""


def check_outputs(
    world: World, driver: Driver, outputs: Sequence[Mapping[str, Any]], given: Iterable[str]
) -> None:
    """Compare what came out with what a test expects, topic by topic and in order.

    `given`: topics that the test itself writes to. Raises MismatchError.
    """
    expected: dict[str, list[Mapping[str, Any]]] = {}
    for spec in outputs:
        expected.setdefault(spec["topic"], []).append(spec)
    for topic, records in driver.topics.items():
        if topic not in expected and topic not in given and not expected:
            raise MismatchError(f"{len(records)} records in {topic}, none expected")
    for topic, specs in expected.items():
        seen = [shown(world, topic, record) for record in driver.topics.get(topic, [])]
        for index, spec in enumerate(specs):
            if index >= len(seen):
                raise MismatchError(f"{topic}[{index}]: expected {_brief(spec)}, got nothing")
            problem = difference(seen[index], spec)
            if problem:
                raise MismatchError(f"{topic}[{index}]: {problem}")
        if len(seen) > len(specs):
            raise MismatchError(f"{topic}: one more than expected: {seen[len(specs)]}")


def _brief(spec: Mapping[str, Any]) -> str:
    return f"{spec.get('key')!r} {spec.get('value')!r} at {spec.get('timestamp')}"


_CLOSE = 0.000_001


def equal(actual: Any, expected: Any) -> bool:
    """Compare a value of our types (see `sql.types`) with JSON of a case.

    Names of fields may be written in lower case; doubles may differ by a millionth; decimals have
    the same digits, also where they are written as text; bytes are base64.
    """
    if expected is None or actual is None:
        return actual is None and expected is None
    if isinstance(expected, dict):
        return _equal_fields(actual, expected)
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(equal(a, e) for a, e in zip(actual, expected, strict=True))
        )
    if isinstance(expected, bool) or isinstance(actual, bool):
        return actual is expected
    if isinstance(expected, str):
        return _equal_text(actual, expected)
    return _equal_number(actual, expected)


def _equal_fields(actual: Any, expected: dict[str, Any]) -> bool:
    if not isinstance(actual, dict) or len(actual) != len(expected):
        return False
    for name, value in expected.items():
        member = actual.get(name)
        if member is None:
            member = actual.get(name.upper())
        if not equal(member, value):
            return False
    return True


def _equal_text(actual: Any, expected: str) -> bool:
    if isinstance(actual, Decimal):
        return str(actual) == expected or str(Decimal(expected)) == str(actual)
    if isinstance(actual, bytes):
        return base64.b64encode(actual).decode() == expected
    if isinstance(actual, float):
        return str(actual) == expected.rstrip("0") or str(actual) == expected
    return bool(actual == expected)


def _equal_number(actual: Any, expected: Any) -> bool:
    if isinstance(actual, float):
        return abs(actual - float(expected)) < _CLOSE or actual == float(expected)
    if isinstance(actual, Decimal):
        if isinstance(expected, int):
            return actual.as_tuple().exponent == 0 and actual == expected
        return str(actual) == str(expected) or actual.compare_total(Decimal(expected)) == 0
    if isinstance(actual, int):
        return actual == int(expected)
    return False
