"""Options of `format("barnabas-share")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.kafka.wire import Access
from barnabas.spark.datasource.options import OptionError, read_security

SERVERS: Final = "bootstrap.servers"
GROUP: Final = "group.id"
"""Both follow `kafka.`, as do the settings of TLS and SASL."""
_KNOWN: Final = ("subscribe", "readers", "maxRecordsPerBatch", "verdicts", "failOnDataLoss")
_SPARKS: Final = frozenset({"path", "checkpointlocation", "queryname"})


@dataclass(slots=True, frozen=True)
class ShareOptions:
    """The options of a query that reads from a share group."""

    access: Access
    group: str
    topics: tuple[str, ...]
    readers: int = 4
    """Members of the group, and at most as many tasks in a batch."""
    records_max: int = 10_000
    """In one batch."""
    verdicts: str | None = None
    """The directory that `acknowledge` writes to."""
    fails_on_loss: bool = True


def read_options(options: Mapping[str, str]) -> ShareOptions:
    """Check the options of a `DataStreamReader`. Raises OptionError."""
    names = {name.lower(): name for name in _KNOWN}
    given: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for name, value in options.items():
        if name.lower().startswith("kafka."):
            kafka[name.lower().removeprefix("kafka.")] = value
        elif name.lower() in names:
            given[names[name.lower()]] = value
        elif name.lower() not in _SPARKS:
            raise OptionError(f"unknown option {name}; there are {', '.join(_KNOWN)}")
    servers, group = (_needed(kafka.pop(name, ""), f"kafka.{name}") for name in (SERVERS, GROUP))
    _, access = read_security(servers, kafka)
    if kafka:
        raise OptionError(f"kafka.{next(iter(kafka))} is not supported by this source")
    subscribed = _needed(given.get("subscribe", "").replace(",", " "), "subscribe")
    loss = given.get("failOnDataLoss", "true").lower()
    if loss not in ("true", "false"):
        raise OptionError(f"failOnDataLoss is true or false, not {loss}")
    return ShareOptions(
        access=access,
        group=group,
        topics=tuple(sorted(set(subscribed.split()))),
        readers=_number(given, "readers", 4, 1, 200),
        records_max=_number(given, "maxRecordsPerBatch", 10_000, 1, 1_000_000),
        verdicts=given.get("verdicts"),
        fails_on_loss=loss == "true",
    )


def _needed(value: str, name: str) -> str:
    if not value.strip():
        raise OptionError(f"option {name} is missing")
    return value.strip()


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name, str(default))
    value = int(text) if text.strip().isdecimal() else None
    if value is None or not least <= value <= most:
        raise OptionError(f"{name} is a number from {least} to {most}, not {text}")
    return value
