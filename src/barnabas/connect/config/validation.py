"""Validation of a connector's configuration, as `PUT …/config/validate` answers.

One answer out of several: the settings of its kind with those of the transforms and predicates that
it names, the connector's own, overrides of its clients' settings, and those of its converters.

Source: AbstractHerder.validateConnectorConfig, ConnectorConfig.enrich and DistributedHerder's
additions (Kafka 4.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.base.config.definitions import HIDDEN
from barnabas.connect import plugins
from barnabas.connect.allowed_paths import file_errors
from barnabas.connect.allowed_plugins import NotAllowedError
from barnabas.connect.config import common
from barnabas.connect.config.answers import (
    merged,
    setting_json,
    validation_json,
    value_json,
)
from barnabas.connect.config.client_overrides import refusal
from barnabas.connect.config.common import DLQ_TOPIC, PREDICATES, TOPICS, TOPICS_REGEX, TRANSFORMS
from barnabas.connect.config.definition import (
    ConfigType,
    ConfigValue,
    Definition,
    Importance,
    Setting,
    Validator,
    Width,
)
from barnabas.connect.config.plugin_classes import (
    BASES,
    kind_of,
    listed,
    load_of,
    names_of,
    version_of,
)
from barnabas.connect.config.values import parse_value, with_prefix
from barnabas.connect.connectors.base import Connector, EngineKind, SourceConnector
from barnabas.connect.errors.requests import BadRequestError, NotFoundError
from barnabas.connect.plugins import Kind
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError, ConnectError

Given = Mapping[str, str | None]
CLIENTS: Final = ("producer", "admin", "consumer")
_SECRET: Final = re.compile(r"password|secret|jaas|keystore\.key|user\.info|token", re.IGNORECASE)
PREDICATE: Final = "predicate"
NEGATE: Final = "negate"
_IMPLICIT: Final = (
    Setting(
        PREDICATE,
        ConfigType.STRING,
        None,
        doc="The name of the predicate that says which records are transformed.",
    ),
    Setting(NEGATE, ConfigType.BOOLEAN, False, doc="Apply it to all other records instead."),
)
_NAMED: Final[tuple[tuple[Kind, str, str, tuple[Setting, ...]], ...]] = (
    ("transformation", TRANSFORMS, "Transforms", _IMPLICIT),
    ("predicate", PREDICATES, "Predicates", ()),
)


@dataclass(slots=True, frozen=True)
class WorkerRules:
    """The effect of a worker's settings on its connectors.

    `group` is the workers' consumer group; None in standalone mode, where exactly-once is not
    checked. `policy` is `connector.client.config.override.policy`.
    """

    group: str | None = None
    is_exactly_once: bool = False
    policy: str = "All"
    converters: Mapping[str, str] = field(default_factory=dict)
    """The classes of the worker's own converters, under the names of their settings."""
    engine: EngineKind | None = None
    """The engine that runs tasks; None where it is not checked."""


def new_connector(class_name: str) -> Connector:
    """Return a new connector. Raises ConnectError as Kafka's worker does."""
    try:
        connector_class = plugins.load(class_name)
    except (plugins.MissingPackageError, NotAllowedError):
        raise
    except ConfigError:
        connector_class = None
    if connector_class is None or kind_of(class_name) not in ("source", "sink"):
        names = ", ".join(listed("sink") + listed("source"))
        raise ConnectError(
            "Failed to find any class that implements Connector and which name matches "
            f"{class_name}, available connectors are: {names}"
        )
    made = connector_class()
    assert isinstance(made, Connector)
    return made


def validate_connector(settings: Given, rules: WorkerRules) -> dict[str, Any]:
    """Return the answer. Raises BadRequestError, ConnectError."""
    class_name = settings.get(common.CONNECTOR_CLASS)
    if class_name is None:
        names = ", ".join(sorted(settings))
        raise BadRequestError(f"Connector config {{{names}}} contains no connector type")
    try:
        connector = new_connector(class_name)
    except ConnectError as error:
        raise BadRequestError(str(error)) from error
    is_source = isinstance(connector, SourceConnector)
    base = common.source_definition() if is_source else common.sink_definition()
    definition = enriched(_with_workers(base, settings, rules), settings)
    values = definition.validate(settings)
    if isinstance(connector, SourceConnector):
        _check_exactly_once(connector, settings, values, rules)
    else:
        for name, errors in sink_errors(settings).items():
            values.setdefault(name, ConfigValue(name)).errors.extend(errors)
        _check_group(settings, values, rules)
    for name in (name for name, value in settings.items() if value is None):
        values.setdefault(name, ConfigValue(name)).errors.append(
            "Null value can not be supplied as the configuration value."
        )
    _add_own(connector, settings, values)
    _check_engine(connector, settings, values, rules.engine)
    whole = Definition((definition.settings | connector.definition.settings).values())
    groups = dict.fromkeys((*definition.groups, *connector.definition.groups))
    return merged(
        class_name,
        (
            validation_json(class_name, whole, values, list(groups)),
            *_overrides(settings, rules, is_source=is_source),
            *(
                _converter_answer(name, settings, values)
                for name in (common.HEADER_CONVERTER, common.KEY_CONVERTER, common.VALUE_CONVERTER)
            ),
        ),
    )


def _with_workers(base: Definition, settings: Given, rules: WorkerRules) -> Definition:
    """The settings of all connectors, with the worker's converters as defaults, and versions."""
    changed = {}
    kinds: dict[str, plugins.Kind] = {
        common.KEY_CONVERTER: "converter",
        common.VALUE_CONVERTER: "converter",
        common.HEADER_CONVERTER: "header_converter",
    }
    for name, kind in kinds.items():
        default = rules.converters.get(name)
        used = settings.get(name) or default
        version = version_of(used, kind)
        changed[name] = replace(base.settings[name], default=default, recommender=names_of(kind))
        changed[name + common.VERSION] = _versioned(base.settings[name + common.VERSION], version)
    name = "connector" + common.VERSION
    kind_ = kind_of(settings.get(common.CONNECTOR_CLASS) or "") or "source"
    version = version_of(settings.get(common.CONNECTOR_CLASS), kind_)
    changed[name] = _versioned(base.settings[name], version)
    return Definition((base.settings | changed).values())


def _versioned(setting: Setting, version: str | None) -> Setting:
    return replace(
        setting, default=version, recommender=lambda _name, _parsed: [version] if version else []
    )


def _add_own(connector: Connector, settings: Given, values: dict[str, ConfigValue]) -> None:
    """The connector's own settings, and what it finds wrong itself."""
    given = {name: value for name, value in settings.items() if value is not None}
    own = connector.definition.validate(given)
    # Its own validation may open what settings name.
    own_errors = file_errors(connector, given) or connector.validate(given)
    for name, errors in own_errors.items():
        own.setdefault(name, ConfigValue(name, given.get(name))).errors.extend(errors)
    values.update(own)


def _check_engine(
    connector: Connector,
    settings: Given,
    values: dict[str, ConfigValue],
    engine: EngineKind | None,
) -> None:
    """A connector that this worker cannot run is refused, instead of failing in its tasks."""
    engines = connector.engines({key: text for key, text in settings.items() if text is not None})
    if engine is None or engine in engines:
        return
    text = "This worker's tasks run in its own threads (barnabas.connect.engine=local)"
    if engine != "local":
        text = (
            "This worker's tasks run through Spark Connect (barnabas.connect.spark.master=sc://…)"
        )
    wanted = ", with a barnabas.connect.spark.master other than sc://…"
    values[common.CONNECTOR_CLASS].errors.append(
        f"{text}, and this connector needs Spark: start the worker with "
        f"barnabas.connect.engine=spark{'' if 'spark connect' in engines else wanted}"
    )


def _check_exactly_once(
    connector: SourceConnector, settings: Given, values: dict[str, ConfigValue], rules: WorkerRules
) -> None:
    if rules.group is None:
        return
    given = {name: value for name, value in settings.items() if value is not None}
    support = values[common.EXACTLY_ONCE_SUPPORT]
    if not support.errors and str(support.value).lower() == "required":
        if not rules.is_exactly_once:
            support.errors.append("This worker does not have exactly-once source support enabled.")
        can = connector.exactly_once_support(given)
        if can is None:
            support.errors.append(
                "The connector does not implement the API required for preflight validation of "
                "exactly-once source support. Please consult the documentation for the connector "
                "to determine whether it supports exactly-once semantics, and then consider "
                'reconfiguring the connector to use the value "requested" for this property '
                "(which will disable this preflight check and allow the connector to be created)."
            )
        elif not can:
            support.errors.append(
                "The connector does not support exactly-once semantics with the provided "
                "configuration."
            )
    boundary = values[common.TRANSACTION_BOUNDARY]
    is_polls = boundary.errors or str(boundary.value).lower() == "poll"
    if rules.is_exactly_once and rules.engine not in (None, "local") and not is_polls:
        boundary.errors.append(
            f"{boundary.value} needs a worker with barnabas.connect.engine=local: on Spark each "
            "micro-batch is a transaction, as with poll"
        )
    is_own = not boundary.errors and str(boundary.value).lower() == "connector"
    if is_own and not connector.can_define_transaction_boundaries(given):
        boundary.errors.append(
            "The connector does not support connector-defined transaction boundaries with the "
            "given configuration. Please reconfigure it to use a different transaction boundary "
            "definition."
        )


def _check_group(settings: Given, values: dict[str, ConfigValue], rules: WorkerRules) -> None:
    """A sink's consumers must not be of the workers' own group."""
    if rules.group is None:
        return
    key = "consumer.override.group.id"
    group, name = settings.get(key), values[common.NAME].value
    if key in settings:
        value = values.setdefault(key, ConfigValue(key, group))
        if group == rules.group:
            value.errors.append(
                f"Consumer group {group} conflicts with Connect worker group {rules.group}"
            )
    elif f"connect-{name}" == rules.group:
        values[common.NAME].errors.append(
            f"Consumer group for sink connector named {name} conflicts with Connect worker group "
            f"{rules.group}"
        )


def _overrides(settings: Given, rules: WorkerRules, *, is_source: bool) -> list[dict[str, Any]]:
    has_dlq = bool((settings.get(common.DLQ_TOPIC) or "").strip())
    has_own_offsets = (
        is_source
        and rules.group is not None
        and (rules.is_exactly_once or bool((settings.get(common.OFFSETS_TOPIC) or "").strip()))
    )
    creates = any(name.startswith(common.TOPIC_CREATION) for name in settings)
    used = {
        "producer": is_source or has_dlq,
        "admin": (creates or has_own_offsets) if is_source else has_dlq,
        "consumer": not is_source or has_own_offsets,
    }
    return [_override_answer(client, settings, rules.policy) for client in CLIENTS if used[client]]


def _override_answer(client: str, settings: Given, policy: str) -> dict[str, Any]:
    prefix = f"{client}.override."
    configs, errors = [], 0
    for inner, value in with_prefix(settings, prefix).items():
        shown = ConfigValue(prefix + inner, HIDDEN if _SECRET.search(inner) else value)
        refused = refusal(inner, policy)
        if refused is not None:
            shown.errors.append(refused)
            errors += 1
        configs.append({"definition": None, "value": value_json(shown)})
    return {"groups": [], "error_count": errors, "configs": configs}


def _converter_answer(
    name: str, settings: Given, values: Mapping[str, ConfigValue]
) -> dict[str, Any] | None:
    """The settings of a converter that the connector names itself."""
    class_name = settings.get(name)
    if class_name is None or name not in values or values[name].errors:
        return None
    kind: plugins.Kind = "header_converter" if name == common.HEADER_CONVERTER else "converter"
    plugin = plugins.load(class_name.strip(), kind)
    definition: Definition = getattr(plugin, "definition", Definition())
    prefix = f"{name}."
    inner = with_prefix(settings, prefix)
    inner.setdefault("converter.type", name.removesuffix(".converter"))
    checked = definition.validate(inner)
    return {
        "groups": definition.groups,
        "error_count": sum(bool(value.errors) for value in checked.values()),
        "configs": [
            {
                "definition": setting_json(definition.settings[key], prefix),
                "value": value_json(value, prefix),
            }
            for key, value in checked.items()
            if key in definition.settings
        ],
    }


def plugin_settings(class_name: str) -> list[dict[str, Any]]:
    """Return the answer of `GET /connector-plugins/{plugin}/config`.

    Raises NotFoundError, BadRequestError.
    """
    kind = kind_of(class_name)
    if kind is None:
        try:
            plugins.load(class_name)
        except plugins.MissingPackageError as error:
            raise BadRequestError(str(error)) from None
        except ConfigError:
            raise NotFoundError(f"Unknown plugin {class_name}.") from None
        raise BadRequestError(
            f"Invalid plugin class {class_name}. Valid types are sink, source, converter, "
            "header_converter, transformation, predicate."
        )
    own: Definition = plugins.load(class_name).definition
    settings = dict(own.settings)
    base = {"source": common.source_definition, "sink": common.sink_definition}.get(kind)
    if base is not None:
        settings = settings | {
            name: setting for name, setting in base().settings.items() if name not in settings
        }
        name = "connector" + common.VERSION
        settings[name] = replace(settings[name], default=version_of(class_name, kind))
    return [setting_json(setting) for setting in settings.values()]


# The topics that a sink reads, and what may be wrong with them.
#
# Source: SinkConnectorConfig (Kafka 4.3).


def sink_errors(settings: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return what is wrong with a sink's topics, per setting (SinkConnectorConfig.validate)."""
    topics, pattern = settings.get(TOPICS) or "", settings.get(TOPICS_REGEX) or ""
    dlq = (settings.get(DLQ_TOPIC) or "").strip()
    errors: dict[str, list[str]] = {}
    if topics.strip() and pattern.strip():
        text = f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."
        errors = {TOPICS: [text], TOPICS_REGEX: [text]}
    elif not topics.strip() and not pattern.strip():
        text = f"Must configure one of {TOPICS} or {TOPICS_REGEX}"
        errors = {TOPICS: [text], TOPICS_REGEX: [text]}
    names = topic_names(settings)
    if dlq and dlq in names:
        errors.setdefault(TOPICS, []).append(
            f"The DLQ topic '{dlq}' may not be included in the list of topics "
            f"('{TOPICS}=[{', '.join(names)}]') consumed by the connector"
        )
    if dlq and pattern.strip() and _matches(pattern, dlq):
        errors.setdefault(TOPICS_REGEX, []).append(
            f"The DLQ topic '{dlq}' may not be matched by the regex for the topics "
            f"('{TOPICS_REGEX}={pattern}') consumed by the connector"
        )
    return errors


def topic_names(settings: Mapping[str, str | None]) -> list[str]:
    """Return the topics that a sink names, each once."""
    names = [name.strip() for name in (settings.get(TOPICS) or "").split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _matches(pattern: str, topic: str) -> bool:
    try:
        return compile_java(pattern).matches(topic)
    except PatternError as error:
        raise ConfigError(f"{TOPICS_REGEX}: {error}") from None


def enriched(definition: Definition, settings: Mapping[str, str | None]) -> Definition:
    """Return the definition with the settings of all named transforms and predicates.

    Classes that cannot be used are left to `validate`.
    """
    for kind, prefix, group, implicit in _NAMED:
        aliases = parse_value(prefix, settings.get(prefix), ConfigType.LIST) or []
        for alias in dict.fromkeys(aliases):
            place = f"{prefix}.{alias}."
            type_name, inner_group = f"{place}type", f"{group}: {alias}"
            definition = definition.plus(_type_settings(kind, alias, place, inner_group, settings))
            inner = _definition_of(kind, type_name, settings.get(type_name))
            if inner is not None:
                own = inner.without(PREDICATE, NEGATE) if implicit else inner
                whole = Definition((*implicit, *own.settings.values()))
                definition = definition.embed(place, inner_group, 2, whole)
    return definition


def _type_settings(
    kind: Kind, alias: str, place: str, group: str, settings: Mapping[str, str | None]
) -> tuple[Setting, Setting]:
    interface = BASES[kind][0]
    version = version_of(settings.get(f"{place}type"), kind)
    return (
        Setting(
            f"{place}type",
            ConfigType.CLASS,
            importance=Importance.HIGH,
            doc=f"Class for the '{alias}' {interface.lower()}.",
            group=group,
            order=0,
            width=Width.LONG,
            display_name=f"{interface} type for {alias}",
            validator=_type_validator(kind, place, settings),
            recommender=names_of(kind),
        ),
        Setting(
            f"{place}plugin.version",
            ConfigType.STRING,
            version,
            Importance.HIGH,
            f"Version of the '{alias}' {interface.lower()}; there is one of each.",
            group,
            1,
            Width.LONG,
            f"{interface} version for {alias}",
            recommender=lambda _name, _parsed: [version] if version else [],
        ),
    )


def _type_validator(kind: Kind, place: str, settings: Mapping[str, str | None]) -> Validator:
    def check(_name: str, value: Any) -> None:
        is_negated = kind == "transformation" and place + NEGATE in settings
        if is_negated and place + PREDICATE not in settings:
            raise ConfigError(
                f"Config '{place}{NEGATE}' was provided but there is no config "
                f"'{place}{PREDICATE}' defining a predicate to be negated."
            )
        if value is not None:
            load_of(kind, value)

    return check


def _definition_of(kind: Kind, setting: str, text: str | None) -> Definition | None:
    """What a named class can be set to; None if it cannot be used."""
    try:
        name = parse_value(setting, text, ConfigType.CLASS)
        plugin = None if name is None else load_of(kind, name)
    except ConfigError:
        return None
    if plugin is None:
        return None
    definition = getattr(plugin, "definition", None)
    return definition if isinstance(definition, Definition) else Definition()
