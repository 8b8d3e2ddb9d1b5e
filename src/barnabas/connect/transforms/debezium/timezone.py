"""TimezoneConverter: moments of change events in another time zone.

Moments with an offset are shown with that of the zone. Those without one are taken as the zone's
local time, and become the moment that this is: what Debezium does, though its documents speak of
converting.

Source: io.debezium.transforms.TimezoneConverter (Debezium 3.3).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Transform, require_struct
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    SOURCE,
    DebeziumError,
    is_envelope,
    required,
)
from barnabas.java.time.zones import Zone, offset_text, zone_of
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import DataError, NullPointerError
from barnabas.schemas.data.logical import timestamp_to_ms
from barnabas.schemas.data.schema import DATE, TIME, TIMESTAMP, Schema, Struct, Type

_log = logging.getLogger(__name__)
_OFFSET: Final = re.compile(r"[+-]\d{2}:\d{2}(:\d{2})?", re.ASCII)
_RULES: Final = re.compile(
    r'\[(?:source|topic|[".\w\s]+):(?:[".\w\s]+(?::[".\w\s]+)?(?:,|\]\Z))+', re.ASCII
)
_DEBEZIUM: Final = "io.debezium.time."
_UNITS: Final = {
    f"{_DEBEZIUM}Timestamp": 1_000,
    f"{_DEBEZIUM}MicroTimestamp": 1_000_000,
    f"{_DEBEZIUM}NanoTimestamp": 1_000_000_000,
}
"""Of moments that are numbers: how many make a second."""
_LEFT: Final = frozenset(
    {DATE, TIME, *(f"{_DEBEZIUM}{name}" for name in ("Date", "Time", "MicroTime", "NanoTime"))}
)
"""Types without a point in time, which stay unchanged."""
_ZONED: Final = re.compile(
    r"(?:(\d{4}-\d\d-\d\d)T)?(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?"
    r"(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)",
    re.ASCII | re.IGNORECASE,
)
_DAY_S: Final = 86_400


def _rules(name: str, doc: str) -> Setting:
    return Setting(name, ConfigType.LIST, "", Importance.HIGH, doc, width=Width.MEDIUM)


@dataclass(slots=True, frozen=True)
class _Fields:
    """Which fields are converted: those of a set, or all others."""

    names: frozenset[str] = frozenset()
    is_all_but: bool = True

    def of(self, place: str) -> _Fields:
        """Those of one struct of the envelope; names alone are those of the rows."""
        prefix = f"{place}."
        own = {name.removeprefix(prefix) for name in self.names if name.startswith(prefix)}
        if place != SOURCE:
            others = (f"{SOURCE}.", f"{BEFORE}.", f"{AFTER}.")
            own |= {name for name in self.names if not name.startswith(others)}
        return _Fields(frozenset(own), self.is_all_but)

    def has(self, name: str) -> bool:
        return (name in self.names) is not self.is_all_but


class TimezoneConverter(Transform):
    """Converts moments of the rows of change events."""

    definition: ClassVar[Definition] = Definition([
        Setting("converted.timezone", ConfigType.STRING, default=None, importance=Importance.HIGH,
                doc="The time zone, as America/Los_Angeles or +08:00.", width=Width.MEDIUM,
                display_name="Converted Timezone", validator=required),
        _rules("include.list",
               "Only these are converted: source:TABLE, topic:TOPIC or a name that may be "
               "either, and :FIELD behind it for one field."),
        _rules("exclude.list", "These are not converted, in the same form."),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        included, excluded = parsed["include.list"], parsed["exclude.list"]
        for what, rules in (("include", included), ("exclude", excluded)):
            if rules:
                _check(what, rules)
                break
        self._zone = _zone(parsed["converted.timezone"].strip())
        if included and excluded:
            raise DebeziumError(
                "Both include and exclude lists are specified. Please specify only one."
            )
        self._is_excluding = not included
        self._topics, self._tables, self._either = _by_place(excluded or included)
        self._plans: Cache[tuple[Schema, _Fields], _Plan] = Cache(self._plan)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the change with its moments converted. Raises ConnectError."""
        if record.value is None or not is_envelope(record):
            return record
        envelope = require_struct(record.value, "time zone conversion", record.value_schema)
        fields = self._fields(_table(envelope), record.topic)
        if fields is None:
            return record
        values = envelope.values[:]
        for place in (BEFORE, AFTER, SOURCE):
            own = fields.of(place)
            struct = _struct(envelope, place)
            if struct is None or (place == SOURCE and not own.names):
                continue
            plan = self._plans((struct.schema, own))
            values[_place(envelope, place)] = plan(struct)
        return record.with_value(record.value_schema, Struct(envelope.schema, values))

    def _fields(self, table: str | None, topic: str) -> _Fields | None:
        """The fields to convert in events of a table and topic; None if absent."""
        for names, rules in (
            (topic, self._topics),
            (table, self._tables),
            (topic, self._either),
            (table, self._either),
        ):
            rule = rules.get(names)
            if rule is None:
                continue
            if rule:
                return _Fields(frozenset(rule), self._is_excluding)
            return None if self._is_excluding else _Fields()
        return _Fields() if self._is_excluding else None

    def _plan(self, key: tuple[Schema, _Fields]) -> _Plan:
        schema, fields = key
        conversions = []
        for field in schema.fields:
            name = field.schema.name
            if name is None or not fields.has(field.name):
                continue
            if name in _LEFT:
                _log.warning("%s is left unchanged: %s is not a point in time", field.name, name)
            elif (convert := _conversion(name, self._zone)) is not None:
                conversions.append((field.index, field.schema.default, convert))
        return _Plan(conversions)


class _Plan:
    """Converts fields of the structs of one schema."""

    def __init__(self, conversions: Sequence[tuple[int, Any, Callable[[Any], Any]]]) -> None:
        self._conversions = conversions

    def __call__(self, struct: Struct) -> Struct:
        values = struct.values[:]
        for place, default, convert in self._conversions:
            value = default if values[place] is None else values[place]
            if value is not None:
                values[place] = convert(value)
        return Struct(struct.schema, values)


def _conversion(name: str, zone: Zone) -> Callable[[Any], Any] | None:
    if name == TIMESTAMP:
        return partial(_moment, zone)
    if name in _UNITS:
        return partial(_number, zone, _UNITS[name])
    if name == f"{_DEBEZIUM}ZonedTimestamp":
        return partial(_zoned_timestamp, zone)
    if name == f"{_DEBEZIUM}ZonedTime":
        return partial(_zoned_time, zone)
    return None


def _number(zone: Zone, units: int, value: int) -> int:
    return value - zone.offset_of_local(value // units) * units


def _moment(zone: Zone, value: datetime) -> datetime:
    offset = zone.offset_of_local(timestamp_to_ms(value) // 1000)
    try:
        return value - timedelta(seconds=offset)
    except OverflowError:
        raise DataError(f"{value} in {zone.id} is outside of the years 1 to 9999") from None


def _zoned_timestamp(zone: Zone, text: str) -> str:
    day, second, fraction, own = _parts(text, has_day=True)
    assert day is not None
    local = int(day.timestamp()) + second
    offset = zone.offset_of_local(local)
    try:
        shown = day + timedelta(seconds=second - own + offset)
    except OverflowError:
        raise DataError(f"{text} in {zone.id} is outside of the years 1 to 9999") from None
    return f"{shown:%Y-%m-%dT%H:%M:%S}".zfill(19) + fraction + offset_text(offset)


def _zoned_time(zone: Zone, text: str) -> str:
    _, second, fraction, own = _parts(text, has_day=False)
    # Without a day, today's offset is shown.
    offset = zone.offset_at(int(datetime.now(UTC).timestamp()))
    minutes, rest = divmod((second - own + offset) % _DAY_S, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}{fraction}{offset_text(offset)}"


def _parts(text: str, *, has_day: bool) -> tuple[datetime | None, int, str, int]:
    """Day, second of the day, the fraction as it is shown, and the offset in seconds."""
    match = _ZONED.fullmatch(text)
    try:
        if match is None or (match[1] is not None) is not has_day:
            raise ValueError
        hour, minute, second = int(match[2]), int(match[3]), int(match[4] or 0)
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError
        day = datetime.fromisoformat(f"{match[1]}T00:00:00+00:00") if has_day else None
        own = zone_of(match[6].upper()).offset
    except ValueError:
        what = "moment" if has_day else "time"
        raise DataError(f"{text} is no {what} with an offset of the years 1 to 9999") from None
    digits = (match[5] or "").rstrip("0")
    return day, hour * 3600 + minute * 60 + second, f".{digits}" if digits else "", own


def _table(envelope: Struct) -> str | None:
    field = envelope.schema.field(SOURCE)
    if field is None or field.schema.type is not Type.STRUCT:
        return None
    source = envelope.values[field.index]
    if source is None:
        raise NullPointerError("There is no source in the envelope")
    table = source.schema.field("table")
    if table is None or table.schema.type is not Type.STRING:
        return None
    name: str | None = source.values[table.index]
    return name


def _place(envelope: Struct, name: str) -> int:
    field = envelope.schema.field(name)
    assert field is not None
    return field.index


def _struct(envelope: Struct, name: str) -> Struct | None:
    field = envelope.schema.field(name)
    source = None if field is None else envelope.values[field.index]
    return source if type(source) is Struct else None


def _zone(text: str) -> Zone:
    try:
        zone = zone_of(text)
        if _OFFSET.fullmatch(text) or zone.rules is not None or text in ("UTC", "GMT"):
            return zone
    except ValueError:
        pass
    raise DebeziumError(
        "Invalid timezone format. Please specify either a geographic timezone "
        "(e.g. America/Los_Angeles) or a UTC offset in the format of +/-hh:mm, (e.g. +08:00)."
    )


def _check(what: str, rules: Sequence[str]) -> None:
    if not _RULES.fullmatch(f"[{', '.join(rules)}]"):
        raise DebeziumError(
            f"Invalid {what} list format. Please specify a list of rules in the format of "
            '"source:<tablename>:<fieldnames>", "topic:<topicname>:<fieldnames>", '
            '"<matchname>:<fieldnames>"'
        )


_Rules = dict[str | None, set[str]]


def _by_place(rules: Sequence[str]) -> tuple[_Rules, _Rules, _Rules]:
    """Fields by topic, by table, and by what may be either; a prefix counts for what follows."""
    topics: _Rules = {}
    tables: _Rules = {}
    either: _Rules = {}
    chosen = either
    for rule in rules:
        first, *rest = rule.split(":")
        if rest and first.lower() in (SOURCE, "topic"):
            # Java takes the word in capitals for a prefix too, and then for neither of the two.
            chosen = {"topic": topics, SOURCE: tables}.get(first, either)
            first, *rest = rest
        chosen.setdefault(first, set()).update(rest[:1])
    return topics, tables, either
