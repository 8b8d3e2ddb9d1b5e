"""Options of `format("barnabas-share")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.pipeline.datasource.wire import Access

SERVERS: Final = "kafka.bootstrap.servers"
GROUP: Final = "kafka.group.id"
_KNOWN: Final = (
    SERVERS,
    GROUP,
    "subscribe",
    "readers",
    "maxRecordsPerBatch",
    "verdicts",
    "failOnDataLoss",
)
_SPARKS: Final = frozenset({"path", "checkpointlocation", "queryname"})


class ShareOptionError(ValueError):
    """An option is missing, unknown or has a value that it cannot have."""


@dataclass(slots=True, frozen=True)
class ShareOptions:
    """How a query reads from a share group."""

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
    """Check the options of a `DataStreamReader`. Raises ShareOptionError."""
    names = {name.lower(): name for name in _KNOWN}
    given: dict[str, str] = {}
    for name, value in options.items():
        if name.lower() in names:
            given[names[name.lower()]] = value
        elif name.lower() not in _SPARKS:
            raise ShareOptionError(f"unknown option {name}; there are {', '.join(_KNOWN)}")
    for name in (SERVERS, GROUP, "subscribe"):
        if not given.get(name, "").strip():
            raise ShareOptionError(f"option {name} is missing")
    for server in given[SERVERS].split(","):
        if not server.strip().rpartition(":")[2].isdigit():
            raise ShareOptionError(f"{SERVERS}: {server!r} is not host:port")
    topics = tuple(sorted({name.strip() for name in given["subscribe"].split(",") if name.strip()}))
    loss = given.get("failOnDataLoss", "true").lower()
    if loss not in ("true", "false"):
        raise ShareOptionError(f"failOnDataLoss is true or false, not {loss}")
    return ShareOptions(
        access=Access(given[SERVERS]),
        group=given[GROUP].strip(),
        topics=topics,
        readers=_number(given, "readers", 4, 1, 200),
        records_max=_number(given, "maxRecordsPerBatch", 10_000, 1, 1_000_000),
        verdicts=given.get("verdicts"),
        fails_on_loss=loss == "true",
    )


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name, str(default))
    value = int(text) if text.strip().isdecimal() else None
    if value is None or not least <= value <= most:
        raise ShareOptionError(f"{name} is a number from {least} to {most}, not {text}")
    return value
