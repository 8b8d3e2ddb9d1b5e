"""The schema registry, asked as any tool would: which schemas there are, and how they evolved."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import DashboardState, RegistryStatus, SchemaStatus
from barnabas.demo.schemas import AVRO_TOPICS, EVOLVED_FROM, subject_of
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient

_EVERY_SECONDS = 1.0


class SchemaMonitor(ReaderThread):
    """Looks once a second at the versions of the demo's subjects."""

    def __init__(self, bootstrap: str, registry: RegistryClient, state: DashboardState) -> None:
        super().__init__("schema-monitor", bootstrap, state)
        self._registry = registry

    def read(self) -> None:
        """Look until `stopping` is set."""
        while not self.stopping.is_set():
            try:
                versions = {
                    topic: self._registry.versions(subject_of(topic)) for topic in AVRO_TOPICS
                }
            except RegistryError:
                self.state.set_registry_down()
                raise
            self.state.set_registry(registry_status(self._registry.url, versions))
            self.stopping.wait(_EVERY_SECONDS)


def registry_status(url: str, versions: dict[str, list[dict[str, Any]]]) -> RegistryStatus:
    """Return the newest version of each topic's schema, and what it has more than the first."""
    return RegistryStatus(
        url,
        up=True,
        schemas=[
            SchemaStatus(
                topic,
                of_topic[-1]["version"],
                of_topic[-1]["id"],
                evolved_from=_property(of_topic[-1], EVOLVED_FROM),
                new_fields=_new_fields(version["schema"] for version in of_topic),
            )
            for topic, of_topic in versions.items()
            if of_topic
        ],
    )


def _new_fields(schemas: Iterable[str]) -> list[str]:
    names = [[field["name"] for field in json.loads(text)["fields"]] for text in schemas]
    return [name for name in names[-1] if name not in names[0]]


def _property(version: dict[str, Any], name: str) -> str:
    properties = (version.get("metadata") or {}).get("properties") or {}
    return str(properties.get(name, ""))
