"""Arrays, maps and structs: made, and looked into."""

from __future__ import annotations

from barnabas.sql.expressions.closures import Evaluate, item_at
from barnabas.sql.expressions.compiling import Compilers, Compiling
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.types import Map


def _array(compiler: Compiling, node: nodes.ArrayConstructor) -> Evaluate:
    compiler.type_of(node)
    items = [compiler.forgiving(item, "array item") for item in compiler.common(node.items)]
    return lambda row: [item(row) for item in items]


def _map(compiler: Compiling, node: nodes.MapConstructor) -> Evaluate:
    compiler.type_of(node)
    keys = compiler.common([key for key, _ in node.entries])
    values = compiler.common([value for _, value in node.entries])
    entries = [
        (compiler.forgiving(key, "map key"), compiler.forgiving(value, "map value"))
        for key, value in zip(keys, values, strict=True)
    ]
    return lambda row: {key(row): value(row) for key, value in entries}


def _struct(compiler: Compiling, node: nodes.StructConstructor) -> Evaluate:
    compiler.type_of(node)
    fields = [
        (name, compiler.forgiving(compiler.compile(value), "struct field"))
        for name, value in node.fields
    ]
    return lambda row: {name: value(row) for name, value in fields}


def _subscript(compiler: Compiling, node: nodes.Subscript) -> Evaluate:
    compiler.type_of(node)
    base, index = compiler.compile(node.base), compiler.compile(node.index)
    if isinstance(compiler.type_of(node.base), Map):
        return lambda row: None if (entries := base(row)) is None else entries.get(index(row))
    return lambda row: None if (items := base(row)) is None else item_at(items, index(row))


def _dereference(compiler: Compiling, node: nodes.Dereference) -> Evaluate:
    compiler.type_of(node)
    base, name = compiler.compile(node.base), node.name
    return lambda row: None if (struct := base(row)) is None else struct.get(name)


COMPILERS: Compilers = {
    nodes.ArrayConstructor: _array,
    nodes.MapConstructor: _map,
    nodes.StructConstructor: _struct,
    nodes.Subscript: _subscript,
    nodes.Dereference: _dereference,
}
