"""The examples in docs/connect work: transforms, converters and quick starts."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.base.config.properties import parse_properties
from barnabas.connect.allowed_plugins import allow
from barnabas.connect.config.providers import ConfigProviders
from barnabas.connect.plugins import PLUGINS, load
from barnabas.connect.record import ConnectRecord
from barnabas.connect.tasks.chain import make_chain
from barnabas.schemas.data.builder import INT64, STRING, optional, struct_of
from barnabas.schemas.data.schema import Struct

DOCS = Path(__file__).parents[3] / "docs" / "connect"
WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE
    )


def test_the_transforms_of_the_page_make_of_the_record_what_it_says() -> None:
    chain = make_chain(parse_properties(blocks("transforms.md", "properties")[0]), WORKER)
    given, expected = (json.loads(text) for text in blocks("transforms.md", "json"))
    row = struct_of({"id": INT64, "seen": INT64, "secret": STRING}, optional=True)
    envelope = struct_of(
        {"before": row, "after": row, "op": STRING, "source": optional(STRING)}, name="a.Envelope"
    )
    value = Struct.of(envelope, {"after": Struct.of(row, given), "op": "c"})
    record = ConnectRecord(topic="srv.public.stations", value_schema=envelope, value=value)
    for step in chain.stages:
        passed = step.apply(record)
        assert passed is not None
        record = passed
    assert record.topic == "stations"
    data = chain.value.from_connect(record.topic, record.value_schema, record.value)
    assert data is not None
    assert json.loads(data) == expected


def test_the_page_names_all_transforms() -> None:
    text = (DOCS / "transforms.md").read_text()
    for plugin in PLUGINS.values():
        if plugin.kind in ("transformation", "predicate"):
            name = plugin.class_name.removesuffix("$Key").removesuffix("$Value")
            kafka = "org.apache.kafka.connect.transforms."
            shown = name.rpartition(".")[2] if name.startswith(kafka) else name
            assert f"`{shown}`" in text, plugin.class_name


def test_the_pages_transform_of_ones_own_works(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_transforms")
    exec(blocks("transforms.md", "python")[0], module.__dict__)
    monkeypatch.setitem(sys.modules, "own_transforms", module)
    allow(["own_transforms"])
    settings = {
        "transforms": "s",
        "transforms.s.type": "own_transforms:Suffix",
        "transforms.s.suffix": "-x",
    }
    [step] = make_chain(settings, WORKER).stages
    found = step.apply(ConnectRecord(topic="t"))
    assert found is not None
    assert found.topic == "t-x"


def test_the_converters_of_the_page_can_be_made() -> None:
    first, second, secured, third = (
        parse_properties(text) for text in blocks("converters.md", "properties")
    )
    make_chain({}, first)
    make_chain({}, {**first, **second})
    known = load("io.confluent.connect.avro.AvroConverter").definition.settings
    assert {name.removeprefix("value.converter.") for name in secured} <= known.keys()
    text = (DOCS / "converters.md").read_text()
    for plugin in PLUGINS.values():
        if plugin.kind == "converter" and ".converters." not in plugin.class_name:
            assert f"`{plugin.class_name}`" in text
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONNECT_PASSWORD", "secret")
        third.pop("config.providers.file.param.allowed.paths")
        providers = ConfigProviders.of_worker(third)
        assert providers.resolve({"a": "${env:CONNECT_PASSWORD}"}).settings == {"a": "secret"}
    for name in re.findall(r"`(io\.[\w.]+Converter)`", text):
        assert load(name)


def created(page: str) -> list[dict[str, str]]:
    """Return the configurations that a page's quick start gives to `barnabas connect create`."""
    found = []
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("barnabas connect create "):
                name, *pairs = shlex.split(line)[3:]
                found.append({"name": name, **dict(pair.split("=", 1) for pair in pairs)})
    return found


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("http.md", ["orders-to-shop", "tickets"]),
        ("jdbc.md", ["shop", "shop-copy"]),
        ("lakes.md", ["sales-to-delta"]),
        ("distributed.md", ["beats"]),
    ],
)
def test_connectors_of_quick_starts_have_valid_settings(page: str, names: list[str]) -> None:
    found = created(page)
    assert [config["name"] for config in found] == names
    for config in found:
        definition = load(config["connector.class"])().definition
        own = {key for key in config if not key.startswith(("key.", "value.", "source.cluster."))}
        own -= {"target.cluster.bootstrap.servers"}
        assert own <= {*definition.settings, "name", "topics", "connector.class"}
        values = definition.validate(config)
        assert {key: value.errors for key, value in values.items() if value.errors} == {}
