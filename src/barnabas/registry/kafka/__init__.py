"""The registry's connection to a Kafka cluster: the topic, its reader and writer, the election."""
