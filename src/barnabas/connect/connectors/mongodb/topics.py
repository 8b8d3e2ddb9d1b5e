"""The topics that changes of collections are written to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError


def topic_map(text: str) -> dict[str, str]:
    """Return what `topic.namespace.map` says. Raises ConfigError."""
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise ConfigError(f"it is no JSON: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ConfigError("it must be an object of texts in JSON")
    for name in found:
        if name.startswith("/"):
            try:
                compile_java(name[1:])
            except PatternError as error:
                raise ConfigError(f"{name}: {error}") from error
    return found


class TopicNames:
    """Names topics. Source: MongoDB's DefaultTopicMapper."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._separator = str(values["topic.separator"])
        self._prefix = str(values["topic.prefix"] or "")
        self._suffix = str(values["topic.suffix"] or "")
        self._map = topic_map(str(values["topic.namespace.map"] or ""))
        self._found: dict[tuple[str, str], str] = {}

    def topic(self, database: str, collection: str) -> str:
        """The topic of a namespace; the collection may be empty."""
        found = self._found.get((database, collection))
        if found is None:
            parts = (self._prefix, self._mapped(database, collection), self._suffix)
            found = self._separator.join(part for part in parts if part)
            self._found[database, collection] = found
        return found

    def _mapped(self, database: str, collection: str) -> str:
        namespace = f"{database}.{collection}" if collection else database
        if namespace in self._map:
            return self._map[namespace]
        sep = self._separator
        behind = f"{sep}{collection}" if collection else ""
        if database in self._map:
            return self._map[database] + behind
        for pattern, name in self._map.items():
            if pattern.startswith("/") and compile_java(pattern[1:]).matches(namespace):
                filled = name.replace("{db}", database).replace("{coll}", collection)
                return filled.replace("{sep}", sep).replace("{sep_coll}", behind)
        return self._map.get("*", database + behind)
