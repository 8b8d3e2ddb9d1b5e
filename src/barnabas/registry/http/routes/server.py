"""`/`, `/contexts`, `/exporters` and `/v1/metadata`."""

from typing import Any

from barnabas.registry.core.deletion import delete_context
from barnabas.registry.core.listing import list_contexts
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.answers import Answer, json_answer
from barnabas.registry.http.call import Call, Write

EXPORTER_NOT_FOUND = 40450


def root(call: Call) -> Answer:
    """GET and POST /: the registry is there."""
    return json_answer({})


def contexts(call: Call) -> Answer:
    """GET /contexts."""
    return json_answer(
        list_contexts(
            call.view,
            prefix=call.query.text("contextPrefix"),
            offset=call.query.number("offset", 0),
            limit=call.query.number("limit", -1),
        )
    )


def remove_context(call: Call) -> Write[None]:
    """DELETE /contexts/{context}."""
    name = call.text(0)
    return Write(lambda view: delete_context(view, name), lambda _, __: Answer(b"", 204))


def exporters(call: Call) -> Answer:
    """GET /exporters: nothing is exported to other registries."""
    return json_answer([])


def exporter(call: Call) -> Answer:
    """GET /exporters/{name} and what is below."""
    raise RegistryError(EXPORTER_NOT_FOUND, f"exporter {call.text(0)!r} does not exist")


def cluster_id(call: Call) -> Answer:
    """GET /v1/metadata/id."""
    clusters = {
        "kafka-cluster": call.service.cluster_id,
        "schema-registry-cluster": call.config.group_id,
    }
    return json_answer({"scope": {"path": [], "clusters": clusters}})


def version(call: Call) -> Answer:
    """GET /v1/metadata/version."""
    body = {"version": call.config.version, "commitId": call.config.commit_id}
    return json_answer({name: text for name, text in body.items() if text})


def deployment(call: Call) -> Answer:
    """GET /v1/metadata/deployment."""
    attributes = call.config.deployment
    body: dict[str, Any] = {} if attributes is None else {"attributes": list(attributes)}
    return json_answer(body)
