"""The table of routes."""

from collections.abc import Callable
from typing import Any

from barnabas.registry.http.answers import Answer
from barnabas.registry.http.call import Call, LargeRead, Write
from barnabas.registry.http.routes import (
    associations,
    schemas,
    server,
    settings,
    subjects,
    versions,
)
from barnabas.web.routing import Routes

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
    ("POST", "/compatibility/subjects/{subject}/versions", versions.check),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}", versions.check_one),
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
    read: read for read in (versions.check, versions.check_one, subjects.find)
}
"""Reads that bring a schema, which may be large."""


ROUTES: Routes[Handler] = Routes(TABLE)
