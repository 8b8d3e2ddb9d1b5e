"""Registration: ids, versions, what is found again, what is completed and what is refused."""

from typing import Any

import pytest

from barnabas.registry.contracts import Metadata, Rule, RuleSet
from barnabas.registry.core.decision import Defaults
from barnabas.registry.core.deletion import delete_subject, delete_version
from barnabas.registry.core.modes import set_mode
from barnabas.registry.core.registration import modify_tags, register
from barnabas.registry.core.requests import SchemaRequest, TagChange, TagRequest
from barnabas.registry.core.settings import ConfigUpdate, update_config
from barnabas.registry.store.records import ContextKey, SchemaKey, SchemaValue
from barnabas.schemas.schema import Reference, TaggedEntity
from support.registry_format import Registry, put, refused, text

CHECK = Rule("check", type="CEL", mode="WRITE")


@pytest.fixture
def registry() -> Registry:
    return Registry()


def place(value: SchemaValue) -> tuple[str, int, int]:
    return value.subject, value.version, value.id


# Ids and versions


def test_versions_count_per_subject_and_ids_per_context(registry: Registry) -> None:
    assert place(put(registry, "a", text("x"))) == ("a", 1, 1)
    assert place(put(registry, "a", text("x", "y"))) == ("a", 2, 2)
    assert place(put(registry, "b", text("z"))) == ("b", 1, 3)
    assert place(put(registry, ":.ctx:a", text("x"))) == (":.ctx:a", 1, 1)
    assert place(put(registry, ":.:a", text("x"))) == ("a", 1, 1)


def test_the_same_schema_again_writes_nothing(registry: Registry) -> None:
    first = put(registry, "a", text("x"))
    written = len(registry.log)
    assert put(registry, "a", ' { "fields" : ["x"] } ') == first
    assert len(registry.log) == written


def test_one_text_has_one_id_in_a_context(registry: Registry) -> None:
    put(registry, "other", text("w"))
    assert put(registry, "a", text("x")).id == 2
    assert put(registry, "b", text("x")).id == 2
    assert put(registry, ":.ctx:a", text("x")).id == 1
    assert put(registry, ":.ctx:b", text("x")).id == 1


def test_one_text_in_two_formats_is_two_schemas(registry: Registry) -> None:
    assert put(registry, "a", text("x")).id == 1
    assert put(registry, "b", text("x"), schema_type="JSON").id == 2
    assert put(registry, "c", text("x")).id == 1
    assert put(registry, "d", text("x"), schema_type="JSON").id == 2
    assert put(registry, "a", text("x"), schema_type="AVRO").version == 1


def test_metadata_and_rules_make_another_schema(registry: Registry) -> None:
    assert put(registry, "a", text("x")).id == 1
    assert place(put(registry, "a", text("x"), metadata=Metadata(properties={"k": "v"}))) == (
        "a",
        2,
        2,
    )
    assert place(put(registry, "a", text("x"), rule_set=RuleSet(domain_rules=(CHECK,)))) == (
        "a",
        3,
        3,
    )


def test_an_older_version_is_found_again(registry: Registry) -> None:
    put(registry, "a", text("x"))
    put(registry, "a", text("x", "y"))
    assert place(put(registry, "a", text("x"))) == ("a", 1, 1)


def test_a_context_is_written_down_once(registry: Registry) -> None:
    put(registry, ":.ctx:a", text("x"))
    put(registry, ":.ctx:b", text("y"))
    put(registry, "a", text("x"))
    contexts = [record.key for record in registry.log if isinstance(record.key, ContextKey)]
    assert contexts == [ContextKey(".ctx")]
    assert registry.state.contexts() == [".", ".ctx"]


def test_a_deleted_schema_gets_its_old_id_and_a_new_version(registry: Registry) -> None:
    put(registry, "a", text("x"))
    put(registry, "a", text("x", "y"))
    registry.do(delete_version, "a", 1)
    assert place(put(registry, "a", text("x"))) == ("a", 3, 1)
    assert registry.state.version("a", 1) is None
    registry.do(delete_subject, "a")
    assert place(put(registry, "a", text("x", "y"))) == ("a", 4, 2)


def test_a_deleted_version_that_others_refer_to_stays_when_its_schema_comes_again(
    registry: Registry,
) -> None:
    put(registry, "base", text("x"))
    put(registry, "user", text("u", uses=["B"]), references=(Reference("B", "base", 1),))
    registry.do(delete_version, "user", 1)
    registry.do(delete_version, "base", 1)
    assert place(put(registry, "base", text("x"))) == ("base", 2, 1)
    assert registry.state.version("base", 1) is not None


def test_hard_deletion_frees_neither_ids_nor_versions(registry: Registry) -> None:
    put(registry, "a", text("x"))
    put(registry, "a", text("x", "y"))
    registry.do(delete_version, "a", 2)
    registry.do(delete_version, "a", 2, permanent=True)
    assert place(put(registry, "a", text("x", "y"))) == ("a", 3, 3)
    registry.do(delete_subject, "a")
    registry.do(delete_subject, "a", permanent=True)
    assert place(put(registry, "a", text("x"))) == ("a", 4, 4)


# What a request may say


@pytest.mark.parametrize("schema", [None, "", "  \n"])
def test_no_text_means_that_of_the_latest_version(registry: Registry, schema: str | None) -> None:
    refused(registry, 42201, register, "a", SchemaRequest(schema))
    put(registry, "a", text("x"), schema_type="JSON")
    more = put(registry, "a", schema, metadata=Metadata(properties={"k": "v"}))  # type: ignore[arg-type]
    assert (more.version, more.text, more.schema_type) == (2, text("x"), "JSON")


@pytest.mark.parametrize(
    ("schema", "schema_type", "says"),
    [
        ("{", "AVRO", "line 1"),
        ("[]", "AVRO", "not an object"),
        (text("x", flaw=True), "AVRO", "a flaw"),
        (text("x"), "XML", "'XML' is not known"),
        (text("x", uses=["B"]), "JSON", "B is not known"),
        ('{"fields":["\ud800"]}', "AVRO", "surrogate"),
    ],
)
def test_an_invalid_schema_is_refused(
    registry: Registry, schema: str, schema_type: str, says: str
) -> None:
    assert says in refused(registry, 42201, register, "a", SchemaRequest(schema, schema_type))


@pytest.mark.parametrize("subject", ["__GLOBAL", "a\tb", ":.__GLOBAL:a", ":*:a", "__EMPTY"])
def test_some_subjects_are_refused(registry: Registry, subject: str) -> None:
    refused(registry, 42208, register, subject, SchemaRequest(text("x")))


def test_an_empty_subject_is_refused_where_it_is_configured() -> None:
    strict = Registry(Defaults(allow_empty_subject=False))
    for subject in ("", ":.ctx:", "*"):
        refused(strict, 42208, register, subject, SchemaRequest(text("x")))
    assert place(put(Registry(), "", text("x"))) == ("", 1, 1)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (RuleSet(domain_rules=(Rule(),)), "no name"),
        (RuleSet(domain_rules=(Rule("a"),)), "no type"),
        (RuleSet(domain_rules=(Rule("1a", type="T"),)), "starts with"),
        (RuleSet(domain_rules=(Rule("a b", type="T"),)), "character"),
        (RuleSet(domain_rules=(Rule("a" * 65, type="T"),)), "longer than 64"),
        (RuleSet(domain_rules=(CHECK, CHECK)), "two rules"),
        (RuleSet(domain_rules=(CHECK,), migration_rules=(CHECK,)), "WRITE, not of"),
        (RuleSet(encoding_rules=(Rule("a", type="T", mode="UPGRADE"),)), "UPGRADE"),
        (
            RuleSet(domain_rules=(Rule("a", type="T", mode="READ", on_failure="X,Y"),)),
            "two actions",
        ),
    ],
)
def test_bad_rules_are_refused(registry: Registry, rules: RuleSet, says: str) -> None:
    request = SchemaRequest(text("x"), rule_set=rules)
    assert says in refused(registry, 42210, register, "a", request)


def test_a_version_has_to_be_the_next_one(registry: Registry) -> None:
    first = put(registry, "a", text("x"), version=1)
    assert first.version == 1
    assert put(registry, "a", text("x"), version=1) == first
    request = SchemaRequest(text("x", "y"), version=3)
    assert "not the next one" in refused(registry, 42201, register, "a", request)
    assert put(registry, "a", text("x", "y"), version=2).version == 2
    refused(registry, 42202, register, "a", SchemaRequest(text("z"), version=-2))
    refused(registry, 422, register, "a", SchemaRequest(text("z"), id=1 << 31))


@pytest.mark.parametrize("version", [None, 0])
def test_no_version_leaves_metadata_alone(registry: Registry, version: int | None) -> None:
    assert put(registry, "a", text("x"), version=version).metadata is None


def test_the_version_is_written_into_the_metadata_on_request(registry: Registry) -> None:
    first = put(registry, "a", text("x"), version=-1)
    assert first.metadata == Metadata(properties={"confluent:version": "1"})
    assert put(registry, "a", text("x"), version=-1) == first
    second = put(registry, "a", text("x", "y"))
    assert second.metadata == Metadata(properties={"confluent:version": "2"})
    third = put(
        registry, "a", text("x", "y", "z"), metadata=Metadata(properties={"confluent:version": "7"})
    )
    assert third.metadata == Metadata(properties={"confluent:version": "3"})


def test_a_schema_without_its_version_finds_one_that_says_it(registry: Registry) -> None:
    first = put(registry, "a", text("x"), version=-1)
    assert put(registry, "a", text("x")) == first
    said = Metadata(properties={"confluent:version": "1"})
    plain = put(registry, "b", text("w"))
    assert put(registry, "b", text("w"), metadata=said) == plain


@pytest.mark.parametrize("version", [None, -1])
def test_a_schema_that_inherits_a_version_in_its_metadata_is_found(
    registry: Registry, version: int | None
) -> None:
    put(registry, "a", text("x"), metadata=Metadata(properties={"k": "v"}), version=-1)
    second = put(registry, "a", text("x", "y"))
    assert second.metadata == Metadata(properties={"confluent:version": "2", "k": "v"})
    assert put(registry, "a", text("x", "y"), version=version) == second


def test_a_version_is_found_where_another_subject_has_what_would_be_the_next(
    registry: Registry,
) -> None:
    said = Metadata(properties={"k": "v"})
    put(registry, "a", text("w"), metadata=said)
    put(registry, "b", text("w"))
    put(registry, "b", text("x"))
    assert put(registry, "b", text("w", "x"), metadata=said, version=-1).version == 3
    second = put(registry, "a", text("w", "x"), version=-1)
    assert second.metadata == Metadata(properties={"confluent:version": "2", "k": "v"})
    assert put(registry, "a", text("w", "x"), version=-1) == second


def test_a_schema_that_fails_as_new_is_found_if_it_is_there(registry: Registry) -> None:
    registry.do(update_config, "a", ConfigUpdate({"validate_new_schemas": False}))
    first = put(registry, "a", text("x", flaw=True))
    registry.do(update_config, "a", ConfigUpdate({"validate_new_schemas": True}))
    assert put(registry, "a", text("x", flaw=True)) == first
    refused(registry, 42201, register, "a", SchemaRequest(text("y", flaw=True)))


def test_normalised_schemas_are_equal_if_their_meaning_is(registry: Registry) -> None:
    first = put(registry, "a", text("y", "x"), normalize=True)
    assert first.text == text("x", "y")
    assert put(registry, "a", text("x", "y")) == first
    assert put(registry, "a", text("y", "x")).version == 2
    registry.do(update_config, None, ConfigUpdate({"normalize": True}))
    assert put(registry, "a", text("y", "x")) == first


# References


def test_references_are_resolved_in_the_context(registry: Registry) -> None:
    put(registry, ":.ctx:base", text("x"))
    uses = text("u", uses=["B"])
    request = SchemaRequest(uses, references=(Reference("B", "base", 1),))
    assert put(registry, ":.ctx:user", uses, references=request.references).version == 1
    assert "does not have version 1" in refused(registry, 42201, register, "user", request)
    absolute = (Reference("B", ":.ctx:base", 1),)
    assert put(registry, "user", uses, references=absolute).version == 1


def test_a_reference_to_the_latest_version_gets_its_number(registry: Registry) -> None:
    put(registry, "base", text("x"))
    put(registry, "base", text("x", "y"))
    uses = text("u", uses=["B"])
    user = put(registry, "user", uses, references=(Reference("B", "base", -1),))
    assert user.references == (Reference("B", "base", 2),)
    assert put(registry, "user", uses, references=(Reference("B", "base", 2),)) == user


@pytest.mark.parametrize(
    "reference",
    [
        Reference("B", "none", 1),
        Reference("B", "none", -1),
        Reference("B", "base", 2),
        Reference("", "base", 1),
        Reference("B", "", 1),
        Reference("B", "gone", 1),
        Reference("B", "gone", -1),
    ],
)
def test_a_reference_to_nothing_is_refused(registry: Registry, reference: Reference) -> None:
    put(registry, "base", text("x"))
    put(registry, "gone", text("g"))
    registry.do(delete_version, "gone", 1)
    refused(registry, 42201, register, "user", SchemaRequest(text("u"), references=(reference,)))


def test_a_schema_gets_all_that_it_refers_to_what_others_need_first(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(registry, "c", text("c"))
    put(registry, "b", text("b", uses=["C"]), references=(Reference("C", "c", 1),))
    put(registry, "a", text("a", uses=["C", "B"]), references=(Reference("B", "b", 1),))
    seen: list[Any] = []
    parse = registry.formats.parse

    def watched(kind: str, schema: str, references: Any = (), *, is_new: bool = False) -> Any:
        seen.append([reference.name for reference in references])
        return parse(kind, schema, references, is_new=is_new)

    monkeypatch.setattr(registry.formats, "parse", watched)
    twice = (Reference("B", "b", 1), Reference("C", "c", 1))
    put(registry, "d", text("d", uses=["C", "B"]), references=twice)
    assert seen[0] == ["C", "B"]


def replay(registry: Registry, value: SchemaValue) -> None:
    key = SchemaKey(value.subject, value.version)
    assert registry.state.replay(key, value, registry.state.offset + 1) is None


def test_references_in_a_circle_are_refused(registry: Registry) -> None:
    replay(registry, SchemaValue("a", 1, 1, text("a"), references=(Reference("B", "b", 1),)))
    replay(registry, SchemaValue("b", 1, 2, text("b"), references=(Reference("A", "a", 1),)))
    request = SchemaRequest(text("u"), references=(Reference("A", "a", 1),))
    assert "refers to itself" in refused(registry, 42201, register, "user", request)


def test_a_long_chain_of_references_is_refused(registry: Registry) -> None:
    for number in range(300):
        references = (Reference(f"R{number - 1}", f"s{number - 1}", 1),) if number else ()
        replay(
            registry,
            SchemaValue(f"s{number}", 1, number + 1, text(f"f{number}"), "AVRO", references),
        )
    request = SchemaRequest(text("u"), references=(Reference("R", "s299", 1),))
    assert "more than 200" in refused(registry, 42201, register, "user", request)
    put(registry, "user", text("u"), references=(Reference("R", "s150", 1),))


def test_a_schema_with_its_references_written_out_finds_the_one_that_refers(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(registry, "base", text("x"))
    user = put(registry, "user", text("u", uses=["B"]), references=(Reference("B", "base", 1),))
    parse = registry.formats.parse

    def lenient(kind: str, schema: str, references: Any = (), *, is_new: bool = False) -> Any:
        if not references and "uses" in schema:
            return parse(kind, schema, [_plain(text("x"))], is_new=is_new)
        return parse(kind, schema, references, is_new=is_new)

    def _plain(name: str) -> Any:
        return type("R", (), {"name": name, "text": name})()

    monkeypatch.setattr(registry.formats, "parse", lenient)
    assert put(registry, "user", text("u", uses=[text("x")])) == user


# Metadata and rules from elsewhere


def test_metadata_and_rules_come_from_the_last_version(registry: Registry) -> None:
    metadata, rules = Metadata(properties={"k": "v"}), RuleSet(domain_rules=(CHECK,))
    put(registry, "a", text("x"), metadata=metadata, rule_set=rules)
    second = put(registry, "a", text("x", "y"))
    assert (second.metadata, second.rule_set) == (metadata, rules)
    third = put(registry, "a", text("x", "y", "z"), metadata=Metadata(), rule_set=RuleSet())
    assert (third.metadata, third.rule_set) == (Metadata(), RuleSet())


def test_defaults_and_overrides_of_configuration_are_merged(registry: Registry) -> None:
    other, last = Rule("other", type="CEL"), Rule("check", type="JSONATA")
    registry.do(
        update_config,
        "a",
        ConfigUpdate(
            {
                "default_metadata": Metadata({"p": ("A",)}, {"k": "d", "d": "d"}, ("d",)),
                "override_metadata": Metadata(properties={"o": "o", "l": "o"}, sensitive=("o",)),
                "default_rule_set": RuleSet(domain_rules=(CHECK, other)),
                "override_rule_set": RuleSet(domain_rules=(last,), enable_at="CLIENT"),
            }
        ),
    )
    metadata = Metadata({"p": ("B",)}, {"k": "r", "l": "r"})
    value = put(registry, "a", text("x"), metadata=metadata)
    assert value.metadata == Metadata(
        {"p": ("B",)}, {"d": "d", "k": "r", "l": "o", "o": "o"}, ("d", "o")
    )
    assert value.rule_set == RuleSet(domain_rules=(other, last), enable_at="CLIENT")
    assert put(registry, "a", text("x"), metadata=metadata) == value
    assert put(registry, "a", text("x")) == value
    assert put(registry, "b", text("x")).metadata is None


def test_tags_are_added_and_removed_in_the_text(registry: Registry) -> None:
    put(registry, "a", text("x", "y"))
    entity = TaggedEntity("SR_FIELD", "x")
    change = TagChange(entity, frozenset({"PII"}))
    second = put(registry, "a", text("x", "y"), tags_to_add=(change,))
    assert second.text == text("x", "y", tags={"x": ["PII"]})
    assert second.metadata == Metadata(properties={"confluent:version": "2"})
    third = put(registry, "a", second.text, tags_to_remove=(change,))
    assert third.text == text("x", "y")
    unknown = TagChange(TaggedEntity("SR_FIELD", "z"), frozenset({"PII"}))
    request = SchemaRequest(text("x", "y"), tags_to_add=(unknown,))
    refused(registry, 42201, register, "a", request)


def test_tags_of_the_last_version_are_propagated_on_request(registry: Registry) -> None:
    put(registry, "a", text("x", tags={"x": ["PII"]}))
    assert put(registry, "a", text("x", "y"), propagate_tags=True).text == text(
        "x", "y", tags={"x": ["PII"]}
    )
    assert put(registry, "b", text("x", "y"), propagate_tags=True).text == text("x", "y")


def test_a_version_gets_other_tags_metadata_and_rules(registry: Registry) -> None:
    other = Rule("other", type="CEL")
    put(registry, "a", text("x"), rule_set=RuleSet(domain_rules=(CHECK,)))
    request = TagRequest(
        new_version=2,
        tags_to_add=(TagChange(TaggedEntity("SR_FIELD", "x"), frozenset({"PII"})),),
        metadata=Metadata(properties={"k": "v"}),
        rules_to_merge=RuleSet(domain_rules=(other,)),
        rules_to_remove=("check",),
    )
    value = registry.do(modify_tags, "a", "latest", request)
    assert value.version == 2
    assert value.text == text("x", tags={"x": ["PII"]})
    assert value.metadata == Metadata(properties={"confluent:version": "2", "k": "v"})
    assert value.rule_set == RuleSet(domain_rules=(other,))
    refused(registry, 40402, modify_tags, "a", 7, request)
    refused(registry, 40401, modify_tags, "none", 1, request)


# Modes


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_a_read_only_subject_takes_only_what_it_has(registry: Registry, mode: str) -> None:
    first = put(registry, "a", text("x"))
    registry.do(set_mode, "a", mode)
    assert put(registry, "a", text("x")) == first
    refused(registry, 42205, register, "a", SchemaRequest(text("y")))
    refused(registry, 42205, register, "a", SchemaRequest(text("y"), id=4))
    assert put(registry, "b", text("x")).id == 1


def test_an_id_is_for_imports_only_and_an_import_needs_one(registry: Registry) -> None:
    refused(registry, 42205, register, "a", SchemaRequest(text("x"), id=4))
    registry.do(set_mode, "a", "IMPORT")
    refused(registry, 42205, register, "a", SchemaRequest(text("x")))
    assert place(put(registry, "a", text("x"), id=10)) == ("a", 1, 10)
    assert place(put(registry, "b", text("y"))) == ("b", 1, 11)


def test_an_import_brings_ids_and_versions(registry: Registry) -> None:
    registry.do(set_mode, None, "IMPORT")
    assert place(put(registry, "a", text("y!"), id=20, version=5)) == ("a", 5, 20)
    assert place(put(registry, "a", text("x!"), id=10, version=2)) == ("a", 2, 10)
    assert place(put(registry, "a", text("z!", flaw=True), id=0)) == ("a", 6, 0)
    assert place(put(registry, "b", text("x!"), id=10, version=9)) == ("b", 9, 10)
    written = len(registry.log)
    assert place(put(registry, "a", text("x!"), id=10, version=2)) == ("a", 2, 10)
    assert place(put(registry, "a", text("x!"), id=10)) == ("a", 2, 10)
    assert len(registry.log) == written
    assert place(put(registry, "a", text("x!"), id=10, version=3)) == ("a", 3, 10)
    assert registry.state.next_id(".") == 21


def test_an_import_takes_no_id_and_no_version_of_another(registry: Registry) -> None:
    registry.do(set_mode, None, "IMPORT")
    put(registry, "a", text("x"), id=10, version=2)
    again = SchemaRequest(text("y"), id=10, version=3)
    assert "id 10" in refused(registry, 42205, register, "a", again)
    other = SchemaRequest(text("x"), id=10, metadata=Metadata(properties={"k": "v"}))
    refused(registry, 42205, register, "b", other)
    there = SchemaRequest(text("y"), id=11, version=2)
    assert "version 2" in refused(registry, 42205, register, "a", there)
    refused(registry, 42201, register, "a", SchemaRequest(None, id=12))


def test_an_import_is_not_normalised_and_not_completed(registry: Registry) -> None:
    registry.do(update_config, None, ConfigUpdate({"normalize": True}))
    registry.do(set_mode, "a", "IMPORT")
    put(registry, "a", text("y", "x"), id=1, metadata=Metadata(properties={"k": "v"}))
    second = put(registry, "a", text("w", "v"), id=2)
    assert (second.text, second.metadata) == (text("w", "v"), None)


# Compatibility


def test_an_incompatible_schema_is_refused_unless_forced(registry: Registry) -> None:
    put(registry, "a", text("x"))
    message = refused(registry, 409, register, "a", SchemaRequest(text("x", "y!")))
    assert "the new schema needs y!" in message
    assert "{oldSchemaVersion: 1}" in message
    assert "compatibility: 'BACKWARD'" in message
    assert put(registry, "a", text("x", "y!"), force=True).version == 2


def test_deleted_versions_do_not_count_for_compatibility(registry: Registry) -> None:
    put(registry, "a", text("x"))
    registry.do(delete_version, "a", 1)
    assert put(registry, "a", text("y!")).version == 2
