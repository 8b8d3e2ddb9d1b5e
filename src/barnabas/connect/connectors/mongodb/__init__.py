"""MongoDB's change streams and collections, with the settings of MongoDB's own Kafka connector."""
