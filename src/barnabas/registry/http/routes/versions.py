"""`/subjects/{subject}/versions` and what is below; `/compatibility` of schemas with them."""

from typing import Any

from barnabas.registry import errors, subjects
from barnabas.registry.core.compatibility import Verdict, check_all, check_version
from barnabas.registry.core.decision import View
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
    return Write(
        lambda view: register(view, subject, request, normalize=normalize, force=force),
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
    return Write(
        lambda view: delete_version(view, subject, version, permanent=permanent),
        lambda _, number: json_answer(number),
    )


def change_tags(call: Call) -> Write[SchemaValue]:
    """POST /subjects/{subject}/versions/{version}/tags."""
    subject, version = call.subject(), call.text(1)
    if not subjects.is_valid(subject):
        raise errors.invalid_subject(subject)
    request = tag_request(call.body)
    return Write(
        lambda view: modify_tags(view, subject, version, request),
        lambda view, value: json_answer(registered_json(view, value)),
    )


def check_one(call: Call) -> Answer:
    """POST /compatibility/subjects/{subject}/versions/{version}."""
    verdict = check_version(
        call.view,
        call.subject(),
        call.text(1),
        schema_request(call.body),
        normalize=call.query.flag("normalize"),
        verbose=call.query.flag("verbose"),
    )
    return _answer(call, verdict)


def check(call: Call) -> Answer:
    """POST /compatibility/subjects/{subject}/versions."""
    verdict = check_all(
        call.view,
        call.subject(),
        schema_request(call.body),
        normalize=call.query.flag("normalize"),
        verbose=call.query.flag("verbose"),
    )
    return _answer(call, verdict)


def _answer(call: Call, verdict: Verdict) -> Answer:
    body: dict[str, Any] = {"is_compatible": verdict.is_compatible}
    if call.query.flag("verbose"):
        body["messages"] = list(verdict.messages)
    return json_answer(body)
