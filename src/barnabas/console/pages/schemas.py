"""Endpoints for schemas: subjects, versions, comparisons and changes as JSON."""

from __future__ import annotations

from typing import Any

from barnabas.console.pages.calls import BadRequestError, Call, Endpoint, members, of_cluster, whole
from barnabas.console.services.schemas import LEVELS, MODES, TYPES


def subjects(call: Call) -> Any:
    """A page of subjects."""
    return call.services.schemas.find(
        call.asked(),
        deleted=call.flag("deleted"),
        allowed=lambda name: call.user.may("view", subject=name),
    )


def registry(call: Call) -> Any:
    """The registry's own level and mode."""
    schemas = call.services.schemas
    return {
        "url": schemas.url,
        "level": schemas.level().value,
        "mode": schemas.mode().value,
        "levels": LEVELS,
        "modes": MODES,
        "types": TYPES,
        "may": {
            "edit": call.user.may("edit", everywhere=True),
            "admin": call.user.may("admin", everywhere=True),
            "register": call.user.may("edit"),
        },
    }


def subject(call: Call) -> Any:
    """A subject, and what the user may do with it."""
    name = call.path["subject"]
    may = {right: call.user.may(right, subject=name) for right in ("edit", "admin")}
    facts = {"levels": LEVELS, "modes": MODES, "types": TYPES}
    return {**members(call.services.schemas.one(name)), **facts, "may": may}


def version(call: Call) -> Any:
    """A version."""
    return call.services.schemas.version(call.path["subject"], _version(call))


def difference(call: Call) -> Any:
    """Two versions, line by line."""
    before, after = call.number("before", 0), call.number("after", 0)
    return call.services.schemas.difference(call.path["subject"], before, after)


def check(call: Call) -> Any:
    """Check whether a schema may become the next version."""
    kind, text, references = _schema(call)
    return call.services.schemas.check(call.path["subject"], kind, text, references)


def register(call: Call) -> Any:
    """Register a version."""
    name = call.path["subject"]
    kind, text, references = _schema(call)
    schema_id = call.do(
        "register schema",
        name,
        lambda: call.services.schemas.register(name, kind, text, references),
        type=kind,
    )
    return {"id": schema_id}


def change_level(call: Call) -> Any:
    """Set the compatibility level of a subject, or the registry's."""
    name, level = call.path.get("subject"), _text_or_null(call, "level")
    call.do(
        "change compatibility",
        name or "all subjects",
        lambda: call.services.schemas.change_level(name, level),
        level=level,
    )
    return {}


def change_mode(call: Call) -> Any:
    """Set the mode of a subject, or the registry's."""
    name, mode = call.path.get("subject"), _text_or_null(call, "mode")
    force = call.body.get("force") is True
    call.do(
        "change mode",
        name or "all subjects",
        lambda: call.services.schemas.change_mode(name, mode, force=force),
        mode=mode,
    )
    return {}


def delete_subject(call: Call) -> Any:
    """Delete a subject; the body repeats its name."""
    name = call.path["subject"]
    call.confirm(name)
    permanent = call.body.get("permanent") is True
    call.do(
        "delete subject for good" if permanent else "delete subject",
        name,
        lambda: call.services.schemas.delete(name, permanent=permanent),
    )
    return {}


def delete_version(call: Call) -> Any:
    """Delete a version; the body repeats the subject's name."""
    name, number = call.path["subject"], _version(call)
    call.confirm(name)
    permanent = call.body.get("permanent") is True
    call.do(
        "delete version for good" if permanent else "delete version",
        f"{name} {number}",
        lambda: call.services.schemas.delete(name, number, permanent=permanent),
    )
    return {}


def _version(call: Call) -> int:
    return whole(call.path["version"], "a version")


def _schema(call: Call) -> tuple[str, str, list[Any]]:
    references = call.body.get("references", [])
    if not isinstance(references, list) or not all(
        isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and isinstance(one.get("subject"), str)
        and isinstance(one.get("version"), int)
        for one in references
    ):
        raise BadRequestError("references are a list of objects with name, subject and version")
    for one in references:
        call.user.need("view", "referring to this subject", subject=one["subject"])
    return call.given("type"), call.given("schema"), references


def _text_or_null(call: Call, name: str) -> str | None:
    found = call.body.get(name)
    if found is not None and not isinstance(found, str):
        raise BadRequestError(f"{name} is not a text")
    return found


_LIST, _ONE = "/api/schemas/subjects", "/api/schemas/subjects/{subject}"
_WHAT = "this subject"
ENDPOINTS = (
    Endpoint("GET", "/api/schemas", "view", "the registry", registry),
    of_cluster("POST", "/api/schemas/level", "edit", "the level", change_level),
    of_cluster("POST", "/api/schemas/mode", "admin", "the mode", change_mode),
    Endpoint("GET", _LIST, "view", "the list of subjects", subjects),
    Endpoint("GET", _ONE, "view", _WHAT, subject),
    Endpoint("DELETE", _ONE, "admin", "deleting this subject", delete_subject),
    Endpoint("POST", f"{_ONE}/level", "edit", "changing the level", change_level),
    Endpoint("POST", f"{_ONE}/mode", "admin", "changing the mode", change_mode),
    Endpoint("GET", f"{_ONE}/difference", "view", _WHAT, difference),
    Endpoint("POST", f"{_ONE}/check", "view", _WHAT, check),
    Endpoint("POST", f"{_ONE}/versions", "edit", "registering schemas", register),
    Endpoint("GET", f"{_ONE}/versions/{{version}}", "view", _WHAT, version),
    Endpoint("DELETE", f"{_ONE}/versions/{{version}}", "admin", "deleting it", delete_version),
)
