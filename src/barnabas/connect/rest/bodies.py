"""Requests of the REST interface: which handler answers a path, and bodies of JSON.

Names in paths are percent-encoded and may contain any character: so paths are split before they are
decoded. A slash at the end does not matter. Bodies are as Kafka's worker takes them: for values of
settings, numbers and booleans are read as their text, as Jackson does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote

from barnabas.connect.errors.requests import BadRequestError, RequestError
from barnabas.connect.worker.herder import Offsets
from barnabas.connect.worker.state import PAUSED, STARTED, STOPPED
from barnabas.java.numbers import JAVA_SPACE
from barnabas.web.bodies import parse_json as strict_json

_INITIAL = {"RUNNING": STARTED, "PAUSED": PAUSED, "STOPPED": STOPPED}


@dataclass(slots=True)
class Request:
    """A handler's view of a request. `names` are those of the path, decoded."""

    method: str
    path: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, list[str]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    base_url: str = ""

    def flag(self, name: str) -> bool:
        """Whether a parameter is true; false where it is not given, as Java's Boolean.valueOf."""
        values = self.query.get(name)
        return values is not None and values[0].lower() == "true"

    @property
    def may_forward(self) -> bool | None:
        """The value of `forward`; None if a client sent the request, not a worker."""
        return self.flag("forward") if "forward" in self.query else None


@dataclass(slots=True, frozen=True)
class Answer:
    """A handler's result: JSON, or nothing if `status` says that there is no content."""

    status: int = 200
    body: Any = None
    location: str | None = None
    raw: bytes | None = None
    """JSON of another worker, or what is of `content_type`."""
    content_type: str = "application/json"


class Handler(Protocol):
    """Answers a request. Blocks; raises errors of `errors.requests` and ConnectError."""

    def __call__(self, request: Request, /) -> Answer: ...


class Route(NamedTuple):
    """One way to ask. `pattern` is as `/connectors/{}/tasks`; `{#}` is a whole number."""

    method: str
    pattern: str
    handler: Callable[[Request], Answer]


def names_of(parameters: Iterable[bytes]) -> tuple[str, ...]:
    """Return the names in a path, decoded."""
    return tuple(unquote(part.decode("latin-1")) for part in parameters)


def parse_query(text: str) -> dict[str, list[str]]:
    """Return the parameters; one without a value is empty."""
    return parse_qs(text, keep_blank_values=True)


def parse_json(body: bytes, *, keeps_numbers: bool = True) -> Any:
    """Return what a body says; numbers may stay the texts they are.

    Raises RequestError with Kafka's code.
    """
    if not body:
        raise BadRequestError("The request has no body")
    numbers: dict[str, Any] = {} if keeps_numbers else {"parse_int": str, "parse_float": str}
    try:
        value = strict_json(body, **numbers)
        json.dumps(value, ensure_ascii=False).encode()  # half a character has no bytes
    except ValueError as error:
        raise RequestError(f"The request's body is not JSON: {error}") from None
    return value


def parse_config(body: bytes) -> dict[str, str | None]:
    """Return a configuration. Raises RequestError."""
    return config_of(parse_json(body, keeps_numbers=False))


def config_of(value: Any) -> dict[str, str | None]:
    """Return the settings of a JSON object. Raises RequestError."""
    if not isinstance(value, dict):
        raise RequestError("A configuration is a JSON object of names and values")
    return {name: _text(name, one) for name, one in value.items()}


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise RequestError(f"The value of {name} is a text, not an object or array")
    return json.dumps(value)


def parse_creation(body: bytes) -> tuple[str, dict[str, str | None], str | None]:
    """Return name, configuration and target state of a connector to be made (KIP-980)."""
    given = parse_json(body, keeps_numbers=False)
    if not isinstance(given, dict):
        raise RequestError("A connector is a JSON object with name and config")
    unknown = sorted(given.keys() - {"name", "config", "initial_state"})
    if unknown:
        raise RequestError(f'Unrecognized field "{unknown[0]}"')
    name = (_text("name", given.get("name")) or "").strip(JAVA_SPACE)
    if given.get("config") is None:
        raise BadRequestError("The request has no config")
    return name, config_of(given["config"]), _initial(given.get("initial_state"))


def _initial(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value.upper() not in _INITIAL:
        raise RequestError("initial_state is RUNNING, PAUSED or STOPPED")
    return _INITIAL[value.upper()]


def named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a configuration with the connector's name in it. Raises BadRequestError."""
    given = config.get("name")
    if given is None:
        return {**config, "name": name}
    if given != name:
        raise BadRequestError(
            f"Connector name configuration ({given}) doesn't match connector name in the URL "
            f"({name})"
        )
    return dict(config)


def parse_offsets(body: bytes) -> Offsets:
    """Return partitions and offsets to alter. Raises RequestError."""
    given = parse_json(body)
    if not isinstance(given, dict) or given.keys() - {"offsets"}:
        raise RequestError('Offsets are a JSON object with the one field "offsets"')
    offsets = given.get("offsets")
    if not offsets:
        raise BadRequestError(
            "Partitions / offsets need to be provided for an alter offsets request"
        )
    if not isinstance(offsets, list):
        raise RequestError('"offsets" is an array')
    return [_pair(one) for one in offsets]


def _pair(value: Any) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    if not isinstance(value, dict) or value.keys() - {"partition", "offset"}:
        raise RequestError('Each of the offsets is an object with "partition" and "offset"')
    partition, offset = value.get("partition"), value.get("offset")
    for one in (partition, offset):
        if one is not None and not isinstance(one, dict):
            raise RequestError("A partition and an offset are objects")
    return partition, offset
