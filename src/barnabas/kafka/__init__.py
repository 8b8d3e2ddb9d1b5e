"""Code that all clients of Kafka clusters share."""
