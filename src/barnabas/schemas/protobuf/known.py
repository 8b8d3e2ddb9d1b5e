"""Files that every schema may import: those of protobuf, googleapis' types, Confluent's.

The first two come as descriptors, with `protobuf` and `googleapis-common-protos`. Those under
`confluent/` are here, as far as schemas can tell: the registry's interface fixes names and numbers,
and nothing of these files is ever printed.
"""

import importlib
from functools import cache

from google.protobuf import descriptor_pb2

from barnabas.schemas.protobuf.descriptor_reader import read_descriptor
from barnabas.schemas.protobuf.nodes import File
from barnabas.schemas.protobuf.parser import parse_file

_NAMES = {
    "google/protobuf": (
        "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct",
        "timestamp", "type", "wrappers",
    ),
    "google/type": (
        "calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction",
        "interval", "latlng", "localized_text", "money", "month", "phone_number", "postal_address",
        "quaternion", "timeofday",
    ),
}  # fmt: skip
_MODULES = {
    f"{folder}/{name}.proto": f"{folder.replace('/', '.')}.{name}_pb2"
    for folder, names in _NAMES.items()
    for name in names
}
_META_NUMBER = 1088
_METAS = {
    "file_meta": "FileOptions",
    "message_meta": "MessageOptions",
    "field_meta": "FieldOptions",
    "enum_meta": "EnumOptions",
    "enum_value_meta": "EnumValueOptions",
}


def _meta() -> str:
    """Extensions of options, which carry tags and parameters."""
    extensions = [
        f"extend google.protobuf.{options} {{ Meta {name} = {_META_NUMBER}; }}"
        for name, options in _METAS.items()
    ]
    return "\n".join(
        [
            'syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";',
            "message Meta { string doc = 1; map<string, string> params = 2;",
            "  repeated string tags = 3; repeated Rule rules = 4; }",
            "message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }",
            *extensions,
        ]
    )


_TYPE = 'syntax = "proto3"; package confluent.type; message '

_CONFLUENT_FILES = {
    "confluent/meta.proto": _meta(),
    "confluent/type/decimal.proto": (
        _TYPE + "Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
    "confluent/type/variant.proto": _TYPE + "Variant { bytes metadata = 1; bytes value = 2; }",
}
KNOWN_PATHS = _MODULES.keys() | _CONFLUENT_FILES.keys()


def known_file(path: str) -> File | None:
    """The built-in file of a path, or None."""
    return _read(path) if path in KNOWN_PATHS else None


@cache
def library_descriptor(path: str) -> bytes | None:
    """The serialized descriptor of a file that comes with a library."""
    module = _MODULES.get(path)
    if module is None:
        return None
    serialized: bytes = importlib.import_module(module).DESCRIPTOR.serialized_pb
    return serialized


@cache
def _read(path: str) -> File:
    serialized = library_descriptor(path)
    if serialized is None:
        return parse_file(_CONFLUENT_FILES[path])
    return read_descriptor(descriptor_pb2.FileDescriptorProto.FromString(serialized))
