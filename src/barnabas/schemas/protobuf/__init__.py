"""The PROTOBUF format: parser of .proto texts, canonical text, names, rules and compatibility."""

from barnabas.schemas.protobuf.schema import ProtobufFormat, ProtobufSchema

__all__ = ["ProtobufFormat", "ProtobufSchema"]
