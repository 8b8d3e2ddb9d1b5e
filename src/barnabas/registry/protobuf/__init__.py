"""The PROTOBUF format: parser of .proto texts, canonical text, names, rules and compatibility."""

from barnabas.registry.protobuf.schema import ProtobufFormat, ProtobufSchema

__all__ = ["ProtobufFormat", "ProtobufSchema"]
