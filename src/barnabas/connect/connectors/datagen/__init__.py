"""Records that are made up, after an Avro schema or a quickstart: Confluent's Datagen connector."""
