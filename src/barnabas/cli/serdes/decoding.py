"""Keys and values in a registry's framing, as JSON texts."""

import io
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from barnabas.cli.errors import CliError
from barnabas.cli.records.records import JsonText, headers_of
from barnabas.cli.registry.client import Registry
from barnabas.cli.serdes.options import FORMATS, confluent_client, needs_extra
from barnabas.cli.serdes.stored import Named, StoredSchema, why
from barnabas.schemas.wire_format import decode_indexes, taken_apart

if TYPE_CHECKING:
    from uuid import UUID

    from confluent_kafka import Message
    from confluent_kafka.serialization import SerializationContext

ToJson = Callable[[bytes, "SerializationContext"], str]


class Decoder:
    """Turns the keys or the values of records into JSON, by the schemas that they name."""

    def __init__(self, registry: Registry, form: str, *, is_key: bool) -> None:
        """Raises CliError where a library is missing."""
        self._registry = registry
        self._wanted = FORMATS[form]
        self._part = "key" if is_key else "value"
        self._client = confluent_client(registry)
        with needs_extra():
            import fastavro  # noqa: F401  # missing ones are told before records are read
            import jsonschema  # noqa: F401
        self._known: dict[Named, ToJson] = {}

    def decode(self, message: "Message") -> None:
        """Put a JsonText in the place of the key or value, unless it is null. Raises CliError."""
        from confluent_kafka.serialization import MessageField, SerializationContext

        data = message.key() if self._part == "key" else message.value()
        if data is None:
            return
        field = MessageField.KEY if self._part == "key" else MessageField.VALUE
        context = SerializationContext(
            str(message.topic()), field, cast("Any", headers_of(message))
        )
        try:
            text = self._to_json(data, context)
        except CliError as error:
            where = f"{message.topic()}-{message.partition()}, offset {message.offset()}"
            error.message = f"{where}: {error.message}"
            raise
        (message.set_key if self._part == "key" else message.set_value)(JsonText(text.encode()))

    def _to_json(self, data: bytes, context: "SerializationContext") -> str:
        named = self._named_by(data, context)
        to_json = self._known.get(named)
        if to_json is None:
            to_json = self._known[named] = self._for(named)
        try:
            return to_json(data, context)
        except CliError:
            raise
        except Exception as error:  # each format's library has its own errors
            raise CliError(f"the {self._part} does not fit {named}: {why(error)}") from error

    def _named_by(self, data: bytes, context: "SerializationContext") -> Named:
        try:
            return Named(self._taken_apart(data, context)[0])
        except ValueError as error:
            raise CliError(
                f"the {self._part} names no schema: it does not begin with a magic byte and a "
                "schema id"
            ) from error

    def _taken_apart(
        self, data: bytes, context: "SerializationContext"
    ) -> tuple["int | UUID", bytes]:
        headers = cast("Sequence[tuple[str, bytes | None]]", context.headers or ())
        return taken_apart(data, headers, is_key=self._part == "key")

    def _for(self, named: Named) -> ToJson:
        schema = StoredSchema(self._registry, named)
        if self._wanted is not None and schema.type != self._wanted:
            raise CliError(f"the {self._part} has {named}, which is of type {schema.type}")
        make = {"AVRO": self._avro, "JSON": self._json, "PROTOBUF": self._protobuf}[schema.type]
        with needs_extra():
            from confluent_kafka.schema_registry import topic_subject_name_strategy

            # Rules of a schema are run under the subject of the topic.
            return make(schema, {"subject.name.strategy": topic_subject_name_strategy})

    def _avro(self, schema: StoredSchema, config: dict[str, Any]) -> ToJson:
        from confluent_kafka.schema_registry.avro import AvroDeserializer
        from fastavro import json_writer

        deserialize = AvroDeserializer(self._client, return_record_name=True, conf=config)
        parsed = schema.avro

        def to_json(data: bytes, context: "SerializationContext") -> str:
            out = io.StringIO()
            json_writer(out, parsed, [deserialize(data, context)])
            return _dumps(json.loads(out.getvalue()))  # it writes no letters but ASCII's

        return to_json

    def _json(self, schema: StoredSchema, config: dict[str, Any]) -> ToJson:
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer

        deserialize = JSONDeserializer(None, schema_registry_client=self._client, conf=config)
        return lambda data, context: _dumps(deserialize(data, context))

    def _protobuf(self, schema: StoredSchema, config: dict[str, Any]) -> ToJson:
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
        from google.protobuf.json_format import MessageToDict

        by_indexes: dict[tuple[int, ...], Any] = {}

        def to_json(data: bytes, context: "SerializationContext") -> str:
            indexes = tuple(decode_indexes(self._taken_apart(data, context)[1])[0])
            deserialize = by_indexes.get(indexes)
            if deserialize is None:
                # It asks no registry: of those that do, none finds a message inside another.
                deserialize = by_indexes[indexes] = ProtobufDeserializer(
                    schema.message_class(indexes), {"use.deprecated.format": False, **config}
                )
            return _dumps(
                MessageToDict(
                    deserialize(data, context),
                    always_print_fields_with_no_presence=True,
                    descriptor_pool=schema.pool,
                )
            )

        return to_json


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
