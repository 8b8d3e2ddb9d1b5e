"""The schema registry: Confluent's REST interface over `_schemas` of any Kafka cluster."""
