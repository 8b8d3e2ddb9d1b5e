"""Values of settings from elsewhere: `${provider:path:key}` or `${provider:key}`.

A worker names its providers in `config.providers`; their values are in no stored configuration, and
`Resolved.hidden` removes them from texts that people see. Unknown references stay as written, as in
Kafka.

Source: org.apache.kafka.common.config.ConfigTransformer and …config.provider (Kafka 4.3).
"""

from __future__ import annotations

import json
import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus

from barnabas.base.config.definitions import HIDDEN
from barnabas.base.config.properties import parse_properties
from barnabas.connect import plugins
from barnabas.connect.allowed_plugins import allow
from barnabas.connect.config.values import with_prefix
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError

# Takes secrets out of texts, also where Python, JSON or a URL spells them in its way.

LENGTH_MIN: Final = 4
"""Shorter values occur in texts by chance: hiding each `a` would hide the text."""


class Hiding:
    """Hides secrets; a call returns a text without them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {
            spelling
            for secret in secrets
            if len(secret) >= LENGTH_MIN
            for spelling in _spellings(secret)
        }
        self._spellings = sorted(spellings, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, HIDDEN)
        return text


def _spellings(secret: str) -> Iterable[str]:
    yield secret
    python = "".join(char if char in "'\"" else repr(char)[1:-1] for char in secret)
    yield python
    yield python.replace("'", "\\'")
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    known = secret.encode(errors="surrogatepass")
    yield quote(known)
    yield quote(known, safe="")
    yield quote_plus(known)


log = logging.getLogger(__name__)
_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PLACE: Final = "org.apache.kafka.common.config.provider."


@dataclass(slots=True)
class Provided:
    """A provider's values for some keys, and how long they are valid; None means always."""

    values: Mapping[str, str] = field(repr=False)
    ttl_ms: int | None = None


class ConfigProvider(ABC):
    """Knows values of settings. Custom providers are named `package.module:Class`."""

    def configure(self, settings: Mapping[str, str]) -> None:  # noqa: B027  # may be left out
        """Take the provider's parameters. Raises ConfigError."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str]) -> Provided:
        """Return the values of those keys that are known. Raises ConfigError."""

    def close(self) -> None:  # noqa: B027  # may be left out
        """Close what it holds open."""


class FileConfigProvider(ConfigProvider):
    """Keys of properties files."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take `allowed.paths`. Raises ConfigError."""
        self._allowed = _allowed_paths(settings)

    def get(self, path: str, keys: Collection[str]) -> Provided:
        """Return values of a file. Raises ConfigError if it cannot be read."""
        file = _allowed_path(path, self._allowed)
        if file is None:
            return Provided({})
        try:
            properties = parse_properties(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            log.error("Could not read properties from file %s: %s", path, type(error).__name__)
            raise ConfigError(f"Could not read properties from file {path}") from None
        return Provided({key: properties[key] for key in keys if key in properties})


class DirectoryConfigProvider(ConfigProvider):
    """Files of a directory: the name is the key, the content the value."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take `allowed.paths`. Raises ConfigError."""
        self._allowed = _allowed_paths(settings)

    def get(self, path: str, keys: Collection[str]) -> Provided:
        """Return contents of files. Raises ConfigError if one cannot be read."""
        directory = _allowed_path(path, self._allowed)
        if directory is None:
            return Provided({})
        if not directory.is_dir():
            log.warning("The path %s is not a directory", path)
            return Provided({})
        # Only names that are listed: a key such as ../x is none.
        return Provided(
            {
                file.name: _content(file)
                for file in directory.iterdir()
                if file.name in keys and file.is_file()
            }
        )


class EnvVarConfigProvider(ConfigProvider):
    """Environment variables."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take `allowlist.pattern`. Raises ConfigError."""
        text = settings.get("allowlist.pattern", ".*")
        try:
            self._pattern = compile_java(text)
        except PatternError as error:
            raise ConfigError(f"Invalid value {text} for allowlist.pattern: {error}") from None

    def get(self, path: str, keys: Collection[str]) -> Provided:
        """Return values of variables. Raises ConfigError if there is a path."""
        if path:
            raise ConfigError(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'"
            )
        return Provided(
            {
                key: os.environ[key]
                for key in keys
                if key in os.environ and self._pattern.matches(key)
            }
        )


@dataclass(slots=True)
class Resolved:
    """Settings with their variables replaced. `ttls_ms` are by path."""

    settings: dict[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    """All values that came from providers."""
    ttls_ms: dict[str, int] = field(default_factory=dict)

    def hidden(self, text: str) -> str:
        """The text without values that came from providers."""
        return Hiding(self.secrets)(text)


class ConfigProviders:
    """A worker's providers by name."""

    def __init__(self, providers: Mapping[str, ConfigProvider]) -> None:
        self._providers = dict(providers)

    @classmethod
    def of_worker(cls, settings: Mapping[str, str]) -> ConfigProviders:
        """Make the providers that a worker's settings name. Raises ConfigError.

        `config.providers=a,b`, and of each `config.providers.a.class` and
        `config.providers.a.param.…`.
        """
        names = [name.strip() for name in settings.get("config.providers", "").split(",")]
        return cls({name: _made(name, settings) for name in names if name})

    def resolve(self, settings: Mapping[str, Any]) -> Resolved:
        """Return settings with variables replaced. Raises ConfigError."""
        known: dict[tuple[str, str], Mapping[str, str]] = {}
        ttls: dict[str, int] = {}
        for (name, path), keys in self._wanted(settings).items():
            provided = self._providers[name].get(path, keys)
            known[name, path] = provided.values
            if provided.ttl_ms is not None and provided.ttl_ms >= 0:
                ttls[path] = min(provided.ttl_ms, ttls.get(path, provided.ttl_ms))
        secrets = {value for values in known.values() for value in values.values() if value}

        def replaced(match: re.Match[str]) -> str:
            values = known.get((match[1], match[2] or ""), {})
            return values.get(match[3], match[0])

        result = {
            key: _VARIABLE.sub(replaced, value) if isinstance(value, str) else value
            for key, value in settings.items()
        }
        return Resolved(result, frozenset(secrets), ttls)

    def _wanted(self, settings: Mapping[str, Any]) -> dict[tuple[str, str], set[str]]:
        wanted: dict[tuple[str, str], set[str]] = {}
        for value in settings.values():
            for match in _VARIABLE.finditer(value) if isinstance(value, str) else ():
                if match[1] in self._providers:
                    wanted.setdefault((match[1], match[2] or ""), set()).add(match[3])
        return wanted

    def close(self) -> None:
        """Close all."""
        for provider in self._providers.values():
            provider.close()


_CLASSES: Final[dict[str, type[ConfigProvider]]] = {
    _PLACE + kind.__name__: kind
    for kind in (FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider)
}


def _made(name: str, settings: Mapping[str, str]) -> ConfigProvider:
    prefix = f"config.providers.{name}."
    class_name = settings.get(f"{prefix}class")
    if not class_name:
        raise ConfigError(f"Missing configuration {prefix}class of the config provider {name}")
    allow([class_name])  # the worker's own settings name it
    kind = _CLASSES.get(class_name) or plugins.load(class_name)
    if not issubclass(kind, ConfigProvider):
        raise ConfigError(f"{class_name} is not a config provider")
    provider = kind()
    provider.configure(with_prefix(settings, f"{prefix}param."))
    return provider


def _allowed_paths(settings: Mapping[str, str]) -> list[Path] | None:
    text = settings.get("allowed.paths")
    if not text:
        return None
    paths = [Path(os.path.normpath(part)) for part in text.split(",")]
    for path in paths:
        if not path.is_absolute():
            raise ConfigError(f"Path {path} is not absolute")
        if not path.exists():
            raise ConfigError(f"Path {path} does not exist")
    return paths


def _allowed_path(path: str, allowed: list[Path] | None) -> Path | None:
    if not path:
        return None
    if allowed is None:
        return Path(path)
    wanted = Path(os.path.normpath(path))
    if any(wanted.is_relative_to(parent) for parent in allowed):
        return wanted
    log.warning("The path %s is not allowed to be accessed", path)
    return None


def _content(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError:
        text = f"Could not read file {file} for property {file.name}"
        log.error(text)
        raise ConfigError(text) from None
