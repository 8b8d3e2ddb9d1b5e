"""Connect's data to bytes of Avro, JSON Schema, Protobuf and JSON, and back."""
