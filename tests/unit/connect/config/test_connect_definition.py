"""Settings are read, checked and shown as Kafka's ConfigDef does (texts of Kafka 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.connect.config import validators
from barnabas.connect.config.answers import errors_of, merged, validation_json
from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Validator,
    Width,
)
from barnabas.connect.config.values import Password, parse_value, show_value
from barnabas.schemas.data.errors import ConfigError


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.STRING, " a b\t", "a b"),
        (ConfigType.INT, "+5", 5),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, " 9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1.5e3", 1500.0),
        (ConfigType.LIST, "", []),
        (ConfigType.LIST, " a , b,,c", ["a", "b", "", "c"]),
        (ConfigType.PASSWORD, " secret ", Password("secret")),
        (
            ConfigType.CLASS,
            "JdbcSource",
            "io.confluent.connect.jdbc.JdbcSourceConnector",
        ),
        (ConfigType.INT, None, None),
        (ConfigType.INT, 7, 7),
        (ConfigType.LIST, ["x"], ["x"]),
        (ConfigType.DOUBLE, 1, 1.0),
    ],
)
def test_texts_are_read_by_type(type_: ConfigType, text: Any, value: Any) -> None:
    assert parse_value("x", text, type_) == value


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        (ConfigType.INT, "abc", "Not a number of type INT"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "1_0", "Not a number of type INT"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
        (ConfigType.LONG, "", "Not a number of type LONG"),
        (ConfigType.DOUBLE, "x", "Not a number of type DOUBLE"),
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.CLASS, "no.such.Thing", "Class no.such.Thing could not be found."),
    ],
)
def test_wrong_texts_are_refused(type_: ConfigType, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_value("x", text, type_)
    assert str(raised.value) == f"Invalid value {text} for configuration x: {message}"


@pytest.mark.parametrize(
    ("validator", "value", "message"),
    [
        (
            validators.at_least(1),
            0,
            "Invalid value 0 for configuration x: Value must be at least 1",
        ),
        (
            validators.at_least(1),
            None,
            "Invalid value null for configuration x: Value must be non-null",
        ),
        (
            validators.between(0, 5),
            6,
            "Invalid value 6 for configuration x: Value must be no more than 5",
        ),
        (
            validators.one_of("a", "b"),
            "c",
            "Invalid value c for configuration x: String must be one of: a, b",
        ),
        (
            validators.one_of_any_case("poll", "interval"),
            "x",
            (
                "Invalid value x for configuration x: String must be one of (case insensitive): "
                "INTERVAL, POLL"
            ),
        ),
        (
            validators.list_of("a"),
            ["b"],
            "Invalid value b for configuration x: String must be one of: a",
        ),
        (
            validators.one_of_any_case("poll", "connector", "interval"),
            "x",
            # As Java's sets have them.
            (
                "Invalid value x for configuration x: String must be one of (case insensitive): "
                "INTERVAL, POLL, CONNECTOR"
            ),
        ),
        (validators.list_of(), ["b", "b"], "Configuration 'x' values must not be duplicated."),
        (validators.list_of(), None, "Configuration 'x' values must not be null."),
        (validators.list_of(), [""], "Configuration 'x' values must not be empty."),
        (
            validators.list_of(is_empty_allowed=False),
            [],
            "Configuration 'x' must not be empty. Valid values include: any non-empty value",
        ),
        (
            validators.non_null,
            None,
            "Invalid value null for configuration x: entry must be non null",
        ),
        (validators.non_empty, "", "Invalid value  for configuration x: String must be non-empty"),
        (
            validators.non_empty_without_control_characters,
            "a\nb",
            (
                "Invalid value a\nb for configuration x: String may not contain control sequences "
                "but had the following ASCII chars: 10"
            ),
        ),
        (
            validators.all_of(validators.non_null, validators.at_least(3)),
            2,
            "Invalid value 2 for configuration x: Value must be at least 3",
        ),
    ],
)
def test_validators_refuse(validator: Validator, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        validator("x", value)
    assert str(raised.value) == message


DEFINITION = Definition(
    (
        Setting("must", ConfigType.STRING, importance=Importance.HIGH, group="G", order=1),
        Setting("size", ConfigType.INT, "10", validator=validators.at_least(1), group="G", order=2),
        Setting("password", ConfigType.PASSWORD, None, width=Width.LONG),
        Setting(
            "color",
            ConfigType.STRING,
            "red",
            dependents=("size",),
            recommender=lambda _name, _parsed: ["red", "blue"],
            visible=lambda _name, parsed: parsed["size"] == 10,
            display_name="Color",
            doc="Of the paint.",
        ),
    )
)


def test_defaults_are_parsed_and_missing_settings_named() -> None:
    assert DEFINITION.parse({"must": "x"})["size"] == 10
    with pytest.raises(ConfigError) as raised:
        DEFINITION.parse({})
    assert str(raised.value) == (
        'Missing required configuration "must" which has no default value.'
    )


def test_validation_tells_all_errors_and_hides_secrets() -> None:
    given = {"size": "x", "password": "p4ss"}
    answer = validation_json("C", DEFINITION, DEFINITION.validate(given))
    assert errors_of(answer) == [
        'Missing required configuration "must" which has no default value.',
        "Invalid value x for configuration size: Not a number of type INT",
        "Invalid value null for configuration size: Value must be non-null",
    ]
    assert (answer["name"], answer["error_count"], answer["groups"]) == ("C", 3, ["G"])
    assert answer["configs"][2]["value"]["value"] == "[hidden]"
    assert "p4ss" not in str(answer)
    assert answer["configs"][3] == {
        "definition": {
            "name": "color",
            "type": "STRING",
            "required": False,
            "default_value": "red",
            "importance": "MEDIUM",
            "documentation": "Of the paint.",
            "group": None,
            "order_in_group": -1,
            "width": "NONE",
            "display_name": "Color",
            "dependents": ["size"],
        },
        "value": {
            "name": "color",
            "value": "red",
            "recommended_values": ["red", "blue"],
            "errors": [],
            "visible": False,
        },
    }
    twice = merged("C", [answer, None, answer])
    assert (twice["error_count"], len(twice["configs"])) == (6, 8)


def test_embedded_settings_have_prefix_group_and_order() -> None:
    outer = Definition().embed("in.", "Inner", 3, DEFINITION)
    assert [(s.name, s.group, s.order) for s in outer.settings.values()] == [
        ("in.color", "Inner", 3),
        ("in.password", "Inner", 4),
        ("in.must", "Inner: G", 5),
        ("in.size", "Inner: G", 6),
    ]
    values = outer.validate({"in.size": "0", "in.must": "a"})
    assert values["in.size"].errors == [
        "Invalid value 0 for configuration size: Value must be at least 1"
    ]
    assert values["in.color"].visible is False
    assert outer.settings["in.color"].dependents == ("in.size",)


def test_undefined_dependents_are_told() -> None:
    definition = Definition((Setting("a", ConfigType.INT, 1, dependents=("b",)),))
    assert definition.validate({})["b"].errors == [
        "b is referred in the dependents, but not defined."
    ]
    with pytest.raises(ConfigError, match="not defined: b"):
        definition.parse({})
    with pytest.raises(ConfigError, match="Configuration a is defined twice"):
        definition.plus(definition.settings.values())


def test_values_are_shown_as_java_does() -> None:
    shown = [show_value(value) for value in (None, True, 5, ["a", "b"], Password("x"), "s")]
    assert shown == [None, "true", "5", "a,b", "[hidden]", "s"]
