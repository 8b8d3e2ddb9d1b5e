"""The connector `io.confluent.kafka.connect.datagen.DatagenConnector`: its settings, its offsets.

A task's records depend on the seed in its offsets and on each record's number only, so that one
that is read again is the same. Source: github.com/confluentinc/kafka-connect-datagen.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.connectors.base import (
    ConnectorContext,
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.datagen.generator import compile_schema
from barnabas.connect.connectors.datagen.quickstarts import KEYS, quickstart
from barnabas.connect.record import Header, JsonMap, SourceRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError
from barnabas.schemas.data.schema import Schema, Struct, Type

_SCHEMA_CHARACTERS_MAX: Final = 1_000_000
TASK: Final = "task.id"
GENERATION: Final = "task.generation"
ITERATION: Final = "current.iteration"
SEED: Final = "random.seed"
BATCH_RECORDS_MAX: Final = 10_000
_STRING: Final = Schema(Type.STRING)
_LONG: Final = Schema(Type.INT64)


def _setting(name: str, kind: ConfigType, doc: str, default: Any = "") -> Setting:
    return Setting(name, kind, default, Importance.HIGH, doc)


class Datagen(SourceConnector):
    """Makes records up."""

    definition: ClassVar[Definition] = Definition((
        Setting("kafka.topic", ConfigType.STRING, importance=Importance.HIGH,
                doc="Topic to write to"),
        _setting("max.interval", ConfigType.LONG, "Max interval between messages (ms)", 500),
        _setting("iterations", ConfigType.INT,
                 "Number of messages to send from each task, or less than 1 for unlimited", -1),
        _setting("schema.string", ConfigType.STRING, "The literal JSON-encoded Avro schema"),
        _setting("schema.filename", ConfigType.STRING, "Filename of schema to use"),
        _setting("schema.keyfield", ConfigType.STRING, "Name of field to use as the message key"),
        _setting("quickstart", ConfigType.STRING, "Name of quickstart to use"),
        Setting(SEED, ConfigType.LONG, None, Importance.LOW, "Seed of what is made up"),
    ))  # fmt: skip

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Take the settings, and check the schema."""
        self._settings = settings
        _schema_of(self.definition.parse(settings))

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return errors of the schema."""
        try:
            _schema_of(self.definition.parse(settings))
        except ConfigError as error:
            name = next(
                (one for one in ("quickstart", "schema.string") if settings.get(one)),
                "schema.filename",
            )
            return {name: [str(error)]}
        return {}

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: each micro-batch is one part."""
        return False

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """All tasks make up records, each its own."""
        return [{**self._settings, TASK: str(number)} for number in range(tasks_max)]

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader of a task."""
        values = self.definition.parse(context.settings)
        partition = {TASK: context.task}
        stored = context.offsets.offset(partition) if context.offsets is not None else None
        return DatagenReader(values, context.task, stored)

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        for partition, offset in offsets:
            if TASK not in partition:
                raise ConnectError(f"Partition objects should contain the key '{TASK}'")
            if offset is not None and not isinstance(offset.get(ITERATION), int):
                raise ConnectError(f"Offset objects should contain the number '{ITERATION}'")
        return True


class DatagenReader(SourceReader):
    """One task's."""

    def __init__(self, values: Mapping[str, Any], task: int, stored: JsonMap | None) -> None:
        self._values = dict(values)
        self._task = task
        stored = stored or {}
        self._generation = int(stored.get(GENERATION, 0))
        given = values[SEED]
        fresh = Random().getrandbits(63) if given is None else hash((given, task))
        self._seed = int(stored.get(SEED, fresh))
        self._at = int(stored.get(ITERATION, 0))
        self._next = time.monotonic()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the number of the next record."""
        return {ITERATION: self._at}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return how many records there are by now."""
        last = self._values["iterations"]
        if 0 < last <= self._at:
            raise ConnectError(
                f"Stopping connector: generated the configured {last} number of messages"
            )
        self._at += self._due()
        if last > 0:
            self._at = min(self._at, last)
        return {ITERATION: self._at}

    def _due(self) -> int:
        """Pauses between records are random, up to `max.interval`; half of it in the mean."""
        pause = self._values["max.interval"] / 1000
        if pause <= 0:
            return BATCH_RECORDS_MAX
        now = time.monotonic()
        count = 0
        while self._next <= now and count < BATCH_RECORDS_MAX:
            count += 1
            self._next += pause * Random().random()
        if count == BATCH_RECORDS_MAX:
            self._next = now
        return count

    def sent(self, end: dict[str, Any]) -> bool:
        """Go on: there is nobody to tell."""
        return True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return one split."""
        return [(start[ITERATION], end[ITERATION])]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the records."""
        schema, make, key_field = _schema_of(self._values)
        names = [field.name for field in schema.fields]
        key_at = names.index(key_field) if key_field else None
        source = {TASK: self._task}
        for number in range(*partition):
            value: Struct = make(Random(f"{self._seed} {number}"), number)
            yield SourceRecord(
                source_partition=source,
                source_offset={
                    GENERATION: self._generation + 1,
                    ITERATION: number + 1,
                    SEED: self._seed,
                },
                topic=self._values["kafka.topic"],
                key_schema=_STRING,
                key="" if key_at is None else str(value.values[key_at]),
                value_schema=schema,
                value=value,
                headers=[
                    Header(GENERATION, _LONG, self._generation),
                    Header(TASK, _LONG, self._task),
                    Header(ITERATION, _LONG, number),
                ],
            )


_WRONG: Final = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
)
"""The error for a schema with a missing part, or one of the wrong kind."""


def _schema_of(values: Mapping[str, Any]) -> tuple[Schema, Any, str]:
    """Return schema, what makes values, and the field that is the key. Raises ConfigError."""
    given = [one for one in ("quickstart", "schema.string", "schema.filename") if values[one]]
    if len(given) != 1:
        raise ConfigError(
            "Set exactly one of quickstart, schema.string and schema.filename, not "
            f"{', '.join(given) or 'none'}"
        )
    key_field = values["schema.keyfield"]
    if values["quickstart"]:
        name = values["quickstart"].lower()
        node: Any = quickstart(name)
        key_field = key_field or KEYS[name]
    else:
        node = _read(values)
    try:
        schema, make = compile_schema(node)
    except _WRONG as error:
        reason = f"{type(error).__name__} {error}"
        raise ConfigError(f"the Avro schema or its arg.properties are wrong: {reason}") from error
    if schema.type is not Type.STRUCT:
        raise ConfigError("the Avro schema must be a record")
    if key_field and key_field not in [field.name for field in schema.fields]:
        raise ConfigError(f"the schema has no field {key_field}, which schema.keyfield names")
    return schema, make, key_field


def _read(values: Mapping[str, Any]) -> Any:
    text, path = values["schema.string"], values["schema.filename"]
    try:
        if not text:
            if not os.path.isfile(path):  # a device may have no end
                raise ConfigError(f"Unable to read the '{path}' schema file: it is not a file")
            with open(path, encoding="utf-8") as file:
                text = file.read(_SCHEMA_CHARACTERS_MAX + 1)
            if len(text) > _SCHEMA_CHARACTERS_MAX:
                raise ConfigError(
                    f"Unable to read the '{path}' schema file: it has more than "
                    f"{_SCHEMA_CHARACTERS_MAX} characters"
                )
        return json.loads(text)
    except OSError as error:
        raise ConfigError(f"Unable to read the '{path}' schema file: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"the Avro schema is not JSON: {error}") from error
