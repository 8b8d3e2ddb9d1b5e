"""The commands of `barnabas connect`, against any worker with Kafka Connect's REST interface."""
