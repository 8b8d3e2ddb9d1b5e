"""`/schemas`: lists of all, and schemas by id and by guid."""

from http import HTTPStatus

from barnabas.registry import subjects
from barnabas.registry.core.decision import View
from barnabas.registry.core.listing import list_schemas, subjects_of_id, versions_of_id
from barnabas.registry.core.lookup import get_by_guid, get_by_id, ids_of_guid, schema_json
from barnabas.registry.http.answers import Answer, json_answer, plain_fault
from barnabas.registry.http.call import Call, LargeRead, reading, text_answer
from barnabas.registry.http.schema_json import by_id_json, version_json

_LIFECYCLES = ("NONE", "STRONG", "WEAK")


def list_all(call: Call) -> Answer:
    """GET /schemas."""
    query = call.query
    if not _has_associations(call):
        return json_answer([])
    schemas = list_schemas(
        call.view,
        prefix=call.prefix(""),
        aliases=query.flag("aliases"),
        which="all" if query.flag("deleted") else "live",
        latest_only=query.flag("latestOnly"),
        rule_type=query.text("ruleType") or None,
        offset=query.number("offset", 0),
        limit=query.number("limit", -1),
    )
    listed = []
    for one in schemas:
        body = schema_json(one.schema)
        if one.aliases:
            body["aliases"] = list(one.aliases)
        listed.append(body)
    return json_answer(listed)


def _has_associations(call: Call) -> bool:
    """Return whether any schema can have the associations asked for: none has one here."""
    lifecycles = call.query.texts("lifecycle")
    for lifecycle in lifecycles:
        if lifecycle not in _LIFECYCLES:
            raise plain_fault(
                HTTPStatus.NOT_FOUND, f"lifecycle is none of {', '.join(_LIFECYCLES)}"
            )
    asked = lifecycles or call.query.texts("associationType") or call.query.texts("resourceType")
    return not asked or "NONE" in lifecycles


def get(call: Call) -> Answer | LargeRead:
    """GET /schemas/ids/{id}."""
    query = call.query
    value = get_by_id(call.view, call.schema_id(), call.subject_of_id())
    if call.wants_plain():
        return Answer(call.encoded.by_id(value))

    def read(view: View) -> Answer:
        body = version_json(
            view,
            value,
            form=query.text("format"),
            qualifies=query.text("referenceFormat") == "qualified",
            tags=query.texts("findTags"),
        )
        if query.flag("fetchMaxId"):
            max_id = view.state.max_id(subjects.context_of(value.subject))
            return json_answer(by_id_json(body, maxId=max_id))
        return json_answer(by_id_json(body))

    return reading(call, value, read, parses=call.wants_parsed())


def get_text(call: Call) -> Answer | LargeRead:
    """GET /schemas/ids/{id}/schema."""
    value = get_by_id(call.view, call.schema_id(), call.subject_of_id())
    return text_answer(call, value)


def get_subjects(call: Call) -> Answer:
    """GET /schemas/ids/{id}/subjects."""
    return json_answer(
        subjects_of_id(
            call.view,
            call.schema_id(),
            call.subject_of_id(),
            deleted=call.query.flag("deleted"),
            offset=call.query.number("offset", 0),
            limit=call.query.number("limit", -1),
        )
    )


def get_versions(call: Call) -> Answer:
    """GET /schemas/ids/{id}/versions."""
    versions = versions_of_id(
        call.view,
        call.schema_id(),
        call.subject_of_id(),
        deleted=call.query.flag("deleted"),
        offset=call.query.number("offset", 0),
        limit=call.query.number("limit", -1),
    )
    return json_answer([{"subject": subject, "version": version} for subject, version in versions])


def get_of_guid(call: Call) -> Answer | LargeRead:
    """GET /schemas/guids/{guid}: content, which belongs to no subject."""
    value = get_by_guid(call.view, call.text(0))

    def read(view: View) -> Answer:
        body = version_json(view, value, form=call.query.text("format"))
        del body["subject"], body["version"]
        return json_answer(by_id_json(body))

    return reading(call, value, read, parses=call.wants_parsed())


def get_ids_of_guid(call: Call) -> Answer:
    """GET /schemas/guids/{guid}/ids."""
    ids = ids_of_guid(call.view, call.text(0))
    return json_answer([{"context": place.context, "id": place.id} for place in ids])


def get_types(call: Call) -> Answer:
    """GET /schemas/types."""
    return json_answer(list(call.view.formats.types()))
