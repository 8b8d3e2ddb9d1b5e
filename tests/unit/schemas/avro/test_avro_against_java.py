"""Our verdicts on Avro schemas and pairs of schemas equal those of Apache Avro's Java library.

`verdicts.json` holds cases and verdicts; tools/avro/Verdicts.java generates and explains them. For
deliberate differences from Java this file names the reason.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.schemas.avro import AvroFormat, AvroSchema
from barnabas.schemas.schema import ResolvedReference, SchemaFault

VERDICTS = json.loads(Path(__file__).with_name("verdicts.json").read_text())
SCHEMAS: list[dict[str, Any]] = VERDICTS["schemas"]
PAIRS: list[dict[str, Any]] = VERDICTS["pairs"]


def parse(text: str, references: list[str] = [], *, is_new: bool = False) -> AvroSchema | None:  # noqa: B006
    resolved = [
        ResolvedReference(f"r{index}", "subject", 1, reference)
        for index, reference in enumerate(references)
    ]
    try:
        return AvroFormat().parse(text, resolved, is_new=is_new)
    except SchemaFault:
        return None


def parse_case(case: dict[str, Any], *, is_new: bool = True) -> AvroSchema | None:
    return parse(case["text"], case.get("references", []), is_new=is_new)


def accepted() -> list[tuple[dict[str, Any], AvroSchema]]:
    return [(case, schema) for case in SCHEMAS if (schema := parse_case(case)) is not None]


def test_the_table_is_whole() -> None:
    assert len(SCHEMAS) > 800
    assert len(PAIRS) > 700
    assert sum(case["new"] is None for case in SCHEMAS) > 400
    assert sum(case["faults"] == [] for case in PAIRS) > 100


@pytest.mark.parametrize("is_new", [True, False])
def test_the_same_texts_are_schemas_and_become_the_same_canonical_texts(is_new: bool) -> None:
    differing = []
    for case in SCHEMAS:
        schema = parse_case(case, is_new=is_new)
        ours = None if schema is None else schema.canonical_text
        java = case["new"] if is_new else case.get("old", case["new"])
        if ours != java:
            differing.append((case["text"], case.get("references"), java, ours))
    assert differing == []


def test_resolved_texts_are_the_same() -> None:
    for case, schema in accepted():
        if "resolved" in case:
            assert schema.formatted("resolved") == case["resolved"]


def reason_to_normalize_otherwise(case: dict[str, Any]) -> str | None:
    canonical, java = case["new"], case.get("normal", case["new"])
    if java is None:
        return "Confluent fails on a valid schema"
    if '"default"' in canonical and '"default"' not in java:
        return "Avro 1.12.1 loses defaults of later branches and of large integers; 1.12.2 does not"
    if '"namespace":""' in canonical:
        return "Confluent puts a type without a namespace into the one around it: another type"
    if "2.14748365E9" in java:
        return "Java before 19 writes a digit too many"
    return None


def test_normal_forms_are_confluents() -> None:
    differing, reasons = [], set()
    for case, schema in accepted():
        ours = schema.normalized().canonical_text
        reason = reason_to_normalize_otherwise(case)
        if reason:
            reasons.add(reason)
        if (ours != case.get("normal", case["new"])) != (reason is not None):
            differing.append((case["text"], reason, case.get("normal"), ours))
    assert differing == []
    assert len(reasons) == 4


def test_normal_forms_and_canonical_texts_stay_what_they_are() -> None:
    for case, schema in accepted():
        normal = schema.normalized()
        assert normal.normalized() == normal, case["text"]
        again = parse(schema.canonical_text, case.get("references", []), is_new=True)
        assert again == schema, case["text"]


def test_pairs_have_the_same_incompatibilities() -> None:
    differing = []
    for case in PAIRS:
        reader, writer = parse(case["reader"]), parse(case["writer"])
        assert reader is not None
        assert writer is not None
        ours = [[i.kind, i.path, i.details] for i in reader.incompatibilities(writer)]
        if case["faults"] is None:  # Java ends with an exception: two fields match one
            assert [kind for kind, _, _ in ours] == ["AMBIGUOUS_ALIASES"]
        elif ours != case["faults"]:
            differing.append((case["reader"], case["writer"], case["faults"], ours))
    assert differing == []


def test_every_kind_of_incompatibility_is_in_the_table() -> None:
    kinds = {kind for case in PAIRS for kind, _, _ in case["faults"] or ()}
    assert kinds == {
        "NAME_MISMATCH",
        "FIXED_SIZE_MISMATCH",
        "MISSING_ENUM_SYMBOLS",
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "TYPE_MISMATCH",
        "MISSING_UNION_BRANCH",
    }
