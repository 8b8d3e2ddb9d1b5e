"""The table of formats and its memory."""

import json
import subprocess
import sys

import pytest

from barnabas.schemas import formats as formats_module
from barnabas.schemas.avro.schema import AvroFormat
from barnabas.schemas.formats import FormatTable, all_formats
from barnabas.schemas.schema import SchemaFault

TEXTS = {
    "AVRO": '{"type": "record", "name": "Charge", "fields": []}',
    "JSON": '{"title": "Charge", "type": "object"}',
    "PROTOBUF": 'syntax = "proto3"; message Charge {}',
}


@pytest.mark.parametrize("schema_type", TEXTS)
def test_each_type_has_its_format(schema_type: str) -> None:
    parsed = all_formats().parse(schema_type, TEXTS[schema_type], is_new=True)
    assert (parsed.schema_type, parsed.name) == (schema_type, "Charge")


@pytest.mark.parametrize("schema_type", TEXTS)
def test_a_schema_of_another_type_is_one_incompatibility(schema_type: str) -> None:
    formats = all_formats()
    for other in TEXTS.keys() - {schema_type}:
        written = formats.parse(other, TEXTS[other])
        assert len(formats.parse(schema_type, TEXTS[schema_type]).incompatibilities(written)) == 1


def test_what_was_parsed_is_remembered_up_to_a_bound() -> None:
    formats = FormatTable({"AVRO": AvroFormat}, remembered_max=2)
    first = formats.parse("AVRO", '"int"')
    second = formats.parse("AVRO", '"long"')
    assert formats.parse("AVRO", '"int"') is first
    formats.parse("AVRO", '"string"')
    assert formats.parse("AVRO", '"int"') is first
    assert formats.parse("AVRO", '"long"') is not second


def test_a_fault_is_not_remembered() -> None:
    formats = all_formats()
    for _ in range(2):
        with pytest.raises(SchemaFault):
            formats.parse("AVRO", '"no such type"')


def test_a_registry_loads_neither_a_format_nor_a_client_before_it_needs_them() -> None:
    code = """
import sys
import barnabas.registry.server
from barnabas.schemas.formats import all_formats
all_formats().parse("AVRO", '"int"')
print(*sorted({"httpx", "jsonschema", "google.protobuf"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_what_is_remembered_is_bounded_by_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats_module, "REMEMBERED_CHARS_MAX", 110)
    table = all_formats()
    texts = [json.dumps({"type": "string", "doc": name * 20}) for name in "abc"]
    first, second = (table.parse("AVRO", text) for text in texts[:2])
    assert table.parse("AVRO", texts[0]) is first
    table.parse("AVRO", texts[2])
    assert table.parse("AVRO", texts[0]) is first
    assert table.parse("AVRO", texts[1]) is not second
    # Longer than all that may be remembered: it is parsed, and not kept.
    large = json.dumps({"type": "string", "doc": "x" * 200})
    assert table.parse("AVRO", large) is not table.parse("AVRO", large)


def test_formats_apart_share_nothing_that_is_parsed() -> None:
    table = all_formats()
    apart = table.apart()
    assert apart.types() == table.types()
    assert table.parse("AVRO", '"int"') is not apart.parse("AVRO", '"int"')
