"""What every client of any Kafka cluster shares."""
