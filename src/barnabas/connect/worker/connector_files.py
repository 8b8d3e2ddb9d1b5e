"""Files that describe a connector each: properties, or JSON with an initial state (KIP-980).

    name=lines                          {"name": "lines", "config": {…}, "initial_state": "PAUSED"}
    connector.class=FileStreamSource    or just the configuration, with its name
    …

Source: ConnectStandalone.parseConnectorConfigurationFile (Kafka 4.3).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.connect.errors.requests import RequestError
from barnabas.connect.rest.bodies import config_of, parse_creation
from barnabas.schemas.data.errors import ConfigError


@dataclass(slots=True, frozen=True)
class ConnectorFile:
    """A connector as a file describes it; `target` None means that it is to be started."""

    name: str
    config: dict[str, str] = field(repr=False)
    target: str | None = None


def read_connector(
    path: str, text: str, parse_properties: Callable[[str], dict[str, str]]
) -> ConnectorFile:
    """Return the connector of a file. Raises ConfigError."""
    try:
        value = json.loads(text)
    except ValueError:
        return _named(path, parse_properties(text), None)
    try:
        if isinstance(value, dict) and isinstance(value.get("config"), dict):
            name, config, target = parse_creation(text.encode())
            given = _given(config)
            if given.setdefault("name", name) != name:
                raise ConfigError(f"{path}: the config's name is not {name}")
            return _named(path, given, target)
        return _named(path, _given(config_of(value)), None)
    except RequestError as error:
        raise ConfigError(f"{path}: {error}") from error


def _given(config: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in config.items() if value is not None}


def _named(path: str, config: dict[str, str], target: str | None) -> ConnectorFile:
    if not config.get("name"):
        raise ConfigError(
            f"{path}: connector configuration must contain 'name' and 'connector.class'"
        )
    return ConnectorFile(config["name"], config, target)
