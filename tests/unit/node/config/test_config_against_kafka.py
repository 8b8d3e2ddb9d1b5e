"""Keys and verdicts against what Apache Kafka 4.3.1 itself says.

`kafka-4.3.1-keys.json` is a dump of its ConfigDefs, `kafka-4.3.1-verdicts.json` what its
KafkaConfig, LogConfig and java.util.Properties answered to the values in it.
"""

import contextlib
import json
import os
from typing import Any

import pytest

from barnabas.base.config.definitions import ConfigKey, Status
from barnabas.base.config.properties import format_properties, parse_properties
from barnabas.base.errors import ConfigError
from barnabas.node.config.definitions import (
    ADDED_TABLES,
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    load_table,
)
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.oauth import CLASSES
from barnabas.node.config.topic import (
    BROKER_SYNONYMS,
    topic_config_values,
    validate_topic_overrides,
)

HERE = os.path.dirname(__file__)
ADDED = {
    "confluent.schema.registry.url",
    "confluent.basic.auth.credentials.source",
    "confluent.basic.auth.user.info",
    "confluent.ssl.endpoint.identification.algorithm",
    "confluent.ssl.key.password",
    "confluent.ssl.keystore.location",
    "confluent.ssl.keystore.password",
    "confluent.ssl.keystore.type",
    "confluent.ssl.truststore.certificates",
    "confluent.ssl.truststore.location",
    "confluent.ssl.truststore.password",
    "confluent.ssl.truststore.type",
    "confluent.key.schema.validation",
    "confluent.key.subject.name.strategy",
    "confluent.value.schema.validation",
    "confluent.value.subject.name.strategy",
    "super.users",
    "barnabas.audit.file",
    "allow.everyone.if.no.acl.found",
    "barnabas.log.format",
    "barnabas.metrics.clients",
    "barnabas.metrics.listener",
    "barnabas.metrics.users",
    "barnabas.tracing.endpoint",
    "barnabas.tracing.headers",
    "barnabas.tracing.sample.ratio",
}
"""Keys that Apache Kafka's definitions lack: its authorizer's, schema validation's, and ours."""


def without_added(keys: dict[str, ConfigKey]) -> dict[str, ConfigKey]:
    return {name: key for name, key in keys.items() if name not in ADDED}


TABLES = {
    "broker": without_added(BROKER_KEYS),
    "topic": without_added(TOPIC_KEYS),
    "group": GROUP_KEYS,
    "client_metrics": CLIENT_METRICS_KEYS,
}
DIFFERENCES = {
    "lower controller names": "names of listeners are one whatever their case",
    "port too big": "no such port can be bound",
    "port -2": "no such port can be bound",
    "log.cleaner.min.cleanable.ratio=0x1p-1": "nobody writes hexadecimal fractions",
    "max.connections.per.ip.overrides=a:-1": "a count is not negative",
    "log.cleaner.threads=0": "threads of the cleaner are none of ours",
    "listener.name.plaintext.max.connections=-1": "a listener's value is checked like the common",
    "listener.name.plaintext.max.connections=x": "a listener's value is checked like the common",
    "group.consumer.assignors=foo": "the consumer protocol's room will judge assignors",
    "remote.storage.enable=true": "Kafka refuses it as well once it knows its own configuration",
}
"""Cases in which our verdict is another on purpose."""


def load(name: str) -> Any:
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)


KEYS = load("kafka-4.3.1-keys.json")
VERDICTS = load("kafka-4.3.1-verdicts.json")


@pytest.mark.parametrize("table", TABLES)
def test_names_are_those_of_kafka(table: str) -> None:
    assert sorted(TABLES[table]) == [key["name"] for key in KEYS[table]]


def test_no_other_keys_are_added() -> None:
    assert {name for table in ADDED_TABLES for name in load_table(table)} == ADDED
    assert (BROKER_KEYS.keys() | TOPIC_KEYS.keys()) >= ADDED


@pytest.mark.parametrize("table", TABLES)
def test_facts_are_those_of_kafka(table: str) -> None:
    def facts(key: ConfigKey) -> dict[str, Any]:
        return {
            "name": key.name,
            "type": key.type.upper(),
            "required": key.required,
            "default": key.default_text,
            "importance": key.importance.upper(),
            "internal": key.internal,
        }

    def scope(key: ConfigKey) -> dict[str, str]:
        return {"scope": key.scope.value} if table == "broker" else {}

    ours = [facts(key) | scope(key) for _, key in sorted(TABLES[table].items())]
    named = ours[0].keys()
    assert ours == [{name: key[name] for name in named} for key in KEYS[table]]


@pytest.mark.parametrize("table", TABLES)
def test_ranges_are_those_of_kafka(table: str) -> None:
    for key in KEYS[table]:
        validator = key["validator"] or ""
        if validator.startswith("[") and "..." in validator and "]:" not in validator:
            low, _, high = validator.strip("[]").partition(",...")
            ours = TABLES[table][key["name"]].check_text
            if not validator.startswith("[1,...,9] or"):
                assert ours == f"{low}..{high.strip(',')}", key["name"]


def test_synonyms_are_those_of_kafka() -> None:
    for key in KEYS["topic"]:
        ours = [f"{name}*{factor}" for name, factor in BROKER_SYNONYMS.get(key["name"], ())]
        assert ours == key["synonyms"], key["name"]


@pytest.mark.parametrize("table", TABLES)
def test_every_default_passes_its_own_check(table: str) -> None:
    for key in TABLES[table].values():
        if key.default_text is not None and "quorum" not in key.name:
            assert key.parse(key.default_text) == key.default


def test_every_key_says_what_it_does() -> None:
    for table in (*TABLES.values(), BROKER_KEYS, TOPIC_KEYS):
        for key in table.values():
            assert key.doc.endswith("."), key.name
            assert len(key.doc) <= 120, key.name


def test_java_classes_are_never_loaded() -> None:
    served = {"authorizer.class.name", "replica.selector.class", *CLASSES}
    for key in BROKER_KEYS.values():
        if key.name.endswith((".class", ".class.name")) and key.name not in served:
            assert key.status is Status.NEVER, key.name


@pytest.mark.parametrize("case", VERDICTS["node"], ids=lambda case: case["name"])
def test_node_verdict(case: dict[str, Any]) -> None:
    values = VERDICTS["base"] | case["values"]
    given = {key: value for key, value in values.items() if value is not None}
    config: NodeConfig | None = None
    with contextlib.suppress(ConfigError):
        config = NodeConfig.from_properties(given)
    if case["name"] in DIFFERENCES:
        assert (config is not None) != case["accepted"], "it is a difference no more"
        return
    assert (config is not None) == case["accepted"]
    if config is None:
        return
    assert len(config.advertised_listeners) == case["advertised"]
    assert len(config.advertised_controller_listeners) == case["advertised_controllers"]
    assert config.inter_broker_listener_name == case["inter_broker"]
    assert config.log_dirs == [*map(os.path.abspath, case["log_dirs"])]
    expected = VERDICTS["base_topic_defaults"] | case.get("topic_defaults", {})
    effective = {key: as_java(value) for key, value in topic_config_values(config, {}).items()}
    assert {key: effective[key] for key in expected} == expected


def as_java(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "NaN" if value != value else str(value)


@pytest.mark.parametrize("case", VERDICTS["topic"], ids=lambda case: case["name"])
def test_topic_verdict(case: dict[str, Any]) -> None:
    try:
        validate_topic_overrides(case["values"])
        accepted = True
    except ConfigError:
        accepted = False
    assert accepted == case["accepted"] or case["name"] in DIFFERENCES


@pytest.mark.parametrize("case", VERDICTS["properties"], ids=lambda case: repr(case["text"]))
def test_properties_are_read_as_java_reads_them(case: dict[str, Any]) -> None:
    if case["values"] is None:
        with pytest.raises(ValueError, match="malformed"):
            parse_properties(case["text"])
    else:
        assert parse_properties(case["text"]) == case["values"]
        assert parse_properties(format_properties(case["values"])) == case["values"]
