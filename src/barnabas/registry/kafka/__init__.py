"""What joins the registry to a Kafka cluster: the topic, its reader and writer, the election."""
