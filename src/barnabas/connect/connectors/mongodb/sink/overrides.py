"""Settings for single topics: `topic.override.<topic>.<setting>`."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.connectors.mongodb.settings import OVERRIDE, SINK


def overridden(settings: Mapping[str, str]) -> list[str]:
    """The topics that have settings of their own."""
    found = {}
    for name in settings:
        if name.startswith(OVERRIDE):
            rest = name.removeprefix(OVERRIDE)
            for setting in SINK.settings:
                if rest.endswith(f".{setting}"):
                    found[rest.removesuffix(f".{setting}")] = True
                    break
    return list(found)


def for_topic(settings: Mapping[str, str], topic: str) -> dict[str, str]:
    """The settings that hold for a topic."""
    prefix = f"{OVERRIDE}{topic}."
    own = {name[len(prefix) :]: text for name, text in settings.items() if name.startswith(prefix)}
    return {**settings, **own}
