"""Measures how much of the work on Avro and JSON Schema the registry could leave to libraries.

    python -m bench.schema_libraries

It puts the cases of the tests' tables of verdicts (made with Apache Avro's Java library and
Confluent's classes) to our code and to the libraries, and counts the right answers. Then it
measures how long each takes. `docs/decisions/0026-own-models-of-avro-and-json-schema.md` has the
figures.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import avro.compatibility
import avro.schema
import fastavro
import jsonschema
from fastavro.schema import to_parsing_canonical_form

from barnabas.schemas.avro import AvroFormat
from barnabas.schemas.json_schema import JsonSchemaFormat
from barnabas.schemas.schema import SchemaFault

TABLES = Path(__file__).parent.parent / "tests" / "unit" / "schemas"
SPEED_SECONDS = 1.0
SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(20)],
}
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {f"f{n}": {"type": ["string", "null"], "maxLength": 40} for n in range(20)},
}


def share(name: str, right: int, of: int) -> None:
    print(f"  {name:58} {right:5} of {of:5}  {right / of:6.1%}")


def answers(cases: Iterable[Any], ask: Callable[[Any], bool]) -> int:
    return sum(ask(case) for case in cases)


def attempt(make: Callable[[], Any]) -> Any:
    """Return what a library makes, None if it fails. Each library raises errors of its types."""
    try:
        return make()
    except Exception:  # noqa: BLE001
        return None


def per_second(work: Callable[[], object]) -> float:
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < SPEED_SECONDS:
        work()
        done += 1
    return done / (time.perf_counter() - start)


def avro_texts() -> None:
    """Which texts are schemas, and what their canonical text is."""
    table = json.loads((TABLES / "avro" / "verdicts.json").read_text())
    cases = [case for case in table["schemas"] if not case.get("references")]

    def ours(case: Any) -> str | None:
        try:
            return AvroFormat().parse(case["text"], (), is_new=True).canonical_text
        except SchemaFault:
            return None

    def fast(case: Any) -> str | None:
        text: str = to_parsing_canonical_form(fastavro.parse_schema(json.loads(case["text"])))
        return text

    def apache(case: Any) -> str | None:
        return json.dumps(avro.schema.parse(case["text"]).to_json(), separators=(",", ":"))

    print("Avro: accepted or refused as by Java")
    for name, parse in (("ours", ours), ("fastavro", fast), ("avro", apache)):
        right = answers(
            cases,
            lambda case, parse=parse: (
                (attempt(lambda: parse(case)) is None)  # type: ignore[misc]
                == (case["new"] is None)
            ),
        )
        share(name, right, len(cases))
    valid = [case for case in cases if case["new"] is not None]
    print("Avro: canonical text as Java's, of the valid ones")
    for name, parse in (("ours", ours), ("fastavro", fast), ("avro", apache)):
        share(
            name,
            answers(
                valid,
                lambda case, parse=parse: attempt(lambda: parse(case)) == case["new"],  # type: ignore[misc]
            ),
            len(valid),
        )


def avro_pairs() -> None:
    """Compare verdicts on pairs of schemas: can a reader read a writer's data, and why not?"""
    table = json.loads((TABLES / "avro" / "verdicts.json").read_text())
    pairs = [pair for pair in table["pairs"] if pair["faults"] is not None]

    def ours(pair: Any) -> list[list[str]]:
        reader, writer = (AvroFormat().parse(pair[side], ()) for side in ("reader", "writer"))
        return [[one.kind, one.path, one.details] for one in reader.incompatibilities(writer)]

    def apache(pair: Any) -> list[list[str]]:
        checker = avro.compatibility.ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        found = checker.get_compatibility(
            avro.schema.parse(pair["reader"]), avro.schema.parse(pair["writer"])
        )
        if found.compatibility is avro.compatibility.SchemaCompatibilityType.compatible:
            return []
        kinds = [str(kind.value).upper() for kind in found.incompatibilities]
        return [
            [kind, place, message]
            for kind, place, message in zip(
                kinds, sorted(found.locations), sorted(found.messages), strict=False
            )
        ] or [["?", "?", "?"]]

    print("Avro: compatible or not, as Java says (fastavro has no check)")
    for name, compare in (("ours", ours), ("avro", apache)):
        share(
            name,
            answers(
                pairs,
                lambda pair, compare=compare: (  # type: ignore[misc]
                    (found := attempt(lambda: compare(pair))) is not None
                    and bool(found) == bool(pair["faults"])
                ),
            ),
            len(pairs),
        )
    print("Avro: the same kinds, paths and details as Java's")
    for name, compare in (("ours", ours), ("avro", apache)):
        share(
            name,
            answers(
                pairs,
                lambda pair, compare=compare: attempt(lambda: compare(pair)) == pair["faults"],  # type: ignore[misc]
            ),
            len(pairs),
        )


def json_schemas() -> None:
    """Which texts are schemas; no library compares two."""
    table = json.loads((TABLES / "json_schema" / "confluent-8.5-verdicts.json").read_text())
    pairs = table["pairs"]
    right = 0
    for pair in pairs:
        reader, writer = (
            JsonSchemaFormat().parse(json.dumps(pair[side])) for side in ("reader", "writer")
        )
        found = sorted(f"{one.kind} {one.path}" for one in reader.incompatibilities(writer))
        right += found == pair["strict"]
    print("JSON Schema: the same differences as Confluent's (no library compares two schemas)")
    share("ours", right, len(pairs))
    schemas = [pair[side] for pair in pairs for side in ("reader", "writer")]

    def checks(schema: Any) -> bool:
        jsonschema.validators.validator_for(schema).check_schema(schema)
        return True

    print("JSON Schema: schemas of these pairs, all of which Confluent parses, that are accepted")
    parse = JsonSchemaFormat().parse
    share("ours", answers(schemas, lambda one: parse(json.dumps(one)) is not None), len(schemas))
    share(
        "jsonschema",
        answers(schemas, lambda one: attempt(lambda: checks(one)) is True),
        len(schemas),
    )


def speeds() -> None:
    text, document = json.dumps(SCHEMA), json.dumps(JSON_SCHEMA)
    print("schemas parsed in a second")
    for name, work in (
        ("Avro, ours: parsed, checked", lambda: AvroFormat().parse(text, (), is_new=True)),
        ("Avro, fastavro", lambda: fastavro.parse_schema(json.loads(text))),
        ("Avro, avro", lambda: avro.schema.parse(text)),
        ("JSON Schema, ours", lambda: JsonSchemaFormat().parse(document, (), is_new=True)),
        (
            "JSON Schema, jsonschema",
            lambda: jsonschema.Draft7Validator.check_schema(json.loads(document)),
        ),
    ):
        print(f"  {name:58} {per_second(work):8.0f}")


def main() -> None:
    warnings.simplefilter("ignore")  # avro warns of each logical type that it does not know
    avro_texts()
    avro_pairs()
    json_schemas()
    speeds()


if __name__ == "__main__":
    main()
