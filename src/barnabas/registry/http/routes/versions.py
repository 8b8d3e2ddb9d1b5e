"""`/subjects/{subject}/versions` and what is below."""

from barnabas.registry import errors, subjects
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.deletion import delete_version
from barnabas.registry.core.listing import list_versions, referenced_by
from barnabas.registry.core.lookup import get_version
from barnabas.registry.core.registration import modify_tags, register
from barnabas.registry.http.answers import Answer, json_answer
from barnabas.registry.http.bodies import schema_request, tag_request
from barnabas.registry.http.call import Call, LargeRead, Write, reading, text_answer
from barnabas.registry.http.routes.subjects import which
from barnabas.registry.http.schema_json import registered_json, version_json
from barnabas.registry.store.records import SchemaValue


def list_all(call: Call) -> Answer:
    """GET /subjects/{subject}/versions."""
    return json_answer(
        list_versions(
            call.view,
            call.subject(),
            which=which(call),
            deleted_as_negative=call.query.flag("deletedAsNegative"),
            offset=call.query.number("offset", 0),
            limit=call.query.number("limit", -1),
        )
    )


def add(call: Call) -> Write[SchemaValue]:
    """POST /subjects/{subject}/versions."""
    subject, request = call.subject(), schema_request(call.body)
    normalize, force = call.query.flag("normalize"), call.query.flag("force")
    form = call.query.text("format")

    def decide(view: View) -> Decision[SchemaValue]:
        return register(view, subject, request, normalize=normalize, force=force)

    return Write(
        decide,
        lambda view, value: json_answer(registered_json(view, value, form)),
        has_form=bool(form.strip()),
        may_be_read=True,
    )


def get(call: Call) -> Answer | LargeRead:
    """GET /subjects/{subject}/versions/{version}."""
    query = call.query
    value = get_version(call.view, call.subject(), call.text(1), deleted=query.flag("deleted"))
    if call.wants_plain():
        return Answer(call.encoded.version(value))

    def read(view: View) -> Answer:
        return json_answer(
            version_json(
                view,
                value,
                form=query.text("format"),
                qualifies=query.text("referenceFormat") == "qualified",
                tags=query.texts("findTags"),
            )
        )

    return reading(call, value, read, parses=call.wants_parsed())


def get_text(call: Call) -> Answer | LargeRead:
    """GET /subjects/{subject}/versions/{version}/schema."""
    value = get_version(call.view, call.subject(), call.text(1), deleted=call.query.flag("deleted"))
    return text_answer(call, value)


def get_referrers(call: Call) -> Answer:
    """GET /subjects/{subject}/versions/{version}/referencedby."""
    referrers = referenced_by(
        call.view,
        call.subject(),
        call.text(1),
        deleted=call.query.flag("deleted"),
        offset=call.query.number("offset", 0),
        limit=call.query.number("limit", -1),
    )
    return json_answer([place.id for place in referrers])


def delete(call: Call) -> Write[int]:
    """DELETE /subjects/{subject}/versions/{version}."""
    subject, version = call.subject(), call.text(1)
    permanent = call.query.flag("permanent")

    def decide(view: View) -> Decision[int]:
        return delete_version(view, subject, version, permanent=permanent)

    return Write(decide, lambda _, number: json_answer(number))


def change_tags(call: Call) -> Write[SchemaValue]:
    """POST /subjects/{subject}/versions/{version}/tags."""
    subject, version = call.subject(), call.text(1)
    if not subjects.is_valid(subject):
        raise errors.invalid_subject(subject)
    request = tag_request(call.body)

    def decide(view: View) -> Decision[SchemaValue]:
        return modify_tags(view, subject, version, request)

    return Write(decide, lambda view, value: json_answer(registered_json(view, value)))
