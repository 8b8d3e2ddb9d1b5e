"""Definitions of settings as Kafka's ConfigDef has them, validation, and values from providers."""
