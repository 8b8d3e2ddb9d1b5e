"""`/config` and `/mode`: of the default context, of another context, of a subject."""

from barnabas.registry import errors
from barnabas.registry.core.modes import delete_mode, get_mode, set_mode
from barnabas.registry.core.settings import (
    ConfigUpdate,
    config_json,
    delete_config,
    get_config,
    update_config,
)
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.answers import Answer, json_answer
from barnabas.registry.http.bodies import text
from barnabas.registry.http.call import Call, Write
from barnabas.registry.store.records import ConfigValue


def _place(call: Call) -> str | None:
    """The subject or context that is named; None is the default context."""
    return call.place() if call.parameters else None


def config(call: Call) -> Answer:
    """GET /config and /config/{subject}."""
    default_to_global = call.query.flag("defaultToGlobal")
    value = get_config(call.view, _place(call), default_to_global=default_to_global)
    return json_answer(config_json(value))


def change_config(call: Call) -> Write[ConfigValue]:
    """PUT /config and /config/{subject}."""
    place, update = _place(call), ConfigUpdate.from_json(call.body)
    return Write(
        lambda view: update_config(view, place, update),
        lambda _, new: json_answer(config_json(new, as_update=True)),
    )


def remove_config(call: Call) -> Write[ConfigValue]:
    """DELETE /config and /config/{subject}."""
    place = _place(call)
    return Write(
        lambda view: delete_config(view, place), lambda _, old: json_answer(config_json(old))
    )


def mode(call: Call) -> Answer:
    """GET /mode and /mode/{subject}."""
    default_to_global = call.query.flag("defaultToGlobal")
    value = get_mode(call.view, _place(call), default_to_global=default_to_global)
    return json_answer({"mode": value})


def change_mode(call: Call) -> Write[str | None]:
    """PUT /mode and /mode/{subject}; null takes the mode away."""
    place, force = _place(call), call.query.flag("force")
    if "mode" not in call.body:
        raise RegistryError(errors.INVALID_MODE, "the body does not name a mode")
    wanted = text(call.body, "mode")
    return Write(
        lambda view: set_mode(view, place, wanted, force=force),
        lambda _, new: json_answer({"mode": new}),
    )


def remove_mode(call: Call) -> Write[str | None]:
    """DELETE /mode and /mode/{subject}."""
    place, recursive = _place(call), call.query.flag("recursive")
    return Write(
        lambda view: delete_mode(view, place, recursive=recursive),
        lambda _, old: json_answer({"mode": old} if old else {}),
    )
