"""Details that DESCRIBE and SHOW give: functions, properties, statistics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from barnabas.base.clock import now_ms
from barnabas.sql.engine import config
from barnabas.sql.engine.running import RunningQuery
from barnabas.sql.engine.session import Session
from barnabas.sql.functions.catalog import Function

_SIGNATURE = re.compile(r"\((.*)\)\s*->\s*(.*)\Z", re.DOTALL)


def described_function(function: Function) -> dict[str, Any]:
    """The members of a description."""
    overloads: list[Any]
    if function.aggregates:
        kind, overloads = "AGGREGATE", list(function.aggregates)
    elif function.tables:
        kind, overloads = "TABLE", list(function.tables)
    else:
        kind, overloads = "SCALAR", list(function.scalars)
    return {
        "name": function.name.upper(),
        "description": function.description,
        "author": function.author,
        "version": function.version,
        "path": function.path,
        "functions": [_overload(one, function) for one in overloads],
        "type": kind,
    }


def _overload(overload: Any, function: Function) -> dict[str, Any]:
    match = _SIGNATURE.match(overload.signature)
    parameters, returns = match.groups() if match else ("", overload.signature)
    described = getattr(overload, "parameters", {})
    return {
        "arguments": [
            _argument(parameter, described) for parameter in split_parameters(parameters)
        ],
        "returnType": returns.strip(),
        "description": getattr(overload, "description", "") or function.description,
    }


def _argument(parameter: str, described: Any) -> dict[str, Any]:
    name, _, kind = parameter.partition(" ")
    kind = kind.strip()
    is_variadic = "..." in kind
    return {
        "name": name,
        "type": kind.replace("...", "").replace("!", ""),
        "description": described.get(name, ""),
        "isVariadic": is_variadic,
    }


def split_parameters(text: str) -> list[str]:
    """The parameters of a signature, split at the commas that are within no brackets."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


# -- SHOW PROPERTIES: each property with its value, its level, and whether it may be changed


_OF_QUERIES = frozenset(
    """
    auto.offset.reset buffered.records.per.partition cache.max.bytes.buffering
    ksql.fail.on.deserialization.error ksql.cast.strings.preserve.nulls ksql.nested.error.set.null
    ksql.query.retry.backoff.max.ms ksql.query.pull.max.allowed.offset.lag
    ksql.query.pull.table.scan.enabled ksql.timestamp.throw.on.invalid max.task.idle.ms
    task.timeout.ms
    """.split()  # noqa: SIM905  a list of names reads better so
)
"""The properties that a statement may set. Source: ksqlDB's PropertiesList."""
_OF_SYSTEM = frozenset(
    """
    max.poll.records max.poll.interval.ms session.timeout.ms heartbeat.interval.ms fetch.min.bytes
    fetch.max.bytes fetch.max.wait.ms metadata.max.age.ms max.partition.fetch.bytes batch.size
    linger.ms delivery.timeout.ms max.request.size max.block.ms buffer.memory compression.type
    acceptable.recovery.lag commit.interval.ms max.warmup.replicas num.standby.replicas poll.ms
    probing.rebalance.interval.ms processing.guarantee window.size.ms
    """.split()  # noqa: SIM905  a list of names reads better so
)


def property_entities(
    server: Mapping[str, Any], session: Session
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """The properties; the names of those that the session changed; of those at their defaults."""
    own, merged = config.shown(server), config.shown(session.settings)
    defaults = config.shown(config.DEFAULTS)
    listed = [_property(name, value, server) for name, value in merged.items()]
    changed = [name for name, value in merged.items() if own.get(name) != value]
    default = [name for name, value in merged.items() if defaults.get(name) == value]
    return listed, changed, default


def _property(name: str, value: str, server: Mapping[str, Any]) -> dict[str, Any]:
    bare = name.removeprefix(config.STREAMS_PREFIX)
    for prefix in ("consumer.", "producer."):
        bare = bare.removeprefix(prefix)
    is_known = bare in _OF_QUERIES or bare in _OF_SYSTEM
    return {
        "name": name,
        "scope": "KSQL",
        "value": value,
        "editable": is_known and _may_be_set(name, server),
        # By the whole name, as ksqlDB does: those of Kafka Streams have a prefix here.
        "level": "QUERY" if name in _OF_QUERIES else "SERVER",
    }


def _may_be_set(name: str, server: Mapping[str, Any]) -> bool:
    try:
        config.check_may_set(name, server)
    except config.PropertyError:
        return False
    return True


# -- DESCRIBE EXTENDED: what passed through a source since the server started, by ksqlDB's
# names


@dataclass(frozen=True)
class Stat:
    """One figure; `timestamp_ms` is when it changed last, 0 if it never did."""

    name: str
    value: float
    timestamp_ms: int = 0

    def entity(self, host: str) -> dict[str, Any]:
        """As a client gets it. `host`: whose figure it is, as `host:port`."""
        value, timestamp_ms = self.value, self.timestamp_ms
        return {"name": self.name, "value": value, "timestamp": timestamp_ms, "host": host}


_WRITTEN = (("messages-per-sec", "total-messages", "rows_out"),)
_READ = (("consumer-messages-per-sec", "consumer-total-messages", "rows_in"),)
_FAILED = (("consumer-failed-messages-per-sec", "consumer-failed-messages", "errors"),)


def statistics(writers: Sequence[RunningQuery], readers: Sequence[RunningQuery]) -> list[Stat]:
    """Return what queries wrote to the source's topic and read from it; empty without queries."""
    return [*_stats(_WRITTEN, writers), *_stats(_READ, readers)]


def error_statistics(readers: Sequence[RunningQuery]) -> list[Stat]:
    """Return the numbers of records that the source's queries could not process, if any."""
    stats = _stats(_FAILED, readers)
    return stats if any(stat.value for stat in stats) else []


def _stats(names: Sequence[tuple[str, str, str]], running: Sequence[RunningQuery]) -> list[Stat]:
    if not running:
        return []
    now = now_ms()
    stats = []
    for rate_name, total_name, figure in names:
        rate, total, changed_ms = 0.0, 0.0, 0
        for one in running:
            figures = one.figures
            one.rates.look(figures, now)
            rate += one.rates.per_second(figure)
            total += figures.get(figure, 0)
            changed_ms = max(changed_ms, one.rates.changed_ms.get(figure, 0))
        stats += [Stat(rate_name, rate, changed_ms), Stat(total_name, total, changed_ms)]
    return stats


def formatted(stats: Sequence[Stat], last: str) -> str:
    """Figures in a line, as ksqlDB's shell shows them; `last` names the time of the last one."""
    if not stats:
        return ""
    shown = [
        f"{stat.name:>16}:{stat.value:>10.{0 if stat.value == round(stat.value) else 2}f}"
        for stat in stats
    ]
    changed_ms = stats[0].timestamp_ms
    when = "n/a" if not changed_ms else _text(changed_ms)
    return " ".join(shown) + f" {last:>16}: {when:>9}"


def _text(timestamp_ms: int) -> str:
    at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
