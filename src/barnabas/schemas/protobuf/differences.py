"""The kinds of changes between two files, which of them break readers, and their descriptions."""

from dataclasses import dataclass

from barnabas.schemas.schema import Incompatibility

_COMPATIBLE = frozenset(
    [
        "MESSAGE_ADDED",
        "MESSAGE_MOVED",
        "ENUM_ADDED",
        "ENUM_REMOVED",
        "ENUM_CONST_ADDED",
        "ENUM_CONST_CHANGED",
        "ENUM_CONST_REMOVED",
        "FIELD_ADDED",
        "FIELD_REMOVED",
        "FIELD_NAME_CHANGED",
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        "ONEOF_ADDED",
        "ONEOF_REMOVED",
        "ONEOF_FIELD_ADDED",
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
    ]
)
_DESCRIPTIONS = {
    "PACKAGE_CHANGED": "the two schemas have different packages",
    "MESSAGE_REMOVED": "the new schema lacks a message of the old one, {path}",
    "FIELD_KIND_CHANGED": (
        "the field {path} changes between a scalar, a message, a group and a map"
    ),
    "FIELD_SCALAR_KIND_CHANGED": "the scalar field {path} changes to a type of another encoding",
    "FIELD_NAMED_TYPE_CHANGED": "the field {path} changes to another message",
    "FIELD_NUMERIC_LABEL_CHANGED": "the label of the numeric field {path} changes",
    "REQUIRED_FIELD_ADDED": "the new schema has a required field {path} that the old one lacks",
    "REQUIRED_FIELD_REMOVED": "the new schema lacks the required field {path} of the old one",
    "ONEOF_FIELD_REMOVED": "the new schema lacks a field of a oneof of the old one, {path}",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "several fields that were outside a oneof in the old schema are in {path} in the new one"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "the oneof {path} has a field in the new schema that stood outside of it in the old one"
    ),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A change at a place of the new file: `#/Message/Nested/number of the field`."""

    kind: str
    path: str

    @property
    def is_compatible(self) -> bool:
        return self.kind in _COMPATIBLE

    def incompatibility(self) -> Incompatibility:
        description = _DESCRIPTIONS.get(self.kind, "").format(path=self.path)
        return Incompatibility(self.kind, self.path, description)
