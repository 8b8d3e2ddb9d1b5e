"""The JSON of validated settings (ConfigInfos) and of definitions (ConfigKeyInfo)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.connect.config.definition import ConfigValue, Definition, Setting
from barnabas.connect.config.values import show_value


def setting_json(setting: Setting, prefix: str = "") -> dict[str, Any]:
    """Return a setting as `GET /connector-plugins/{plugin}/config` lists it."""
    return {
        "name": prefix + setting.name,
        "type": str(setting.type),
        "required": setting.is_required,
        "default_value": None if setting.is_required else show_value(setting.default),
        "importance": str(setting.importance),
        "documentation": setting.doc,
        "group": setting.group,
        "order_in_group": setting.order,
        "width": str(setting.width),
        "display_name": setting.display_name or setting.name,
        "dependents": list(setting.dependents),
    }


def value_json(value: ConfigValue, prefix: str = "") -> dict[str, Any]:
    """Return a value as the answer of `validate` has it."""
    return {
        "name": prefix + value.name,
        "value": show_value(value.value),
        "recommended_values": [show_value(one) for one in value.recommended],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def validation_json(
    class_name: str,
    definition: Definition,
    values: Mapping[str, ConfigValue],
    groups: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the answer of `validate`: errors are counted one by one."""
    unknown = [value for name, value in values.items() if name not in definition.settings]
    configs: list[dict[str, Any]] = [
        {"definition": None, "value": value_json(value)} for value in unknown
    ]
    configs += [
        {
            "definition": setting_json(setting),
            "value": value_json(values[name]) if name in values else None,
        }
        for name, setting in definition.settings.items()
    ]
    return {
        "name": class_name,
        "error_count": sum(len(value.errors) for value in values.values()),
        "groups": list(definition.groups if groups is None else groups),
        "configs": configs,
    }


def merged(class_name: str, answers: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return answers about one configuration as one."""
    given = [answer for answer in answers if answer is not None]
    groups = dict.fromkeys(group for answer in given for group in answer["groups"])
    return {
        "name": class_name,
        "error_count": sum(answer["error_count"] for answer in given),
        "groups": list(groups),
        "configs": [config for answer in given for config in answer["configs"]],
    }


def errors_of(answer: Mapping[str, Any]) -> list[str]:
    """Return all errors of an answer, in its order."""
    return [error for config in answer["configs"] for error in config["value"]["errors"]]
