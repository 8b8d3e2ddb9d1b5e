"""The source of an encoder: `run(m, out, marks)` appends the parts of message `m` to `out`.

`marks` receives the index of each part that is a `records` value, which is never copied.
Fixed-width fields wait in a group until something of variable length follows, whose length they
take along; a struct without tagged fields ends in the group's last byte.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct as Packer
from typing import Any

from barnabas.base.disk import Buffer
from barnabas.protocol.codec import runtime
from barnabas.protocol.codec.source import FIXED_FORMATS, Source, default_text
from barnabas.protocol.schema import EMPTY, Field, FieldType, Message, Struct

Run = Callable[[Any, list[Buffer], list[int]], None]


@cache
def _packer(codes: str) -> Callable[..., bytes]:
    return Packer(f">{codes}").pack


def compile_encoder(cls: type[Message], version: int) -> Run:
    """Write and compile the encoder of one version, which the message must have."""
    source = _Encoder(version, cls.SCHEMA.flexible.covers(version))
    source.line("w = out.append")
    source.struct(cls, "m", cls.__name__)
    source.flush()
    return source.build("def run(m, out, marks):")


class _Encoder(Source):
    def __init__(self, version: int, is_flexible: bool) -> None:
        super().__init__(version, is_flexible)
        self.codes = ""
        self.values: list[str] = []
        self.write = "w"
        self.scope["SMALL_VARINTS"] = runtime.SMALL_VARINTS
        for helper in (
            runtime.uvarint,
            runtime.string_length,
            runtime.pack_vector,
            runtime.pack_uuids,
            runtime.write_tags,
            runtime.not_in_version,
            runtime.null_given,
            runtime.check_uuid,
        ):
            self.scope[helper.__name__] = helper

    def fixed(self, code: str, value: str) -> None:
        """Let `value` be written with the group that is open."""
        self.codes += code
        self.values.append(value)

    def group(self, extra_code: str = "", *extra: str) -> str:
        """The call that packs the open group, and more after it."""
        pack = self.constant("pack", _packer(self.codes + extra_code))
        return f"{pack}({', '.join([*self.values, *extra])})"

    def clear(self) -> None:
        """Begin a new group."""
        self.codes, self.values = "", []

    def flush(self) -> None:
        """Write the open group."""
        if self.codes:
            self.line(f"{self.write}({self.group()})")
            self.clear()

    def flush_varint(self, value: str, longer: str = "uvarint") -> None:
        """Write the open group and an unsigned varint, which is mostly one byte."""
        if not self.codes:
            small = f"SMALL_VARINTS[{value}] if {value} < 128 else {longer}({value})"
            self.line(f"{self.write}({small})")
            return
        self.line(f"if {value} < 128:")
        self.indented(f"{self.write}({self.group('B', value)})")
        self.line("else:")
        self.indented(f"{self.write}({self.group()})")
        self.indented(f"{self.write}({longer}({value}))")
        self.clear()

    def struct(self, cls: type[Struct], source: str, path: str) -> None:
        """Write a struct. The group may stay open."""
        tagged: list[Field] = []
        for field in cls.SCHEMA.fields:
            slot = f"{source}.{field.name}"
            if not field.versions.covers(self.version):
                if not field.ignorable:
                    self.line(f"if {self.differs(field, slot)}:")
                    self.indented(f"not_in_version('{path}.{field.name}', {self.version})")
            elif self.is_tagged(field):
                tagged.append(field)
            else:
                self.field(field, slot, f"{path}.{field.name}")
        if self.is_flexible:
            self.tagged_fields(sorted(tagged, key=lambda field: field.tag), source, path)
        else:
            self.line(f"if {source}.unknown_tags is not None:")
            self.indented(f"not_in_version('{path}.unknown_tags', {self.version})")

    def differs(self, field: Field, slot: str) -> str:
        """An expression that is true where a field does not hold its default."""
        if field.default is None:
            return f"{slot} is not None"
        if field.default is not EMPTY or field.type.struct is None:
            if field.type.kind == "bool":
                return f"not {slot}" if field.default else slot
            return f"{slot} != {default_text(field)}"
        parts = [f"{slot} is None"] if self.is_nullable(field) else []
        parts += [
            self.differs(inner, f"{slot}.{inner.name}") for inner in field.type.struct.SCHEMA.fields
        ]
        return " or ".join([*parts, f"{slot}.unknown_tags is not None"])

    def field(self, field: Field, slot: str, path: str, *, in_tag: bool = False) -> None:
        """Write one field that is present."""
        cls = field.type.struct
        if cls is None:
            self.value(field.type, slot, path, self.is_nullable(field), self.is_compact(field))
            return
        inner = self.name("s")
        self.line(f"{inner} = {slot}")
        if not self.is_nullable(field):
            self.struct(cls, inner, path)
            return
        self.flush()
        self.line(f"if {inner} is None:")
        self.indented(f"{self.write}({bytes(1) if in_tag else bytes((255,))!r})")
        self.line("else:")
        self.depth += 1
        self.fixed("b", "1")
        self.struct(cls, inner, path)
        self.flush()
        self.depth -= 1

    def value(
        self, of: FieldType, value: str, path: str, is_nullable: bool, is_compact: bool
    ) -> None:
        """Write what is not a struct."""
        code = FIXED_FORMATS.get(of.kind)
        if code is not None:
            if of.kind == "uuid":
                self.line(f"check_uuid({value})")
            self.fixed(code, value)
            return
        held, length = self.name("x"), self.name("n")
        one = " + 1" if is_compact else ""
        self.line(f"{held} = {value}")
        self.line(f"if {held} is None:")
        if is_nullable:
            empty = "[]" if of.element is not None else "b''"
            self.indented(f"{held} = {empty}")
            self.indented(f"{length} = {0 if is_compact else -1}")
        else:
            self.indented(f"null_given({path!r})")
        self.line("else:")
        if of.kind == "string":
            self.indented(f"{held} = {held}.encode()")
        self.indented(f"{length} = len({held}){one}")
        if is_compact:
            self.flush_varint(length, "string_length" if of.kind == "string" else "uvarint")
        else:
            self.fixed("h" if of.kind == "string" else "i", length)
            self.flush()
        if of.element is not None:
            self.array(of.element, held, path)
        elif of.kind == "records":
            self.line(f"if {length} > {1 if is_compact else 0}:")
            self.indented("marks.append(len(out))")
            self.indented(f"{self.write}({held})")
        else:
            self.line(f"if {held}:")
            self.indented(f"{self.write}({held})")

    def array(self, of: FieldType, values: str, path: str) -> None:
        """Write the elements of a list whose count is written."""
        code = FIXED_FORMATS.get(of.kind)
        if code is not None:
            packed = (
                f"pack_uuids({values})" if of.kind == "uuid" else f"pack_vector({code!r}, {values})"
            )
            self.line(f"if {values}:")
            self.indented(f"{self.write}({packed})")
            return
        element = self.name("x")
        self.line(f"for {element} in {values}:")
        self.depth += 1
        before = len(self.lines)
        if of.struct is not None:
            self.struct(of.struct, element, path)
            self.flush()
        else:
            self.value(of, element, f"an element of {path}", False, self.is_flexible)
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def tagged_fields(self, tagged: list[Field], source: str, path: str) -> None:
        """Write the tagged fields that end a struct: mostly none, one byte of the group."""
        held = {}
        for field in tagged:
            held[field.tag] = slot = self.name("t")
            self.line(f"{slot} = {source}.{field.name}")
        conditions = [self.differs(field, held[field.tag]) for field in tagged]
        self.line(f"if {' or '.join([*conditions, f'{source}.unknown_tags is not None'])}:")
        self.depth += 1
        if self.codes:
            self.line(f"{self.write}({self.group()})")
        codes, values, write = self.codes, self.values, self.write
        self.clear()
        known = self.name("k")
        self.line(f"{known} = []")
        for field, condition in zip(tagged, conditions, strict=True):
            self.line(f"if {condition}:")
            self.depth += 1
            data = self.name("b")
            self.write = self.name("w")
            self.line(f"{data} = []")
            self.line(f"{self.write} = {data}.append")
            self.field(field, held[field.tag], f"{path}.{field.name}", in_tag=True)
            self.flush()
            self.line(f"{known}.append(({field.tag}, b''.join({data})))")
            self.depth -= 1
        self.write = write
        self.line(f"write_tags({self.write}, {known}, {source}.unknown_tags)")
        self.depth -= 1
        self.codes, self.values = codes, values
        self.line("else:")
        self.indented(f"{self.write}({self.group('x')})" if codes else f"{self.write}(b'\\0')")
        self.clear()

    def indented(self, text: str) -> None:
        """Add a line one level deeper."""
        self.depth += 1
        self.line(text)
        self.depth -= 1
