"""Connectors: rows a second, latency and memory, beside Kafka's worker and plain drivers."""
