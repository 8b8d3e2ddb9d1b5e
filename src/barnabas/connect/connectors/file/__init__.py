"""Lines of a file as records, and records as lines of a file: Kafka's FileStream connectors."""
