"""The keys of schema validation."""

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.base.errors import ConfigError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.topic import validate_topic_overrides

URL = "confluent.schema.registry.url"
STRATEGY = "confluent.value.subject.name.strategy"


@pytest.mark.parametrize(
    "urls",
    [
        "http://localhost:8081",
        "http://a:1, HTTP://b.c-d/base/path",
        "http://[::1]:8081/",
        "https://localhost:8081",
        "https://a, http://b:1",
        "",
    ],
)
def test_registries(urls: str) -> None:
    NodeConfig.from_properties(standalone_properties(".", overrides={URL: urls}))


@pytest.mark.parametrize(
    "urls",
    [
        "localhost:8081",
        "httpss://localhost:8081",
        "ftp://localhost",
        "https://user:secret@localhost",
        "http://user:secret@localhost",
        "http://localhost:8081?x=y z",
        "http://localhost:8081/a b",
        "http://localhöst",
        "http://",
        "http://a,,http://b",
    ],
)
def test_no_registries(urls: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NodeConfig.from_properties(standalone_properties(".", overrides={URL: urls}))
    assert "secret" not in str(caught.value)


def test_the_password_is_a_secret() -> None:
    overrides = {"confluent.basic.auth.user.info": "user:secret"}
    config = NodeConfig.from_properties(standalone_properties(".", overrides=overrides))
    assert "secret" not in repr(config)


def test_strategies() -> None:
    package = "io.confluent.kafka.serializers.subject."
    for name in ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"):
        validate_topic_overrides({STRATEGY: package + name})
    for text in ("", "TopicNameStrategy", "com.example.MyStrategy"):
        with pytest.raises(ConfigError):
            validate_topic_overrides({STRATEGY: text})
    with pytest.raises(ConfigError):
        validate_topic_overrides({"confluent.value.schema.validation": "yes"})
