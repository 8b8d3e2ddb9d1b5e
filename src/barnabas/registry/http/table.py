"""The table of routes, and how a path finds its own.

Routes are a tree over the raw segments of the path: a word is looked up in a dict, everything
else stands for a parameter. No regular expressions, and nothing is decoded that is not used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.registry.http.answers import Answer
from barnabas.registry.http.call import Call, LargeRead, Write
from barnabas.registry.http.routes import (
    associations,
    compatibility,
    schemas,
    server,
    settings,
    subjects,
    versions,
)

Handler = Callable[[Call], Answer | LargeRead | Write[Any]]

TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", server.root),
    ("POST", "/", server.root),
    ("POST", "/associations", associations.create),
    ("GET", "/associations/resources/{id}", associations.of_resource),
    ("PUT", "/associations/resources/{id}", associations.change),
    ("DELETE", "/associations/resources/{id}", associations.remove),
    ("GET", "/associations/resources/{namespace}/{name}", associations.of_name),
    ("GET", "/associations/subjects/{subject}", associations.of_subject),
    ("POST", "/compatibility/subjects/{subject}/versions", compatibility.check),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}", compatibility.check_one),
    ("GET", "/config", settings.config),
    ("PUT", "/config", settings.change_config),
    ("DELETE", "/config", settings.remove_config),
    ("GET", "/config/{subject}", settings.config),
    ("PUT", "/config/{subject}", settings.change_config),
    ("DELETE", "/config/{subject}", settings.remove_config),
    ("GET", "/contexts", server.contexts),
    ("DELETE", "/contexts/{context}", server.remove_context),
    ("GET", "/exporters", server.exporters),
    ("GET", "/exporters/{name}", server.exporter),
    ("GET", "/exporters/{name}/config", server.exporter),
    ("GET", "/exporters/{name}/status", server.exporter),
    ("GET", "/mode", settings.mode),
    ("PUT", "/mode", settings.change_mode),
    ("DELETE", "/mode", settings.remove_mode),
    ("GET", "/mode/{subject}", settings.mode),
    ("PUT", "/mode/{subject}", settings.change_mode),
    ("DELETE", "/mode/{subject}", settings.remove_mode),
    ("GET", "/schemas", schemas.list_all),
    ("GET", "/schemas/ids/{id}", schemas.get),
    ("GET", "/schemas/ids/{id}/schema", schemas.get_text),
    ("GET", "/schemas/ids/{id}/subjects", schemas.get_subjects),
    ("GET", "/schemas/ids/{id}/versions", schemas.get_versions),
    ("GET", "/schemas/guids/{guid}", schemas.get_of_guid),
    ("GET", "/schemas/guids/{guid}/ids", schemas.get_ids_of_guid),
    ("GET", "/schemas/types", schemas.get_types),
    ("GET", "/subjects", subjects.list_all),
    ("POST", "/subjects/{subject}", subjects.find),
    ("DELETE", "/subjects/{subject}", subjects.delete),
    ("GET", "/subjects/{subject}/metadata", subjects.latest_with),
    ("GET", "/subjects/{subject}/versions", versions.list_all),
    ("POST", "/subjects/{subject}/versions", versions.add),
    ("GET", "/subjects/{subject}/versions/{version}", versions.get),
    ("DELETE", "/subjects/{subject}/versions/{version}", versions.delete),
    ("GET", "/subjects/{subject}/versions/{version}/schema", versions.get_text),
    ("GET", "/subjects/{subject}/versions/{version}/referencedby", versions.get_referrers),
    ("POST", "/subjects/{subject}/versions/{version}/tags", versions.change_tags),
    ("GET", "/v1/metadata/id", server.cluster_id),
    ("GET", "/v1/metadata/version", server.version),
    ("GET", "/v1/metadata/deployment", server.deployment),
)

READS_OF_TEXTS: dict[Handler, Callable[[Call], Answer]] = {
    read: read for read in (compatibility.check, compatibility.check_one, subjects.find)
}
"""Reads that bring a schema, which may be large."""


@dataclass(slots=True)
class Node:
    """A place in the tree: the handlers of a path, by method, and the places below it."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    words: dict[bytes, "Node"] = field(default_factory=dict)
    parameter: "Node | None" = None

    @property
    def allowed(self) -> bytes:
        """What the Allow header says."""
        methods = {*self.handlers, "OPTIONS"}
        if "GET" in methods:
            methods.add("HEAD")
        return ", ".join(sorted(methods)).encode()


def _tree() -> Node:
    root = Node()
    for method, path, handler in TABLE:
        node = root
        for segment in path.split("/"):
            if segment.startswith("{"):
                node.parameter = node.parameter or Node()
                node = node.parameter
            elif segment:
                node = node.words.setdefault(segment.encode(), Node())
        node.handlers[method] = handler
    return root


_ROOT = _tree()


def find(parts: Sequence[bytes]) -> tuple[Node | None, list[bytes]]:
    """The place of a path, None if it has none or no handler, and the path's parameters."""
    node = _ROOT
    parameters: list[bytes] = []
    for part in parts:
        below = node.words.get(part)
        if below is None:
            below = node.parameter
            if below is None:
                return None, parameters
            parameters.append(part)
        node = below
    return (node if node.handlers else None), parameters
