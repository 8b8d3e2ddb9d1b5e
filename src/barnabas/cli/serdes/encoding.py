"""JSON texts as keys and values in a registry's framing."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.registry.client import Registry
from barnabas.cli.registry.files import read_text, schema_body, type_of_file
from barnabas.cli.serdes.avro_json import from_json
from barnabas.cli.serdes.options import confluent_client, needs_extra
from barnabas.cli.serdes.stored import Named, StoredSchema, why
from barnabas.schemas.wire_format import encode_indexes, prefix_of

if TYPE_CHECKING:
    from confluent_kafka.serialization import SerializationContext

ToBytes = Callable[[Any, "SerializationContext"], bytes]


class Encoder:
    """Turns the JSON of keys or values into bytes with a schema."""

    def __init__(
        self,
        registry: Registry,
        topic: str,
        schema_id: int | None,
        file: str | None,
        *,
        is_key: bool,
    ) -> None:
        """Takes the schema of an id, or registers that of a file. Raises CliError."""
        from confluent_kafka.serialization import MessageField, SerializationContext

        self._part = "key" if is_key else "value"
        self._context = SerializationContext(
            topic, MessageField.KEY if is_key else MessageField.VALUE
        )
        self._client = confluent_client(registry)
        subject = f"{topic}-{self._part}"
        number = schema_id
        if number is None:
            assert file is not None
            body = schema_body(type_of_file(file), read_text(file))
            number = int(registry.ask("POST", ("subjects", subject, "versions"), body=body)["id"])
        self._number = number
        self._named = Named(number)
        schema = StoredSchema(registry, self._named)
        subjects = registry.get(*self._named.path, "subjects")
        if subject not in subjects and subjects:
            subject = subjects[0]
        config = {
            "auto.register.schemas": False,
            "use.schema.id": number,
            "subject.name.strategy": lambda *_: subject,
            "schema.id.serializer": self._frame,
        }
        make = {"AVRO": self._avro, "JSON": self._json, "PROTOBUF": self._protobuf}[schema.type]
        with needs_extra():
            self._to_bytes = make(schema, config)

    def encode(self, text: bytes | None) -> bytes | None:
        """The bytes of a key or value; None is null. Raises CliError."""
        if text is None:
            return None
        try:
            value = json.loads(text)
        except ValueError as error:
            raise CliError(f"the {self._part} is not JSON: {error}", ExitCode.USAGE) from error
        try:
            return self._to_bytes(value, self._context)
        except Exception as error:  # each format's library has its own errors
            raise CliError(
                f"the {self._part} does not fit {self._named}: {why(error)}", ExitCode.USAGE
            ) from error

    def _frame(self, payload: bytes, _: object, used: Any) -> bytes:
        """Confluent's own forgets the id where it was given (`use.schema.id`, 2.16)."""
        indexes = used.message_indexes
        path = b"" if indexes is None else encode_indexes(indexes)
        return prefix_of(self._number) + path + payload

    def _avro(self, schema: StoredSchema, config: dict[str, Any]) -> ToBytes:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        serialize = AvroSerializer(self._client, conf=config)
        parsed = schema.avro
        return lambda value, context: serialize(from_json(parsed, value), context)

    def _json(self, schema: StoredSchema, config: dict[str, Any]) -> ToBytes:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        serialize: ToBytes = JSONSerializer(None, self._client, conf=config)
        return serialize

    def _protobuf(self, schema: StoredSchema, config: dict[str, Any]) -> ToBytes:
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
        from google.protobuf.json_format import ParseDict

        made = schema.message_class(())
        serialize = ProtobufSerializer(
            made, self._client, {"use.deprecated.format": False, **config}
        )
        return lambda value, context: serialize(
            ParseDict(value, made(), descriptor_pool=schema.pool), context
        )
