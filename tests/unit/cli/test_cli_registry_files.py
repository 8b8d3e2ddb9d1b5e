"""Files of schemas: their types, references and subjects, and what a registry says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.errors import CliError
from barnabas.cli.registry import settings
from barnabas.cli.registry.check import SchemaFile, find_files
from barnabas.cli.registry.files import pretty, read_reference, schema_body, type_of_file
from barnabas.cli.registry.schema import Reason, read_reasons
from barnabas.cli.registry.settings import read_settings
from barnabas.registry.store.encoding import CONFIG_FIELDS
from barnabas.registry.store.records import MODES


@pytest.mark.parametrize(
    ("text", "name", "subject", "version"),
    [
        ("money.proto=money:3", "money.proto", "money", 3),
        ("money.proto=money:latest", "money.proto", "money", -1),
        ("money.proto=money", "money.proto", "money", -1),
        ("a.B=:.shop:money:2", "a.B", ":.shop:money", 2),
        ("a.B=:.shop:money", "a.B", ":.shop:money", -1),
    ],
)
def test_references(text: str, name: str, subject: str, version: int) -> None:
    assert read_reference(text) == {"name": name, "subject": subject, "version": version}


@pytest.mark.parametrize("text", ["money", "=money:1", "a=", "a=:1"])
def test_what_is_no_reference_is_said(text: str) -> None:
    with pytest.raises(CliError, match="NAME=SUBJECT:VERSION"):
        read_reference(text)


@pytest.mark.parametrize(
    ("path", "given", "expected"),
    [
        ("a.avsc", None, "AVRO"),
        ("a.JSON", None, "JSON"),
        ("a.b.proto", None, "PROTOBUF"),
        ("a.txt", "json", "JSON"),
        ("-", "AVRO", "AVRO"),
    ],
)
def test_types(path: str, given: str | None, expected: str) -> None:
    assert type_of_file(path, given) == expected


def test_a_file_without_a_type_is_named() -> None:
    with pytest.raises(CliError, match=r"a\.txt: its name does not end in \.avsc, \.json, \.proto"):
        type_of_file("a.txt")


def test_bodies_and_texts_for_people() -> None:
    assert schema_body("JSON", "{}") == {"schemaType": "JSON", "schema": "{}"}
    assert schema_body("AVRO", '"a.B"', ["a.B=b:1"])["references"][0]["version"] == 1
    assert pretty("AVRO", '{"type":"é"}') == '{\n  "type": "é"\n}'
    assert pretty("PROTOBUF", 'syntax = "proto3";\n') == 'syntax = "proto3";'
    assert pretty(None, "long") == "long"


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_name_of_a_file_is_its_subject(tmp_path: Path) -> None:
    names = ["b.avsc", "a/shop%2Forders.proto", "notes.md", ".git/x.json", ".hidden.avsc"]
    write(tmp_path, dict.fromkeys(names, ""))
    assert find_files(str(tmp_path)) == [
        SchemaFile("a/shop%2Forders.proto", "shop/orders", "PROTOBUF"),
        SchemaFile("b.avsc", "b", "AVRO"),
    ]


def test_the_mapping_says_otherwise(tmp_path: Path) -> None:
    mapping = """
    ["a/order.proto"]
    subject = ":.shop:orders"
    references = ["money.proto=money:1"]
    ["package.json"]
    skip = true
    ["user.txt"]
    type = "AVRO"
    """
    names = ["a/order.proto", "package.json", "user.txt"]
    write(tmp_path, {"schemas.toml": mapping, **dict.fromkeys(names, "")})
    assert find_files(str(tmp_path)) == [
        SchemaFile("a/order.proto", ":.shop:orders", "PROTOBUF", ("money.proto=money:1",)),
        SchemaFile("user.txt", "user", "AVRO"),
    ]


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("[", r"schemas\.toml: "),
        ("a = 1", "a: is not a table"),
        ('["a.avsc"]\nsubjet = "x"', "subjet is not one of subject, type, references, skip"),
        ('["a.avsc"]\nsubject = 1', "subject is not a text"),
        ('["a.avsc"]\nreferences = "x"', "references is not a list of texts"),
        ('["a.avsc"]\nreferences = [1]', "references is not a list of texts"),
        ('["a.avsc"]\nskip = "yes"', "skip is not true or false"),
        ('["a.avsc"]\ntype = "XML"', "type is not one of AVRO, JSON, PROTOBUF"),
        ('["c.avsc"]\nsubject = "x"', r"there is no file c\.avsc"),
        ('["a.avsc"]\nsubject = "b"', r"a\.avsc and b\.avsc are both of subject b"),
    ],
)
def test_a_wrong_mapping_is_said(tmp_path: Path, mapping: str, words: str) -> None:
    write(tmp_path, {"schemas.toml": mapping, "a.avsc": "", "b.avsc": ""})
    with pytest.raises(CliError, match=words):
        find_files(str(tmp_path))


def test_reasons_of_a_registry() -> None:
    messages = [
        "{errorType:'NO_DEFAULT', description:'Field 'n' at '/f/1' has none', additionalInfo:'n'}",
        '{errorType:"TYPE_CHANGED", description:"at \'#/properties/a\'"}',
        "{oldSchemaVersion: 3}",
        '{oldSchema: \'{"type":"long"}\'}',
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]
    first, second = read_reasons(messages)
    assert first == Reason("Field 'n' at '/f/1' has none", "NO_DEFAULT", "n", 3)
    assert second.line() == "TYPE_CHANGED: at '#/properties/a' (version 3)"
    assert read_reasons(["not a\n schema"])[0].line() == "not a schema"


def test_settings() -> None:
    rules = '{"domainRules": []}'
    pairs = ["compatibilityLevel=full", "normalize=true", "alias=null", f"defaultRuleSet={rules}"]
    assert read_settings([*pairs, "compatibilityGroup=1"]) == {
        "compatibility": "full",
        "normalize": True,
        "alias": None,
        "defaultRuleSet": {"domainRules": []},
        "compatibilityGroup": "1",
    }
    with pytest.raises(CliError, match="compatibilty is not a setting"):
        read_settings(["compatibilty=NONE"])


def test_the_settings_and_modes_are_the_registrys() -> None:
    ours = {"compatibilityLevel" if key == "compatibility" else key for key in settings.KEYS}
    assert ours == {*CONFIG_FIELDS.values()} - {"subject", "aliasForDeks"}
    assert settings.MODES == MODES
