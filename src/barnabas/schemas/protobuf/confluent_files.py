"""The files under `confluent/` that schemas import, as far as schemas can tell.

The registry's interface fixes names and numbers; nothing of these files is ever printed.
"""

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

CONFLUENT_FILES = {
    "confluent/meta.proto": _meta(),
    "confluent/type/decimal.proto": (
        _TYPE + "Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
    "confluent/type/variant.proto": _TYPE + "Variant { bytes metadata = 1; bytes value = 2; }",
}
