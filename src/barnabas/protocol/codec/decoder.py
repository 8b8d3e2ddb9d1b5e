"""The source of a decoder: `run(b, p, e)` reads buffer `b` from position `p`, which ends at `e`.

It returns (message, position after it). Fixed-width fields wait in a group until something of
variable length follows; the group then takes that length along, or the count of tagged fields
which ends a struct. What runs past the buffer raises `struct.error` or IndexError, which
`codec.api` turns into DecodeError; every slice and count is compared with `e` first.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct as Packer
from typing import Any

from barnabas.base.disk import Buffer
from barnabas.protocol.codec import runtime
from barnabas.protocol.codec.source import FIXED_FORMATS, FIXED_SIZES, INDENT, Source, default_text
from barnabas.protocol.schema import EMPTY, Field, FieldType, Message, Struct

Run = Callable[[Buffer, int, int], tuple[Any, int]]

_VECTORS = {
    kind: runtime.read_uuids if kind == "uuid" else runtime.vector_reader(code, FIXED_SIZES[kind])
    for kind, code in FIXED_FORMATS.items()
}
NAMES = frozenset({"string", "uuid"})


@cache
def _unpacker(codes: str) -> Callable[..., tuple[Any, ...]]:
    return Packer(f">{codes}").unpack_from


def compile_decoder(cls: type[Message], version: int) -> Run:
    """Write and compile the decoder of one version, which the message must have."""
    source = _Decoder(
        version, cls.SCHEMA.flexible.covers(version), is_bounded=cls.__name__.endswith("Request")
    )
    source.struct(cls, "m", cls.__name__)
    source.flush()
    source.line("return m, p")
    if source.has_records:
        source.lines.insert(0, f"{INDENT}v = memoryview(b)")
    return source.build("def run(b, p, e):")


class _Decoder(Source):
    def __init__(self, version: int, is_flexible: bool, *, is_bounded: bool) -> None:
        """`is_bounded`: what is read has `REQUEST_ELEMENTS_MAX` elements at most, and of these
        `REQUEST_NAMES_MAX` that name something."""
        super().__init__(version, is_flexible)
        self.is_bounded = is_bounded
        if is_bounded:
            self.line(f"left = {runtime.REQUEST_ELEMENTS_MAX}")
            self.line(f"names_left = {runtime.REQUEST_NAMES_MAX}")
        self.codes = ""
        self.targets: list[str] = []
        self.has_records = False
        self.scope["new"] = object.__new__
        for helper in (
            runtime.varint_rest,
            runtime.read_tag,
            runtime.unknown_tags,
            runtime.truncated,
            runtime.beyond_limit,
            runtime.too_many_names,
            runtime.too_many,
            runtime.too_long,
            runtime.not_null,
            runtime.tag_size,
        ):
            self.scope[helper.__name__] = helper

    def fixed(self, code: str, target: str) -> None:
        """Let `target` be read with the group that is open."""
        self.codes += code
        self.targets.append(target)

    def flush(self) -> None:
        """Read the open group."""
        if not self.codes:
            return
        if self.codes == "B":
            self.line(f"{self.targets[0]} = b[p]")
        elif self.codes == "?":
            self.line(f"{self.targets[0]} = b[p] != 0")
        else:
            unpack = self.constant("unpack", _unpacker(self.codes))
            self.line(f"{', '.join(self.targets)}, = {unpack}(b, p)")
        self.line(f"p += {Packer('>' + self.codes).size}")
        self.codes, self.targets = "", []

    def struct(self, cls: type[Struct], target: str, path: str) -> None:
        """Read a struct into a new object. The group may stay open."""
        self.line(f"{target} = new({self.constant(cls.__name__, cls)})")
        self.line(f"{target}.unknown_tags = None")
        tagged: list[Field] = []
        for field in cls.SCHEMA.fields:
            slot = f"{target}.{field.name}"
            if not field.versions.covers(self.version):
                self.default(field, slot)
            elif self.is_tagged(field):
                self.default(field, slot)
                tagged.append(field)
            else:
                self.field(field, slot, f"{path}.{field.name}")
        if self.is_flexible:
            self.tagged_fields(tagged, target, path)

    def default(self, field: Field, slot: str) -> None:
        """Store the default."""
        if field.default is not EMPTY or field.type.struct is None:
            self.line(f"{slot} = {default_text(field)}")
            return
        inner = self.name("d")
        cls = field.type.struct
        self.line(f"{slot} = {inner} = new({self.constant(cls.__name__, cls)})")
        self.line(f"{inner}.unknown_tags = None")
        for inner_field in cls.SCHEMA.fields:
            self.default(inner_field, f"{inner}.{inner_field.name}")

    def field(self, field: Field, slot: str, path: str, *, in_tag: bool = False) -> None:
        """Read one field that is present."""
        cls = field.type.struct
        if cls is None:
            self.value(field.type, slot, path, self.is_nullable(field), self.is_compact(field))
            return
        if not self.is_nullable(field):
            inner = self.name("s")
            self.struct(cls, inner, path)
            self.line(f"{slot} = {inner}")
            return
        marker = self.name("n")
        self.fixed("B" if in_tag else "b", marker)
        self.flush()
        self.line(f"if {marker} {'==' if in_tag else '<'} 0:")
        self.indented(f"{slot} = None")
        self.line("else:")
        self.depth += 1
        inner = self.name("s")
        self.struct(cls, inner, path)
        self.flush()
        self.line(f"{slot} = {inner}")
        self.depth -= 1

    def value(
        self, of: FieldType, target: str, path: str, is_nullable: bool, is_compact: bool
    ) -> None:
        """Read what is not a struct."""
        code = FIXED_FORMATS.get(of.kind)
        if code is not None:
            self.fixed(code, target)
            return
        length = self.length(of, path, is_compact)
        self.line(f"if {length} >= 0:")
        self.depth += 1
        if of.element is not None:
            self.array(of.element, target, length, path)
        else:
            end = self.name("q")
            self.line(f"{end} = p + {length}")
            self.line(f"if {end} > e:")
            self.indented(f"raise truncated({path!r}, {length}, e - p)")
            if of.kind == "string":
                self.line(f'{target} = str(b[p:{end}], "utf-8")')
            elif of.kind == "bytes":
                self.line(f"{target} = bytes(b[p:{end}])")
            else:
                self.has_records = True
                self.line(f"{target} = v[p:{end}]")
            self.line(f"p = {end}")
        self.depth -= 1
        self.line("else:")
        self.indented(f"{target} = None" if is_nullable else f"raise not_null({path!r})")

    def length(self, of: FieldType, path: str, is_compact: bool) -> str:
        """Read a length or count into a variable; negative means null."""
        length = self.name("n")
        if not is_compact:
            self.fixed("h" if of.kind == "string" else "i", length)
            self.flush()
            return length
        self.fixed("B", length)
        self.flush()
        self.line(f"if {length} > 127:")
        self.indented(f"{length}, p = varint_rest(b, p, {length})")
        if of.kind == "string":
            self.indented(f"if {length} > {runtime.STRING_SIZE_MAX + 1}:")
            self.indented(f"    raise too_long({path!r}, {length} - 1)")
        self.line(f"{length} -= 1")
        return length

    def array(self, of: FieldType, target: str, count: str, path: str) -> None:
        """Read `count` elements, which is not negative but not checked yet."""
        size_min = max(1, self.size_min(of))
        needed = count if size_min == 1 else f"{count} * {size_min}"
        self.line(f"if {needed} > e - p:")
        self.indented(f"raise too_many({path!r}, {count}, e - p)")
        self.spend(count, path)
        if self.is_bounded and self.names_something(of):
            self.line(f"names_left -= {count}")
            self.line("if names_left < 0:")
            self.indented(f"raise too_many_names({path!r})")
        vector = _VECTORS.get(of.kind)
        if vector is not None:
            self.line(f"{target} = {self.constant('vector', vector)}(b, p, {count})")
            self.line(f"p += {needed}")
            return
        elements, element, add = self.name("a"), self.name("x"), self.name("add")
        self.line(f"{target} = {elements} = []")
        self.line(f"{add} = {elements}.append")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        if of.struct is not None:
            self.struct(of.struct, element, path)
            self.flush()
        else:
            self.value(of, element, f"an element of {path}", False, self.is_flexible)
        self.line(f"{add}({element})")
        self.depth -= 1

    def names_something(self, of: FieldType) -> bool:
        """Return whether an element is or holds a text or an id."""
        if of.struct is None:
            return of.kind in NAMES
        return any(
            field.type.kind in NAMES and field.versions.covers(self.version)
            for field in of.struct.SCHEMA.fields
        )

    def spend(self, count: str, path: str) -> None:
        """Take `count` from what the whole request may still have."""
        if self.is_bounded:
            self.line(f"left -= {count}")
            self.line("if left < 0:")
            self.indented(f"raise beyond_limit({path!r})")

    def tagged_fields(self, tagged: list[Field], target: str, path: str) -> None:
        """Read the tagged fields that end a struct."""
        count = self.name("n")
        self.fixed("B", count)
        self.flush()
        self.line(f"if {count}:")
        self.depth += 1
        self.spend(count, path)
        if tagged:
            self.known_tags(tagged, target, path, count)
        else:
            self.line(f"{target}.unknown_tags, p = unknown_tags(b, p, e, {count})")
        self.depth -= 1

    def known_tags(self, tagged: list[Field], target: str, path: str, count: str) -> None:
        """Read `count` tagged fields where some are declared."""
        tag, end = self.name("tag"), self.name("q")
        self.line(f"if {count} > 127:")
        self.indented(f"{count}, p = varint_rest(b, p, {count})")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.line(f"{tag}, p, {end} = read_tag(b, p, e)")
        for index, field in enumerate(tagged):
            self.line(f"{'el' if index else ''}if {tag} == {field.tag}:")
            self.depth += 1
            start = self.name("p")
            self.line(f"{start} = p")
            self.field(field, f"{target}.{field.name}", f"{path}.{field.name}", in_tag=True)
            self.flush()
            self.line(f"if p != {end}:")
            self.indented(f"raise tag_size('{path}.{field.name}', {end} - {start}, p - {start})")
            self.depth -= 1
        self.line("else:")
        self.depth += 1
        self.line(f"if {target}.unknown_tags is None:")
        self.indented(f"{target}.unknown_tags = []")
        self.line(f"{target}.unknown_tags.append(({tag}, bytes(b[p:{end}])))")
        self.line(f"p = {end}")
        self.depth -= 2

    def indented(self, text: str) -> None:
        """Add a line one level deeper."""
        self.depth += 1
        self.line(text)
        self.depth -= 1
