"""`/subjects` and `/subjects/{subject}`."""

from barnabas.registry import subjects
from barnabas.registry.core.decision import View
from barnabas.registry.core.deletion import delete_subject
from barnabas.registry.core.listing import list_subjects
from barnabas.registry.core.lookup import latest_with_metadata, look_up
from barnabas.registry.http.answers import Answer, json_answer
from barnabas.registry.http.bodies import schema_request
from barnabas.registry.http.call import Call, LargeRead, Write, reading
from barnabas.registry.http.schema_json import version_json
from barnabas.registry.store.records import Which


def which(call: Call) -> Which:
    """The versions that a list contains: `deletedOnly` takes precedence over `deleted`."""
    if call.query.flag("deletedOnly"):
        return "deleted"
    return "all" if call.query.flag("deleted") else "live"


def list_all(call: Call) -> Answer:
    """GET /subjects."""
    return json_answer(
        list_subjects(
            call.view,
            prefix=call.prefix(subjects.EVERY_CONTEXT),
            which=which(call),
            offset=call.query.number("offset", 0),
            limit=call.query.number("limit", -1),
        )
    )


def find(call: Call) -> Answer:
    """POST /subjects/{subject}: the version that has a schema."""
    version = look_up(
        call.view,
        call.subject(),
        schema_request(call.body),
        normalize=call.query.flag("normalize"),
        deleted=call.query.flag("deleted"),
    )
    return json_answer(version_json(call.view, version, form=call.query.text("format")))


def latest_with(call: Call) -> Answer | LargeRead:
    """GET /subjects/{subject}/metadata: the latest version that has some properties."""
    pairs = zip(call.query.texts("key"), call.query.texts("value"), strict=False)
    version = latest_with_metadata(
        call.view, call.subject(), dict(pairs), deleted=call.query.flag("deleted")
    )

    def read(view: View) -> Answer:
        return json_answer(version_json(view, version, form=call.query.text("format")))

    return reading(call, version, read, parses=call.wants_parsed())


def delete(call: Call) -> Write[list[int]]:
    """DELETE /subjects/{subject}."""
    subject, permanent = call.subject(), call.query.flag("permanent")
    return Write(
        lambda view: delete_subject(view, subject, permanent=permanent),
        lambda _, versions: json_answer(versions),
    )
