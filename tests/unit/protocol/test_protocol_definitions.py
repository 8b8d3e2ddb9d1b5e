"""Our declarations against Kafka's definitions, field by field and in both directions.

The definitions are Kafka 4.3's JSON files, in a directory beside the repository. Without them these
tests are skipped.
"""

import importlib
import inspect
import json
import keyword
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol import messages
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.schema import (
    EMPTY,
    NO_VERSIONS,
    Field,
    FieldType,
    Message,
    Struct,
    parse_versions,
)

DEFINITIONS = Path(__file__).parents[4] / "shared" / "protocol"
ROOMS = {
    "clients",
    "group-coordinator",
    "metadata",
    "raft",
    "share-coordinator",
    "storage",
    "transaction-coordinator",
}
REMOVED = {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"}
"""APIs of which Kafka 4 keeps the number and no version."""

pytestmark = pytest.mark.skipif(
    not DEFINITIONS.is_dir(), reason=f"Kafka's message definitions are not at {DEFINITIONS}"
)


def load_definitions() -> dict[str, dict[str, Any]]:
    found = {}
    for path in sorted(DEFINITIONS.glob("*/*.json")):
        definition = json.loads(re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE))
        found[definition["name"]] = definition
    return found


def load_messages() -> dict[str, type[Message]]:
    found: dict[str, type[Message]] = {}
    for module in pkgutil.iter_modules(messages.__path__):
        loaded = importlib.import_module(f"{messages.__name__}.{module.name}")
        for name, member in vars(loaded).items():
            if inspect.isclass(member) and issubclass(member, Message) and member is not Message:
                assert name not in found, f"{name} is declared twice"
                found[name] = member
    return found


KAFKA = load_definitions()
OURS = load_messages()
LIVE = {name: text for name, text in KAFKA.items() if text["validVersions"] != "none"}


def test_all_rooms_are_present() -> None:
    assert {path.name for path in DEFINITIONS.iterdir() if path.is_dir()} == ROOMS
    assert len(LIVE) == 272


def test_every_message_is_declared_and_no_other() -> None:
    assert OURS.keys() == LIVE.keys()
    removed = {name + kind for name in REMOVED for kind in ("Request", "Response")}
    assert KAFKA.keys() - LIVE.keys() == removed


@pytest.mark.parametrize("name", sorted(LIVE))
def test_message(name: str) -> None:
    kafka, ours = LIVE[name], OURS[name].SCHEMA
    assert ours.versions == parse_versions(kafka["validVersions"])
    assert ours.flexible == parse_versions(kafka["flexibleVersions"])
    assert ours.api_key == kafka.get("apiKey")
    assert ours.listeners == tuple(kafka.get("listeners", ()))
    assert ours.latest_version_unstable == kafka.get("latestVersionUnstable", False)
    unknown = kafka.keys() - {
        *("type", "name", "validVersions", "flexibleVersions", "apiKey", "listeners"),
        *("latestVersionUnstable", "fields", "commonStructs"),
    }
    assert not unknown, "a key whose meaning we do not know"
    common = {text["name"]: text["fields"] for text in kafka.get("commonStructs", ())}
    used = compare_struct(name, name, kafka["fields"], OURS[name], common)
    assert used == common.keys(), "a common struct that no field uses"


def compare_struct(
    message: str, struct: str, kafka: list[dict[str, Any]], ours: type[Struct], common: Any
) -> set[str]:
    """Compare all fields, and those of inner structs. Returns the common structs met."""
    api = re.sub("(Request|Response|Value)$", "", message)
    assert ours.__name__ in (struct, message + struct, api + struct)
    assert [field.name for field in ours.SCHEMA.fields] == [snake(text["name"]) for text in kafka]
    assert ours.__slots__ == tuple(field.name for field in ours.SCHEMA.fields)
    used: set[str] = set()
    for text, field in zip(kafka, ours.SCHEMA.fields, strict=True):
        compare_field(text, field)
        inner = field.type.struct or (field.type.element and field.type.element.struct)
        if inner:
            name = text["type"].removeprefix("[]")
            fields = text.get("fields") or common[name]
            used |= {name} & common.keys()
            used |= compare_struct(message, name, fields, inner, common)
    return used


def compare_field(kafka: dict[str, Any], ours: Field) -> None:
    where = kafka["name"]
    assert kind(ours.type) == kind_of(kafka["type"]), where
    assert ours.versions == parse_versions(kafka.get("versions", kafka.get("taggedVersions"))), (
        where
    )
    assert ours.nullable == parse_versions(kafka.get("nullableVersions")), where
    assert ours.tagged == parse_versions(kafka.get("taggedVersions")), where
    assert ours.tag == kafka.get("tag", -1), where
    assert ours.ignorable == kafka.get("ignorable", False), where
    assert ours.map_key == kafka.get("mapKey", False), where
    override = kafka.get("flexibleVersions")
    assert ours.flexible == (None if override is None else parse_versions(override)), where
    expected = default_of(kafka)
    assert ours.default == expected, where
    assert type(ours.default) is type(expected), where
    unknown = kafka.keys() - {
        *("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "ignorable"),
        *("mapKey", "default", "fields", "flexibleVersions", "about", "entityType", "zeroCopy"),
    }
    assert not unknown, "a key whose meaning we do not know"


def kind(of: FieldType) -> str:
    if of.element is not None:
        return "[]" + kind(of.element)
    return of.kind


def kind_of(text: str) -> str:
    element = text.removeprefix("[]")
    return text if element[0].islower() else text.replace(element, "struct")


def default_of(kafka: dict[str, Any]) -> object:
    """The default as Kafka's generator reads it: a JSON null counts as no default at all."""
    of, given = kafka["type"], kafka.get("default")
    text = "" if given is None else str(given)
    if text == "null":
        return None
    if of.startswith("[]") or of[0].isupper():
        assert text == ""
        return EMPTY
    if of == "records":
        return None if "nullableVersions" in kafka else b""
    plain: dict[str, object] = {"string": text, "bytes": b"", "uuid": ZERO_UUID, "float64": 0.0}
    if of in plain:
        assert of == "string" or text == ""
        return plain[of]
    if of == "bool":
        assert text.lower() in ("", "true", "false")
        return text.lower() == "true"
    return int(text or "0", 16 if text.startswith("0x") else 10)


def snake(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return words + "_" if keyword.iskeyword(words) else words


def test_apis() -> None:
    requests = {text["apiKey"]: text for text in LIVE.values() if text["type"] == "request"}
    assert APIS.keys() == requests.keys() == {int(key) for key in ApiKey}
    for number, text in requests.items():
        api, base = APIS[number], text["name"].removesuffix("Request")
        assert api.key.name == snake(base).upper()
        assert (api.request, api.response) == (OURS[base + "Request"], OURS[base + "Response"])
        assert (api.min_version, api.max_version) == parse_versions(text["validVersions"])
        flexible = parse_versions(text["flexibleVersions"])
        assert (flexible == NO_VERSIONS) == (api.flexible_from > api.max_version)
        assert api.listeners == tuple(text["listeners"])
        assert api.latest_version_unstable == text.get("latestVersionUnstable", False)
        assert api.request.__module__ == api.response.__module__
