"""Files that every schema may import: those of protobuf, googleapis' types, Confluent's.

The first two come as descriptors, with `protobuf` and `googleapis-common-protos`.
"""

import importlib
from functools import cache

from google.protobuf import descriptor_pb2

from barnabas.schemas.protobuf.confluent_files import CONFLUENT_FILES
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
KNOWN_PATHS = _MODULES.keys() | CONFLUENT_FILES.keys()


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
        return parse_file(CONFLUENT_FILES[path])
    return read_descriptor(descriptor_pb2.FileDescriptorProto.FromString(serialized))
