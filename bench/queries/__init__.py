"""SQL over streams beside Kafka Streams: the same jobs over the same topics of one broker."""
