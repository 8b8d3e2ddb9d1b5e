"""`/associations`: which subjects the keys and values of topics belong to."""

from http import HTTPStatus
from typing import Any
from uuid import uuid4

from barnabas.registry import subjects
from barnabas.registry.core import associations
from barnabas.registry.core.associations import (
    TOPIC,
    AssociationRequest,
    Found,
    NewAssociation,
    Wanted,
)
from barnabas.registry.core.decision import View
from barnabas.registry.errors import INVALID_ASSOCIATION, RegistryError
from barnabas.registry.http.answers import Answer, json_answer, plain_fault
from barnabas.registry.http.bodies import flag, objects, text
from barnabas.registry.http.call import Call, Write
from barnabas.registry.store.records import AssociationValue

LIFECYCLES = ("STRONG", "WEAK")


def of_subject(call: Call) -> Answer:
    """GET /associations/subjects/{subject}."""
    return _listed(call, associations.of_subject(call.view, call.place(), _wanted(call)))


def of_name(call: Call) -> Answer:
    """GET /associations/resources/{namespace}/{name}."""
    namespace, name = call.text(0), call.text(1)
    return _listed(call, associations.of_name(call.view, namespace, name, _wanted(call)))


def of_resource(call: Call) -> Answer:
    """GET /associations/resources/{id}."""
    return _listed(call, associations.of_resource(call.view, call.text(0), _wanted(call)))


def create(call: Call) -> Write[Found]:
    """POST /associations."""
    return _associate(call, text(call.body, "resourceId") or "", is_create=True)


def change(call: Call) -> Write[Found]:
    """PUT /associations/resources/{id}."""
    return _associate(call, call.text(0), is_create=False)


def remove(call: Call) -> Write[None]:
    """DELETE /associations/resources/{id}."""
    resource_id, wanted = call.text(0), _wanted(call)
    cascades, dry_run = call.query.flag("cascadeLifecycle"), call.query.flag("dryRun")
    return Write(
        lambda view: associations.remove_associations(
            view, resource_id, wanted, cascades=cascades, dry_run=dry_run
        ),
        lambda _, __: Answer(b"", 204),
    )


def _associate(call: Call, resource_id: str, *, is_create: bool) -> Write[Found]:
    request, dry_run = _request(call, resource_id), call.query.flag("dryRun")

    def answer(_: View, made: Found) -> Answer:
        body = {
            "resourceName": request.name,
            "resourceNamespace": request.namespace,
            "resourceId": request.resource_id,
            "resourceType": TOPIC,
            "associations": [
                {
                    "subject": value.key.subject,
                    "associationType": value.key.association_type,
                    "lifecycle": value.lifecycle,
                    "frozen": value.frozen,
                }
                for value in made
            ],
        }
        return json_answer({name: said for name, said in body.items() if said not in ("", [])})

    return Write(
        lambda view: associations.associate(view, request, is_create=is_create, dry_run=dry_run),
        answer,
    )


def _request(call: Call, resource_id: str) -> AssociationRequest:
    body = call.body
    if (text(body, "resourceType") or TOPIC) != TOPIC:
        raise RegistryError(INVALID_ASSOCIATION, f"resourceType: must be {TOPIC}")
    context = call.context or call.query.text("context")
    schemas = []
    for place, item in objects(body, "associations"):
        subject = text(item, "subject", place)
        lifecycle = text(item, "lifecycle", place)
        if lifecycle not in (None, *LIFECYCLES):
            raise plain_fault(HTTPStatus.BAD_REQUEST, f"{place}lifecycle is not STRONG or WEAK")
        schemas.append(
            NewAssociation(
                text(item, "associationType", place) or "value",
                _qualified(context, subject),
                lifecycle,
                None if item.get("frozen") is None else flag(item, "frozen"),
                item.get("schema") is not None,
                str(uuid4()),
            )
        )
    name, namespace = text(body, "resourceName") or "", text(body, "resourceNamespace") or ""
    return AssociationRequest(name, namespace, resource_id, schemas)


def _qualified(context: str, subject: str | None) -> str | None:
    if subject is None or not context:
        return None if subject is None else subjects.normal(subject)
    try:
        return subjects.in_context(subjects.context_named(context), subject)
    except ValueError as fault:
        raise plain_fault(HTTPStatus.BAD_REQUEST, str(fault)) from fault


def _wanted(call: Call) -> Wanted:
    lifecycle = call.query.text("lifecycle")
    if lifecycle not in ("", *LIFECYCLES):
        raise plain_fault(HTTPStatus.NOT_FOUND, "lifecycle is not STRONG or WEAK")
    return Wanted(
        call.query.text("resourceType") or TOPIC,
        call.query.texts("associationType"),
        lifecycle or None,
    )


def _listed(call: Call, matching: Found) -> Answer:
    offset, limit = call.query.number("offset", 0), call.query.number("limit", -1)
    page = call.view.defaults.schemas.page(matching, offset, limit)
    return json_answer([_json(value) for value in page])


def _json(value: AssociationValue) -> dict[str, Any]:
    key = value.key
    body = {
        "subject": key.subject,
        "guid": value.guid,
        "resourceName": key.name,
        "resourceNamespace": key.namespace,
        "resourceId": value.resource_id,
        "resourceType": key.resource_type,
        "associationType": key.association_type,
        "lifecycle": value.lifecycle,
        "frozen": value.frozen,
        "createTs": value.created_ms,
        "updateTs": value.timestamp_ms,
    }
    return {name: said for name, said in body.items() if said not in (None, "")}
