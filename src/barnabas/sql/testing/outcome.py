"""What came out of queries, and whether it is what a test expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.sql.formats.windowed import windowed_deserializer
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.records import WindowBounds
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.syntax.tree import WindowKind
from barnabas.sql.testing.compare import equal
from barnabas.sql.testing.sides import window_of
from barnabas.sql.testing.world import World, header_value


class MismatchError(Exception):
    """What came out is not what was expected; the message says where."""


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
    source = world.declared.get(topic)
    window = None
    if source is not None and source.window is not None:
        decode = windowed_deserializer(
            lambda data: (key_side.decode(data),),
            size_ms=source.window.size_ms,
            session=source.window.kind is WindowKind.SESSION,
        )
        found = decode(record.key)
        key, window = (None, None) if found is None or found[0] is None else (found[0][0], found[1])
    else:
        key = key_side.decode(record.key)
    value = value_side.decode(record.value)
    return Shown(key, value, record.timestamp_ms, window, record.headers)


def difference(shown: Shown, spec: Mapping[str, Any]) -> str:
    """What is not as a test expects it, or nothing."""
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
