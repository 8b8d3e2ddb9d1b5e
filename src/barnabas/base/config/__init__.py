"""Configuration as Kafka has it: property names, types, defaults, validation and scopes."""
