"""Records of `_schemas`, byte by byte as Confluent's registry writes them."""

import hashlib

import pytest

from barnabas.registry.contracts import Metadata, Rule, RuleSet
from barnabas.registry.store.encoding import decode_key, decode_value, encode_key, encode_value
from barnabas.registry.store.records import (
    AssociationKey,
    AssociationValue,
    ClearSubjectKey,
    ClearSubjectValue,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ContextValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Key,
    MarkValue,
    ModeKey,
    ModeValue,
    NoopKey,
    SchemaKey,
    SchemaValue,
    UnreadableRecordError,
    Value,
    content_hash,
)
from barnabas.schemas.schema import Reference

RULE = Rule(
    "check",
    "a doc",
    "CONDITION",
    "WRITE",
    "CEL",
    ("PII",),
    {"a": "b"},
    "message.x > 0",
    on_failure="ERROR",
)

ASSOCIATION = AssociationKey("orders", "lkc-1", "topic", "value", ":.c:s")

KEYS: list[tuple[Key, str]] = [
    (
        ASSOCIATION,
        (
            '{"keytype":"ASSOC","tenant":"default","resourceName":"orders",'
            '"resourceNamespace":"lkc-1","resourceType":"topic","associationType":"value",'
            '"subject":":.c:s","magic":0}'
        ),
    ),
    (SchemaKey("s", 3), '{"keytype":"SCHEMA","subject":"s","version":3,"magic":1}'),
    (
        SchemaKey(":.ctx:ü/x", 1),
        '{"keytype":"SCHEMA","subject":":.ctx:ü/x","version":1,"magic":1}',
    ),
    (SchemaKey("", 1), '{"keytype":"SCHEMA","version":1,"magic":1}'),
    (ConfigKey(None), '{"keytype":"CONFIG","magic":0}'),
    (ConfigKey("s"), '{"keytype":"CONFIG","subject":"s","magic":0}'),
    (ModeKey(None), '{"keytype":"MODE","magic":0}'),
    (ModeKey(":.ctx:"), '{"keytype":"MODE","subject":":.ctx:","magic":0}'),
    (NoopKey(), '{"keytype":"NOOP","magic":0}'),
    (NoopKey("s"), '{"keytype":"NOOP","subject":"s","magic":0}'),
    (NoopKey(""), '{"keytype":"NOOP","subject":"","magic":0}'),
    (DeleteSubjectKey("s"), '{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'),
    (ClearSubjectKey("s"), '{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}'),
    (ClearSubjectKey(None), '{"keytype":"CLEAR_SUBJECT","magic":0}'),
    (ContextKey(".c"), '{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}'),
]

VALUES: list[tuple[Key, Value, str]] = [
    (
        ASSOCIATION,
        AssociationValue(ASSOCIATION, "g", "id-1", "STRONG", frozen=True, created_ms=1 << 40),
        (
            '{"guid":"g","tenant":"default","resourceName":"orders","resourceNamespace":"lkc-1",'
            '"resourceId":"id-1","resourceType":"topic","associationType":"value",'
            '"subject":":.c:s","lifecycle":"STRONG","frozen":true,"createTs":1099511627776}'
        ),
    ),
    (
        SchemaKey("s", 1),
        SchemaValue("s", 1, 1, '"string"'),
        (
            '{"subject":"s","version":1,"id":1,"schemaType":"AVRO","schema":"\\"string\\"",'
            '"deleted":false}'
        ),
    ),
    (
        SchemaKey("s", 2),
        SchemaValue(
            "s",
            2,
            7,
            '{"a":"ü\n\x1f"}',
            "JSON",
            (Reference("n", "t", 4),),
            Metadata({"**.x": ("A", "B")}, {"k": "v", "l": "w"}, ("k",)),
            RuleSet(domain_rules=(RULE,)),
            deleted=True,
        ),
        (
            '{"subject":"s","version":2,"id":7,"schemaType":"JSON",'
            '"references":[{"name":"n","subject":"t","version":4}],'
            '"metadata":{"tags":{"**.x":["A","B"]},"properties":{"k":"v","l":"w"},'
            '"sensitive":["k"]},"ruleSet":{"domainRules":[{"name":"check","doc":"a doc",'
            '"kind":"CONDITION","mode":"WRITE","type":"CEL","tags":["PII"],"params":{"a":"b"},'
            '"expr":"message.x > 0","onFailure":"ERROR","disabled":false}]},'
            '"schema":"{\\"a\\":\\"ü\\n\\u001F\\"}","deleted":true}'
        ),
    ),
    (
        SchemaKey("s", 1),
        SchemaValue("s", 1, 1, "x", metadata=Metadata(), md5="AAAAAAAAAAAAAAAAAAAAAA=="),
        (
            '{"subject":"s","version":1,"id":1,"md5":"AAAAAAAAAAAAAAAAAAAAAA==",'
            '"schemaType":"AVRO","metadata":{},"schema":"x","deleted":false}'
        ),
    ),
    (
        ConfigKey(None),
        ConfigValue(compatibility_level="FULL"),
        '{"compatibilityLevel":"FULL"}',
    ),
    (
        ConfigKey("s"),
        ConfigValue(
            "s",
            "other",
            "deks",
            True,
            False,
            True,
            False,
            "NONE",
            "STRICT",
            "group",
            Metadata(properties={"a": "b"}),
            Metadata(),
            RuleSet(),
            RuleSet(migration_rules=(Rule("m", mode="UPGRADE", type="JSONATA"),)),
        ),
        (
            '{"subject":"s","alias":"other","aliasForDeks":"deks","normalize":true,'
            '"validateFields":false,"validateNewSchemas":true,"validateRules":false,'
            '"compatibilityLevel":"NONE","compatibilityPolicy":"STRICT",'
            '"compatibilityGroup":"group","defaultMetadata":{"properties":{"a":"b"}},'
            '"overrideMetadata":{},"defaultRuleSet":{},"overrideRuleSet":{"migrationRules":'
            '[{"name":"m","kind":"TRANSFORM","mode":"UPGRADE","type":"JSONATA","disabled":false}]}}'
        ),
    ),
    (ModeKey("s"), ModeValue("s", "IMPORT"), '{"subject":"s","mode":"IMPORT"}'),
    (DeleteSubjectKey("s"), DeleteSubjectValue("s", 3), '{"subject":"s","version":3}'),
    (ClearSubjectKey("s"), ClearSubjectValue("s"), '{"subject":"s"}'),
    (ClearSubjectKey(None), ClearSubjectValue(None), "{}"),
    (ContextKey(".c"), ContextValue(".c"), '{"tenant":"default","context":".c"}'),
    (NoopKey("s"), MarkValue("s", 4, 9), '{"subject":"s","version":4,"id":9}'),
]


@pytest.mark.parametrize(("key", "text"), KEYS)
def test_keys_have_the_bytes_of_confluents(key: Key, text: str) -> None:
    assert encode_key(key) == text.encode()
    assert decode_key(text.encode()) == key


@pytest.mark.parametrize(("key", "value", "text"), VALUES)
def test_values_have_the_bytes_of_confluents(key: Key, value: Value, text: str) -> None:
    assert encode_value(value) == text.encode()
    assert decode_value(key, text.encode()) == value


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"magic":0,"version":2,"keytype":"SCHEMA","subject":"s"}', SchemaKey("s", 2)),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', ConfigKey(None)),
        ('{"keytype":"MODE","subject":"s","magic":0,"more":[1]}', ModeKey("s")),
        ('{"keytype":"SCHEMA","subject":":.:s","version":2,"magic":1}', SchemaKey("s", 2)),
    ],
)
def test_keys_of_other_times_are_read(text: str, key: Key) -> None:
    assert decode_key(text.encode()) == key


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"null",
        b'{"keytype":"OTHER","magic":0}',
        b'{"keytype":["SCHEMA"]}',
        b'{"magic":0}',
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":2}',
        b'{"keytype":"SCHEMA","subject":"s","magic":1}',
        b'{"keytype":"SCHEMA","subject":{},"version":1,"magic":1}',
        b'{"keytype":"SCHEMA","subject":"s","version":99999999999,"magic":1}',
        b"[" * 100_000,
    ],
)
def test_keys_that_cannot_be_read_are_said_to_be_so(data: bytes | None) -> None:
    with pytest.raises(UnreadableRecordError):
        decode_key(data)


@pytest.mark.parametrize(
    ("key", "data"),
    [
        (SchemaKey("s", 1), b"x"),
        (SchemaKey("s", 1), b"[]"),
        (SchemaKey("s", 1), b'{"subject":"s","version":1}'),
        (SchemaKey("s", 1), b'{"id":"one","schema":"x"}'),
        (SchemaKey("s", 1), b'{"id":1,"schema":{}}'),
        (SchemaKey("s", 1), b'{"id":1,"schema":"x","references":[1]}'),
        (SchemaKey("s", 1), b'{"id":1,"schema":"x","references":7}'),
        (SchemaKey("s", 1), b'{"id":1,"schema":"x","metadata":[]}'),
        (SchemaKey("s", 1), b'{"id":1,"schema":"x","ruleSet":{"domainRules":[{"mode":"?"}]}}'),
        (ConfigKey("s"), b'{"compatibilityLevel":"SOME"}'),
        (ModeKey("s"), b'{"mode":"SOME"}'),
        (DeleteSubjectKey("s"), b"{}"),
    ],
)
def test_values_that_cannot_be_read_are_said_to_be_so(key: Key, data: bytes) -> None:
    with pytest.raises(UnreadableRecordError):
        decode_value(key, data)


@pytest.mark.parametrize("key", [key for key, _ in KEYS])
def test_no_value_is_a_tombstone(key: Key) -> None:
    assert decode_value(key, None) is None
    assert encode_value(None) is None


def test_values_of_other_times_are_read() -> None:
    data = b'{"subject":"s","version":1,"id":3,"schema":"x","deleted":false,"offset":4,"ts":5}'
    assert decode_value(SchemaKey("s", 1), data) == SchemaValue("s", 1, 3, "x")
    assert decode_value(ConfigKey("s"), b'{"compatibilityLevel":"FULL"}') == ConfigValue(
        "s", compatibility_level="FULL"
    )
    assert decode_value(NoopKey(), b"anything") is None


def test_the_time_of_a_record_is_kept_and_does_not_make_a_difference() -> None:
    data = encode_value(SchemaValue("s", 1, 3, "x"))
    value = decode_value(SchemaKey("s", 1), data, 1234)
    assert isinstance(value, SchemaValue)
    assert value.timestamp_ms == 1234
    assert value == SchemaValue("s", 1, 3, "x")


def test_content_is_hashed_as_confluent_does() -> None:
    def md5(data: bytes) -> bytes:
        return hashlib.md5(data, usedforsecurity=False).digest()

    assert content_hash("ü") == md5("ü".encode())
    assert content_hash("t", [Reference("n", "s", 258)]) == md5(b"tns\x00\x00\x01\x02")
    assert content_hash("t", metadata=Metadata()) == md5(b"t\x01")
    metadata = Metadata({"p": ("A", "B")}, {"k": "v"}, ("k",))
    assert content_hash("t", metadata=metadata) == md5(b"t\x01pABkvk")
    rules = RuleSet(domain_rules=(RULE,), enable_at="CLIENT")
    assert content_hash("t", (), metadata, rules) == md5(
        b"t\x01pABkvk\x01checka docCONDITIONWRITECELPIIabmessage.x > 0ERRORCLIENT"
    )
    disabled = RuleSet(encoding_rules=(Rule("r", type="T", disabled=True),))
    assert content_hash("t", rule_set=disabled) == md5(b"t\x01rTRANSFORMWRITEREADT\x01")


def test_a_hash_that_is_stored_holds() -> None:
    assert SchemaValue("s", 1, 1, "x", md5="AAAAAAAAAAAAAAAAAAAAAA==").content_hash() == bytes(16)
    assert SchemaValue("s", 1, 1, "x", md5="?").content_hash() == content_hash("x")
