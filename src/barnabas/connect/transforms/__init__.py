"""Single-message transforms and predicates, with Kafka's names and behaviour. Pure."""
