"""APIs of topics, partitions, and their offsets and replicas."""
