"""JSON texts as keys and values in a registry's framing.

Avro's JSON encoding, as Avro's and Confluent's own tools write it, becomes what fastavro writes. A
value of a union is null or `{"type": value}`; a value that is not so is taken for the only type of
the union besides null. Bytes are text of which each character is a byte. Logical types are what
they are stored as: days, milliseconds, bytes of a decimal. fastavro reads this encoding too, but
forgets which type of a union a record has.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.registry.client import Registry
from barnabas.cli.registry.files import read_text, schema_body, type_of_file
from barnabas.cli.serdes.options import confluent_client, needs_extra
from barnabas.cli.serdes.stored import Named, StoredSchema, why
from barnabas.schemas.wire_format import encode_indexes, prefix_of

if TYPE_CHECKING:
    from confluent_kafka.serialization import SerializationContext

ToBytes = Callable[[Any, "SerializationContext"], bytes]
_PRIMITIVES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "boolean": (bool, "true or false"),
    "int": (int, "a whole number"),
    "long": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "double": ((int, float), "a number"),
    "string": (str, "a text"),
    "bytes": (str, "a text"),
    "fixed": (str, "a text"),
    "enum": (str, "a text"),
}


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


class AvroJsonError(ValueError):
    """The value is not of the schema; the message says where."""


def from_json(schema: Any, value: Any) -> Any:
    """The object of decoded JSON, by a schema as fastavro parses it. Raises AvroJsonError."""
    return _AvroReader(schema).read(schema, value, "")


class _AvroReader:
    def __init__(self, schema: Any) -> None:
        self._named: dict[str, Any] = {}
        self._collect(schema)

    def _collect(self, schema: Any) -> None:
        """Find what has a name: fastavro parses a second mention to the name alone."""
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch)
        elif isinstance(schema, dict):
            if "name" in schema:
                self._named[schema["name"]] = schema
            for field in schema.get("fields", ()):
                self._collect(field["type"])
            for inner in ("items", "values"):
                if inner in schema:
                    self._collect(schema[inner])
            if isinstance(schema["type"], dict | list):
                self._collect(schema["type"])

    def read(self, schema: Any, value: Any, path: str) -> Any:
        if isinstance(schema, str):
            schema = self._named.get(schema, {"type": schema})
        if isinstance(schema, list):
            return self._union(schema, value, path)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, value, path)
        match kind:
            case "record" | "error":
                return self._record(schema, value, path)
            case "array":
                items = _checked(value, list, "a list", path)
                return [
                    self.read(schema["items"], item, f"{path}[{n}]") for n, item in enumerate(items)
                ]
            case "map":
                entries = _checked(value, dict, "an object", path)
                return {
                    key: self.read(schema["values"], item, f"{path}.{key}")
                    for key, item in entries.items()
                }
            case "null":
                if value is not None:
                    raise AvroJsonError(f"{_at(path)} must be null")
                return None
        return _primitive(schema, kind, value, path)

    def _record(self, schema: Any, value: Any, path: str) -> dict[str, Any]:
        given = _checked(value, dict, "an object", path)
        fields = {field["name"]: field for field in schema["fields"]}
        for name in given:
            if name not in fields:
                raise AvroJsonError(f"{_at(path)} has no field {name!r} in the schema")
        made = {}
        for name, field in fields.items():
            if name in given:
                made[name] = self.read(field["type"], given[name], f"{path}.{name}")
            elif "default" not in field:
                raise AvroJsonError(f"{_at(f'{path}.{name}')} is missing")
        return made

    def _union(self, branches: list[Any], value: Any, path: str) -> Any:
        if value is None and "null" in map(_name, branches):
            return None
        if isinstance(value, dict) and len(value) == 1:
            ((tag, inner),) = value.items()
            for branch in branches:
                if _name(branch) == tag:
                    made = self.read(branch, inner, path)
                    is_record = self._named.get(tag, {}).get("type") == "record"
                    return (tag, made) if is_record else made
        others = [branch for branch in branches if _name(branch) != "null"]
        if len(others) != 1:
            names = ", ".join(map(_name, branches))
            raise AvroJsonError(f'{_at(path)} must be {{"type": value}} with a type of {names}')
        return self.read(others[0], value, path)


def _name(branch: Any) -> str:
    if isinstance(branch, str):
        return branch
    return str(branch.get("name") or branch["type"])


def _primitive(schema: Any, kind: str, value: Any, path: str) -> Any:
    wanted, described = _PRIMITIVES[kind]
    _checked(value, wanted, described, path)
    if kind in ("bytes", "fixed"):
        try:
            return value.encode("latin-1")
        except UnicodeEncodeError:
            raise AvroJsonError(f"{_at(path)} has a character that is not a byte") from None
    if kind in ("float", "double"):
        return float(value)
    if kind == "enum" and value not in schema["symbols"]:
        raise AvroJsonError(f"{_at(path)} must be one of {', '.join(schema['symbols'])}")
    return value


def _checked(value: Any, wanted: type | tuple[type, ...], described: str, path: str) -> Any:
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise AvroJsonError(f"{_at(path)} must be {described}")
    return value


def _at(path: str) -> str:
    return path.removeprefix(".") or "it"
