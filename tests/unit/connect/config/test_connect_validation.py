"""A connector's configuration is checked whole: common settings, its own, transforms, clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.connect import plugins
from barnabas.connect.allowed_plugins import allow
from barnabas.connect.config.answers import errors_of
from barnabas.connect.config.validation import (
    Given,
    WorkerRules,
    plugin_settings,
    validate_connector,
)
from barnabas.connect.connectors.base import EngineKind
from barnabas.connect.errors.requests import BadRequestError, NotFoundError
from barnabas.schemas.data.errors import ConnectError
from support.connect.herder_world import NEVER, RENAME, SINK, SOURCE

ALONE = WorkerRules()
GOOD = {"name": "c", "connector.class": SOURCE, "topic": "t"}


def validated(settings: Given, rules: WorkerRules = ALONE) -> dict[str, Any]:
    answer = validate_connector(settings, rules)
    assert answer["error_count"] == len(errors_of(answer))
    return {
        (config["definition"] or config["value"])["name"]: config for config in answer["configs"]
    }


def errors(settings: Given, rules: WorkerRules = ALONE) -> list[str]:
    return errors_of(validate_connector(settings, rules))


def test_the_order_is_that_of_the_definitions() -> None:
    answer = validate_connector(GOOD, ALONE)
    assert (answer["name"], answer["error_count"]) == (SOURCE, 0)
    assert answer["groups"] == [
        "Common", "Transforms", "Predicates", "Error Handling", "Topic Creation",
        "Exactly Once Support", "offsets.topic",
    ]  # fmt: skip
    names = [config["definition"]["name"] for config in answer["configs"]]
    assert names[:4] == ["name", "connector.class", "connector.plugin.version", "tasks.max"]
    assert names[-4:] == ["path", "topic", "wanted.tasks", "secret"]


def test_transforms_and_predicates_bring_their_settings() -> None:
    settings: dict[str, str | None] = {
        **GOOD,
        "transforms": "a,b",
        "transforms.a.type": RENAME,
        "transforms.a.size": "x",
        "transforms.b.type": "no.such",
        "transforms.b.negate": "true",
        "predicates": "p",
        "predicates.p.type": NEVER,
    }
    found = validated(settings)
    assert [name for name in found if name.startswith(("transforms.", "predicates."))] == [
        "transforms.a.type", "transforms.a.plugin.version", "transforms.a.field",
        "transforms.a.negate",
        "transforms.a.predicate", "transforms.a.size", "transforms.b.type",
        "transforms.b.plugin.version", "predicates.p.type", "predicates.p.plugin.version",
    ]  # fmt: skip
    assert found["transforms.a.size"]["definition"]["group"] == "Transforms: a"
    assert found["transforms.a.type"]["definition"]["display_name"] == "Transformation type for a"
    assert errors(settings) == [
        'Missing required configuration "transforms.a.field" which has no default value.',
        "Invalid value x for configuration transforms.a.size: Not a number of type INT",
        (
            "Invalid value no.such for configuration transforms.b.type: "
            "Class no.such could not be found."
        ),
        (
            "Config 'transforms.b.negate' was provided but there is no config "
            "'transforms.b.predicate' defining a predicate to be negated."
        ),
    ]


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"name": None}, ["Null value can not be supplied as the configuration value."]),
        ({"transforms": "a,a", "transforms.a.type": RENAME, "transforms.a.field": "f"},
         ["Invalid value [a, a] for configuration transforms: Duplicate alias provided."]),
        ({"value.converter": RENAME},
         [f"Class class {RENAME} does not implement the Converter interface"]),
        ({"errors.tolerance": "some"},
         [("Invalid value some for configuration errors.tolerance: String must be one of: none, "
          "all")]),
    ],
)  # fmt: skip
def test_common_settings_are_checked(changes: dict[str, str | None], messages: list[str]) -> None:
    assert errors({**GOOD, **changes}) == messages


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({}, ["Must configure one of topics or topics.regex"] * 2),
        ({"topics": "a", "topics.regex": "b"},
         ["topics and topics.regex are mutually exclusive options, but both are set."] * 2),
        ({"topics": "a,b", "errors.deadletterqueue.topic.name": "b"},
         [("The DLQ topic 'b' may not be included in the list of topics ('topics=[a, b]') consumed "
          "by the connector")]),
        ({"topics.regex": "b.*", "errors.deadletterqueue.topic.name": "bad"},
         [("The DLQ topic 'bad' may not be matched by the regex for the topics "
          "('topics.regex=b.*') consumed by the connector")]),
        ({"topics.regex": r"\p{L}+", "errors.deadletterqueue.topic.name": "bad"},
         [("The DLQ topic 'bad' may not be matched by the regex for the topics "
          "('topics.regex=\\p{L}+') consumed by the connector")]),
        ({"topics": "a"}, []),
        ({"topics": "a, a"}, ["Configuration 'topics' values must not be duplicated."]),
        ({"topics": ","}, ["Configuration 'topics' values must not be duplicated."]),
        ({"topics": "a,,b"}, ["Configuration 'topics' values must not be empty."]),
    ],
)  # fmt: skip
def test_sinks_need_topics(changes: dict[str, str | None], messages: list[str]) -> None:
    assert errors({"name": "s", "connector.class": SINK, **changes}) == messages


def test_exactly_once_is_checked_in_a_group() -> None:
    required = {**GOOD, "exactly.once.support": "required"}
    assert errors(required) == []
    assert errors(required, WorkerRules("workers")) == [
        "This worker does not have exactly-once source support enabled."
    ]
    assert errors(required, WorkerRules("workers", is_exactly_once=True)) == []
    own = {**GOOD, "transaction.boundary": "connector"}
    assert len(errors(own, WorkerRules("workers"))) == 1
    sink = {"name": "s", "connector.class": SINK, "topics": "a"}
    assert errors(sink, WorkerRules("connect-s")) == [
        "Consumer group for sink connector named s conflicts with Connect worker group connect-s"
    ]


def test_overrides_follow_the_policy_and_hide_secrets() -> None:
    settings: dict[str, str | None] = {
        **GOOD,
        "producer.override.acks": "1",
        "producer.override.sasl.jaas.config": "hush",
    }
    assert "hush" not in str(validate_connector(settings, ALONE))
    assert errors(settings, WorkerRules(policy="Principal")) == [
        (
            "The 'Principal' policy does not allow 'acks' to be overridden in the connector "
            "configuration."
        )
    ]


ICEBERG = {
    "name": "c",
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "topics": "t",
    "iceberg.tables": "db.t",
}
FORMAT = {"name": "c", "connector.class": "barnabas.connect.SparkSource", "topic": "t"}


@pytest.mark.parametrize(
    ("settings", "engines"),
    [
        (GOOD, {"local", "spark", "spark connect"}),
        (ICEBERG, {"spark"}),
        ({**FORMAT, "format": "rate"}, {"spark", "spark connect"}),
        ({**FORMAT, "format": "rate", "stream": "true", "checkpoint.location": "s3:b"}, {"spark"}),
        ({**ICEBERG, "connector.class": "barnabas.connect.SparkSink", "format": "parquet",
          "schema": "id int"}, {"spark", "spark connect"}),
    ],
)  # fmt: skip
def test_what_the_worker_cannot_run_is_refused(settings: Given, engines: set[str]) -> None:
    kinds: tuple[EngineKind, ...] = ("local", "spark", "spark connect")
    for engine in kinds:
        found = errors(settings, WorkerRules(engine=engine))
        assert [text for text in found if "needs Spark: start the worker with" in text] == found
        assert (found == []) is (engine in engines), engine


def test_transactions_of_spark_are_micro_batches() -> None:
    given: Given = {**GOOD, "transaction.boundary": "interval"}
    counts: dict[EngineKind, int] = {"local": 0, "spark": 1}
    for engine, count in counts.items():
        rules = WorkerRules("workers", is_exactly_once=True, engine=engine)
        assert sum("barnabas.connect.engine=local" in one for one in errors(given, rules)) == count


@pytest.mark.parametrize(
    ("name", "text"),
    [("no.such:Class", "Failed to find any class"), ("json:JSONEncoder", "name it in")],
)
def test_the_class_of_a_data_source_is_checked(name: str, text: str) -> None:
    (found,) = errors({**FORMAT, "format": name})
    assert text in found


def test_unknown_classes_and_none() -> None:
    with pytest.raises(BadRequestError, match="contains no connector type"):
        validate_connector({"name": "c"}, ALONE)
    for name in ("no.such", "", "org.apache.kafka.connect.transforms.HoistField$Key"):
        with pytest.raises(BadRequestError, match="Failed to find any class that implements Conn"):
            validate_connector({"connector.class": name}, ALONE)


def test_a_plugin_that_lacks_a_package_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking_plugin.py").write_text("import lacking_package.inner\n")
    monkeypatch.syspath_prepend(tmp_path)
    built_in = plugins.Plugin("io.example.Lacking", "sink", "lacking_plugin:Lacking")
    monkeypatch.setitem(plugins.PLUGINS, "io.example.Lacking", built_in)
    allow(["lacking_plugin"])
    lacks = "needs the Python package lacking_package, which is not installed"
    for name, hint in (("io.example.Lacking", ": pip install"), ("lacking_plugin:Lacking", "$")):
        with pytest.raises(ConnectError, match=f"^{name} {lacks}{hint}"):
            validate_connector({"connector.class": name}, ALONE)
        with pytest.raises(BadRequestError, match=f"^{name} {lacks}{hint}"):
            plugin_settings(name)


def test_plugins_list_their_settings_first() -> None:
    names = [setting["name"] for setting in plugin_settings(SOURCE)]
    assert names[:5] == ["path", "topic", "wanted.tasks", "secret", "name"]
    assert [setting["name"] for setting in plugin_settings(RENAME)] == ["field", "size"]
    with pytest.raises(NotFoundError, match=r"Unknown plugin no\.such\."):
        plugin_settings("no.such")
    with pytest.raises(BadRequestError, match="Invalid plugin class"):
        plugin_settings("org.apache.kafka.connect.mirror.DefaultTopicFilter")
