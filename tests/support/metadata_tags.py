"""Tags in a schema's metadata, as confluent-kafka's registry client knows them."""

import pytest
from confluent_kafka.schema_registry import MetadataTags


def _can_hash_tags() -> bool:
    try:
        hash(MetadataTags({"**.ssn": ["PII"]}))
    except TypeError:
        return False
    return True


needs_tags = pytest.mark.skipif(
    not _can_hash_tags(), reason="this confluent-kafka (2.16.0) cannot hash a schema with tags"
)
