"""Properties of random Avro schemas and texts: parsing, canonical forms and compatibility.

A reader that we judge compatible really reads the writer's data. The reading is done by two
independent libraries: `fastavro`, and where it fails, as on some unions that name a record
(TypeError, 1.13), Apache's `avro`.
"""

from __future__ import annotations

import io
import json
from typing import Any

import avro.errors
import avro.io
import avro.schema
import fastavro
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

from barnabas.schemas.avro import AvroFormat, AvroSchema
from barnabas.schemas.schema import SchemaFault
from support.effort import examples

Json = Any

NUMBERS = ["int", "long", "float", "double"]
PRIMITIVES = ["null", "boolean", *NUMBERS, "bytes", "string"]
SYMBOLS = ["A", "B", "C", "D"]


class Evolution:
    """Draws a writer's schema and, beside it, a reader's that is like it or nearly so."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.names: list[tuple[str, str]] = []

    def chance(self, tenths: int) -> bool:
        return self.draw(st.integers(1, 10)) > 10 - tenths

    def types(self, depth: int) -> tuple[Json, Json]:
        if depth and self.chance(1):
            return self.types(depth - 1)[0], self.types(depth - 1)[1]
        kinds = ["primitive", "promotion", "enum", "fixed", "known"]
        if depth:
            kinds += ["array", "map", "record", "record", "union", "to_union", "from_union"]
        kind = self.draw(st.sampled_from(kinds))
        return getattr(self, kind)(depth)  # type: ignore[no-any-return]

    def primitive(self, _depth: int) -> tuple[Json, Json]:
        kind = self.draw(st.sampled_from(PRIMITIVES))
        return kind, kind

    def promotion(self, _depth: int) -> tuple[Json, Json]:
        writer = self.draw(st.integers(0, 3))
        return NUMBERS[writer], NUMBERS[self.draw(st.integers(max(0, writer - 1), 3))]

    def _name(self) -> str:
        return f"N{len(self.names)}"

    def known(self, depth: int) -> tuple[Json, Json]:
        return self.draw(st.sampled_from(self.names)) if self.names else self.primitive(depth)

    def enum(self, _depth: int) -> tuple[Json, Json]:
        name = self._name()
        self.names.append((name, name))
        subsets = st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True)
        writer = {"type": "enum", "name": name, "symbols": self.draw(subsets)}
        symbols = self.draw(st.one_of(st.just(writer["symbols"]), subsets))
        reader = {"type": "enum", "name": name, "symbols": symbols}
        if self.chance(3):
            reader["default"] = symbols[0]
        return writer, reader

    def fixed(self, _depth: int) -> tuple[Json, Json]:
        name, size = self._name(), self.draw(st.integers(0, 3))
        self.names.append((name, name))
        other = size + self.chance(2)
        return (
            {"type": "fixed", "name": name, "size": size},
            {"type": "fixed", "name": name, "size": other},
        )

    def array(self, depth: int) -> tuple[Json, Json]:
        writer, reader = self.types(depth - 1)
        return {"type": "array", "items": writer}, {"type": "array", "items": reader}

    def map(self, depth: int) -> tuple[Json, Json]:
        writer, reader = self.types(depth - 1)
        return {"type": "map", "values": writer}, {"type": "map", "values": reader}

    def record(self, depth: int) -> tuple[Json, Json]:
        name = self._name()
        self.names.append((name, name))
        written, read = [], []
        for field in self.draw(st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)):
            writer, reader = self.types(depth - 1)
            written.append({"name": field, "type": writer})
            if not self.chance(1):
                read.append({"name": field, "type": reader})
        if self.chance(4):
            read.append({"name": "new", "type": ["null", "int"], "default": None})
        if self.chance(2):
            read.append({"name": "number", "type": "int", "default": 3})
        if self.chance(2):
            read.append({"name": "required", "type": "int"})
        order = self.draw(st.permutations(range(len(read))))
        return (
            {"type": "record", "name": name, "fields": written},
            {"type": "record", "name": name, "fields": [read[index] for index in order]},
        )

    def union(self, depth: int) -> tuple[Json, Json]:
        pairs = [self.types(depth - 1) for _ in range(self.draw(st.integers(1, 3)))]
        order = self.draw(st.permutations(range(len(pairs))))
        return [writer for writer, _ in pairs], [pairs[index][1] for index in order]

    def to_union(self, depth: int) -> tuple[Json, Json]:
        writer, reader = self.types(depth - 1)
        return writer, ["null", reader]

    def from_union(self, depth: int) -> tuple[Json, Json]:
        writer, reader = self.types(depth - 1)
        return [writer], reader


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[str, str]:
    writer, reader = Evolution(draw).types(3)
    return json.dumps(writer), json.dumps(reader)


def parse(text: str, *, is_new: bool = True) -> AvroSchema | None:
    try:
        return AvroFormat().parse(text, is_new=is_new)
    except SchemaFault:
        return None


class Values:
    """Draws values of a canonical schema. Records inside themselves end early, or not at all."""

    def __init__(self, draw: st.DrawFn, root: Json) -> None:
        self.draw = draw
        self.named: dict[str, Json] = {}
        self._collect(root)

    def _collect(self, node: Json) -> None:
        if isinstance(node, dict):
            if node.get("type") in ("record", "enum", "fixed"):
                self.named[node["name"]] = node
            node = list(node.values())
        if isinstance(node, list):
            for inner in node:
                self._collect(inner)

    def value(self, schema: Json, depth: int = 0) -> Any:
        if isinstance(schema, list):
            index = self.draw(st.integers(0, len(schema) - 1)) if depth < 6 else 0
            return self.value(schema[index], depth + 1)
        if isinstance(schema, str):
            if schema in self.named:
                return self.value(self.named[schema], depth + 1)
            return self.draw(PRIMITIVE_VALUES[schema])
        kind = schema["type"]
        if kind == "record":
            assume(depth < 20)
            return {f["name"]: self.value(f["type"], depth + 1) for f in schema["fields"]}
        if kind == "enum":
            return self.draw(st.sampled_from(schema["symbols"]))
        if kind == "fixed":
            return self.draw(st.binary(min_size=schema["size"], max_size=schema["size"]))
        inner = schema["items" if kind == "array" else "values"]
        # One at least, so that all types in it are seen, if they are not inside themselves.
        values = [self.value(inner, depth + 1)] if depth < 6 else []
        return values if kind == "array" else {str(i): value for i, value in enumerate(values)}


PRIMITIVE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "bytes": st.binary(max_size=4),
    "string": st.text(max_size=4),
}


@settings(
    max_examples=examples(36),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(st.data())
def test_a_compatible_reader_reads_what_the_writer_wrote(data: st.DataObject) -> None:
    writer_text, reader_text = data.draw(evolutions())
    writer, reader = parse(writer_text), parse(reader_text)
    assume(writer is not None and reader is not None)
    assert writer is not None
    assert reader is not None
    if faults := reader.incompatibilities(writer):
        event(f"incompatible: {faults[0].kind}")
        return
    event("compatible")
    written_by = json.loads(writer.canonical_text)
    value = data.draw(st.composite(lambda draw: Values(draw, written_by).value(written_by))())
    failures = failures_to_read(written_by, value, reader.canonical_text)
    if any(isinstance(each, UnicodeDecodeError) for each in failures):
        # A reader may take bytes for a string, and these are none: others in their place are.
        event("bytes that are no string")
        failures = failures_to_read(written_by, in_ascii(value), reader.canonical_text)
    if any(isinstance(each, TypeError) for each in failures):
        event("faults of both libraries")
        return
    assert not failures


def failures_to_read(written_by: Json, value: Any, reader: str) -> list[Exception]:
    """What goes wrong in each library; nothing if one of them reads the value."""
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(written_by), value)
    failures = []
    for read in (read_with_fastavro, read_with_avro):
        try:
            read(buffer.getvalue(), json.dumps(written_by), reader)
        except Exception as error:  # noqa: BLE001 - any failure to read
            failures.append(error)
        else:
            return []
    return failures


def test_the_faults_of_both_libraries_are_still_there() -> None:
    """The first fails at a name in a reader's union, the second at a fixed in the writer's."""
    fixed = {"type": "fixed", "name": "F", "size": 1}
    writer = [{"name": "a", "type": [fixed]}, {"name": "b", "type": "F"}]
    reader = [{"name": "b", "type": ["null", fixed]}, {"name": "a", "type": "F"}]
    written_by, read_by = ({"type": "record", "name": "R", "fields": f} for f in (writer, reader))
    failures = failures_to_read(written_by, {"a": b"x", "b": b"y"}, json.dumps(read_by))
    assert [type(each) for each in failures] == [TypeError, avro.errors.SchemaResolutionException]


def test_of_bytes_that_a_reader_takes_for_a_string_only_characters_are_read() -> None:
    reader = json.dumps("string")
    failures = failures_to_read("bytes", b"\xff", reader)
    assert [type(each) for each in failures][:1] == [UnicodeDecodeError]
    assert failures_to_read("bytes", in_ascii(b"\xff"), reader) == []


def in_ascii(value: Any) -> Any:
    """The same value with as many bytes in each place, all of which are characters."""
    if isinstance(value, bytes):
        return bytes(byte & 0x7F for byte in value)
    if isinstance(value, list):
        return [in_ascii(each) for each in value]
    if isinstance(value, dict):
        return {key: in_ascii(each) for key, each in value.items()}
    return value


def read_with_fastavro(data: bytes, writer: str, reader: str) -> None:
    written_by, read_by = (fastavro.parse_schema(json.loads(text)) for text in (writer, reader))
    fastavro.schemaless_reader(io.BytesIO(data), written_by, read_by)


def read_with_avro(data: bytes, writer: str, reader: str) -> None:
    schemas = [avro.schema.parse(text) for text in (writer, reader)]
    avro.io.DatumReader(*schemas).read(avro.io.BinaryDecoder(io.BytesIO(data)))


@given(evolutions())
def test_the_canonical_text_and_the_normal_form_are_fixed_points(texts: tuple[str, str]) -> None:
    for text in texts:
        schema = parse(text)
        if schema is None:
            continue
        assert parse(schema.canonical_text) == schema
        assert parse(schema.formatted("resolved")) == schema
        normal = schema.normalized()
        assert normal.normalized() == normal
        assert schema.incompatibilities(schema) == []
        assert normal.incompatibilities(schema) == []


WORDS = ["type", "name", "namespace", "fields", "items", "values", "symbols", "size", "default",
         "aliases", "doc", "order", "logicalType", "precision", "scale", "confluent:tags",
         "record", "error", "enum", "array", "map", "fixed", "union", "decimal", "R", "x.R", "a",
         *PRIMITIVES]  # fmt: skip
SCALARS = st.one_of(
    st.sampled_from(WORDS),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), inner, max_size=6),
        st.fixed_dictionaries({"type": inner, "name": SCALARS, "fields": st.lists(inner)}),
        st.fixed_dictionaries(
            {"type": st.just("record"), "name": st.sampled_from("RS"), "fields": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from("ab"), "type": inner},
                                      optional={"default": inner, "aliases": inner}),
                max_size=3)}, optional={"logicalType": inner, "aliases": inner, "p": inner}),
    ),
    max_leaves=20,
)  # fmt: skip


def check_is_schema_or_fault(text: str) -> None:
    for is_new in (True, False):
        schema = parse(text, is_new=is_new)
        if schema is None:
            continue
        event("a schema")
        again = AvroFormat().parse(schema.canonical_text, is_new=is_new)
        assert again.canonical_text == schema.canonical_text
        schema.formatted("resolved")
        schema.normalized()
        schema.tags()
        assert schema.incompatibilities(schema) == [] or "aliases" in text


@settings(max_examples=examples(36))
@given(TREES)
def test_any_json_is_a_schema_or_a_fault(tree: Json) -> None:
    check_is_schema_or_fault(json.dumps(tree))


@given(st.one_of(st.text(), st.text(alphabet='{}[]":,/*\\ \n"typeinrcodu1.0-')))
@example('"\\ud800"')
@example("\ud800")
@example('/*"*/"int"')
@example('{"type":"int","a":"')
@example("//")
def test_any_text_is_a_schema_or_a_fault(text: str) -> None:
    check_is_schema_or_fault(text)


@given(evolutions(), st.data())
def test_a_damaged_text_is_a_schema_or_a_fault(texts: tuple[str, str], data: st.DataObject) -> None:
    text = texts[0]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 10)))
    check_is_schema_or_fault(text[:start] + data.draw(st.text(max_size=3)) + text[end:])
