"""The converters and transforms of a task, made from its settings in every process.

A connector's own `key.converter` wins over the worker's, and then only its own settings count.
Source: ConnectorConfig.transformationStages, Worker.startTask (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.connect.allowed_plugins import allow_of_worker
from barnabas.connect.config.definition import Definition
from barnabas.connect.config.plugin_classes import load_of
from barnabas.connect.config.values import missing, names, with_prefix
from barnabas.connect.converters.base import Converter, HeaderConverter
from barnabas.connect.converters.headers import ByteArrayHeaderConverter
from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.converters.primitives import ByteArrayConverter, StringConverter
from barnabas.connect.errors.reports import Unmasked
from barnabas.connect.plugins import Kind
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Predicate, Transform
from barnabas.schemas.data.errors import ConnectError

DEFAULT_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
Settings = Mapping[str, str]
_PURE: Final = (StringConverter, JsonConverter, ByteArrayConverter)


@dataclass(slots=True)
class Step:
    """One transform, and which records it is for."""

    alias: str
    transform: Transform
    predicate: Predicate | None = None
    negates: bool = False

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record that goes on, None for none."""
        if self.predicate is not None and self.predicate.test(record) == self.negates:
            return record
        return self.transform.apply(record)

    def close(self) -> None:
        """Close what it holds open."""
        self.transform.close()
        if self.predicate is not None:
            self.predicate.close()


@dataclass(slots=True)
class Chain:
    """The chain that a record passes through."""

    key: Converter
    value: Converter
    header: HeaderConverter
    stages: list[Step]

    @property
    def is_plain(self) -> bool:
        """True if bytes pass it unchanged."""
        kinds = type(self.key), type(self.value), type(self.header)
        return not self.stages and kinds == (
            ByteArrayConverter,
            ByteArrayConverter,
            ByteArrayHeaderConverter,
        )

    @property
    def takes_columns(self) -> bool:
        """True if many records may be converted at once.

        So it is of these converters alone: nobody sees how often, or in which order, they are
        called.
        """
        return not self.stages and type(self.key) in _PURE and type(self.value) in _PURE

    def unmasked(self, *, is_sink: bool) -> Unmasked:
        """Return what sees fields before the last transform that masks some."""
        masks = [step.transform.masks for step in self.stages]
        if not any(masks):
            return Unmasked()
        last = max(place for place, is_mask in enumerate(masks) if is_mask)
        converters = (self.key, self.value, self.header) if is_sink else ()
        return Unmasked(
            [step.alias for step in self.stages if step.transform.masks],
            [*converters, *(step.transform for step in self.stages[: last + 1])],
        )

    def close(self) -> None:
        """Close what it holds open."""
        self.key.close()
        self.value.close()
        self.header.close()
        for step in self.stages:
            step.close()


def make_chain(connector: Settings, worker: Settings) -> Chain:
    """Return the chain of a connector's tasks. Raises ConfigError, ConnectError."""
    allow_of_worker(worker)  # this may be an executor's process
    return Chain(
        key=_converter("key", connector, worker),
        value=_converter("value", connector, worker),
        header=_converter("header", connector, worker),
        stages=[_step(alias, connector) for alias in names(connector.get("transforms", ""))],
    )


def parsed(definition: Definition, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the defined ones parsed. Raises ConfigError."""
    return {**settings, **definition.parse(settings)}


def _converter(use: str, connector: Settings, worker: Settings) -> Any:
    """Return the converter of keys, values or headers; only headers have a default."""
    name, is_header = f"{use}.converter", use == "header"
    given = connector if connector.get(name) else worker
    class_name = given.get(name) or (DEFAULT_HEADER_CONVERTER if is_header else "")
    if not class_name:
        raise missing(name)
    converter = load_of("header_converter" if is_header else "converter", class_name)()
    settings = {**with_prefix(given, f"{name}."), "converter.type": use}
    values = parsed(type(converter).definition, settings)
    if is_header:
        converter.configure(values)
    else:
        converter.configure(values, is_key=use == "key")
    return converter


def _step(alias: str, connector: Settings) -> Step:
    settings = with_prefix(connector, f"transforms.{alias}.")
    predicate_alias = settings.pop("predicate", None)
    negates = settings.pop("negate", "false").strip().lower() == "true"
    transform: Transform = _made("transformation", settings, f"transforms.{alias}.type")
    if predicate_alias is None:
        return Step(alias, transform)
    prefix = f"predicates.{predicate_alias}."
    predicate: Predicate = _made("predicate", with_prefix(connector, prefix), f"{prefix}type")
    return Step(alias, transform, predicate, negates)


def _made(kind: Kind, settings: dict[str, str], type_name: str) -> Any:
    class_name = settings.pop("type", None)
    if not class_name:
        raise missing(type_name)
    made = load_of(kind, class_name)()
    try:
        made.configure(parsed(type(made).definition, settings))
    except ConnectError:
        raise
    except Exception as error:
        raise ConnectError(f"{type_name}: {error}") from error
    return made
