"""The partitioner of our producers: Java's, so that a key has one partition, whoever sends it."""

from typing import Final

JAVA_PARTITIONER: Final = {"partitioner": "murmur2_random"}
"""For the configuration of confluent-kafka's Producer, whose own default is CRC-32 of the key."""
