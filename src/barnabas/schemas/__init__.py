"""Schemas and data: Avro, JSON Schema and Protobuf, and one data model for values of all three."""
