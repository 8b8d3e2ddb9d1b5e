"""Files that every schema may import: those of protobuf, googleapis' types, Confluent's."""

import importlib
import importlib.resources
from functools import cache

from google.protobuf import descriptor_pb2

from barnabas.registry.protobuf.descriptor_reader import read_descriptor
from barnabas.registry.protobuf.nodes import File
from barnabas.registry.protobuf.parser import parse_file

_OF_PROTOBUF = frozenset(
    [
        "any",
        "api",
        "descriptor",
        "duration",
        "empty",
        "field_mask",
        "source_context",
        "struct",
        "timestamp",
        "type",
        "wrappers",
    ]
)
_OF_GOOGLE = frozenset(
    [
        "calendar_period",
        "color",
        "date",
        "datetime",
        "dayofweek",
        "decimal",
        "expr",
        "fraction",
        "interval",
        "latlng",
        "localized_text",
        "money",
        "month",
        "phone_number",
        "postal_address",
        "quaternion",
        "timeofday",
    ]
)
KNOWN_PATHS = frozenset(
    [f"google/protobuf/{name}.proto" for name in _OF_PROTOBUF]
    + [f"google/type/{name}.proto" for name in _OF_GOOGLE]
    + ["confluent/meta.proto", "confluent/type/decimal.proto", "confluent/type/variant.proto"]
)


def known_file(path: str) -> File | None:
    """The built-in file of a path, None if there is none."""
    return _read(path) if path in KNOWN_PATHS else None


@cache
def library_descriptor(path: str) -> bytes | None:
    """The serialized descriptor of a file that comes with the protobuf library."""
    folder, _, name = path.removesuffix(".proto").rpartition("/")
    if folder != "google/protobuf" or name not in _OF_PROTOBUF:
        return None
    module = importlib.import_module(f"google.protobuf.{name}_pb2")
    serialized: bytes = module.DESCRIPTOR.serialized_pb
    return serialized


@cache
def _read(path: str) -> File:
    serialized = library_descriptor(path)
    if serialized is not None:
        return read_descriptor(descriptor_pb2.FileDescriptorProto.FromString(serialized))
    resource = importlib.resources.files(__package__).joinpath("known", *path.split("/"))
    return parse_file(resource.read_text("utf-8"))
