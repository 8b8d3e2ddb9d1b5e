"""Records of `_schemas` <-> bytes, in Confluent's JSON and order of fields.

Fields that Confluent leaves out when empty are left out; unknown fields are skipped, as it does.
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

from barnabas.registry import subjects
from barnabas.registry.contracts import Metadata, RuleSet
from barnabas.registry.store.records import (
    COMPATIBILITY_LEVELS,
    COMPATIBILITY_POLICIES,
    MODES,
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
)
from barnabas.schemas.schema import Reference


def encode_key(key: Key) -> bytes:
    """The bytes of a key. The same key always has the same bytes, or compaction would fail."""
    return _dumps(_key_json(key))


def _key_json(key: Key) -> dict[str, Any]:
    match key:
        case SchemaKey(subject, version):
            return _filled(
                {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            )
        case ConfigKey(subject):
            return _filled({"keytype": "CONFIG", "subject": subject, "magic": 0})
        case ModeKey(subject):
            return _filled({"keytype": "MODE", "subject": subject, "magic": 0})
        case NoopKey(subject):
            if subject is None:
                return {"keytype": "NOOP", "magic": 0}
            return {"keytype": "NOOP", "subject": subject, "magic": 0}  # empty ones too
        case DeleteSubjectKey(subject):
            return _filled({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0})
        case ClearSubjectKey(subject):
            return _filled({"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0})
        case ContextKey(context, tenant):
            return {"keytype": "CONTEXT", "tenant": tenant, "context": context, "magic": 0}
        case AssociationKey():
            return {
                "keytype": "ASSOC",
                "tenant": key.tenant,
                "resourceName": key.name,
                "resourceNamespace": key.namespace,
                "resourceType": key.resource_type,
                "associationType": key.association_type,
                "subject": key.subject,
                "magic": 0,
            }


def encode_value(value: Value | None) -> bytes | None:
    """The bytes of a value; None for a tombstone."""
    return None if value is None else _dumps(_value_json(value))


def _value_json(value: Value) -> dict[str, Any]:
    match value:
        case SchemaValue():
            return _schema_json(value)
        case ConfigValue():
            return config_json(value)
        case ModeValue(subject, mode):
            return _filled({"subject": subject, "mode": mode})
        case DeleteSubjectValue(subject, version):
            return _filled({"subject": subject, "version": version})
        case ClearSubjectValue(subject):
            return _filled({"subject": subject})
        case ContextValue(context, tenant):
            return {"tenant": tenant, "context": context}
        case MarkValue(subject, version, schema_id):
            return {"subject": subject, "version": version, "id": schema_id}
        case AssociationValue(key):
            return _filled(
                {
                    "guid": value.guid,
                    "tenant": key.tenant,
                    "resourceName": key.name,
                    "resourceNamespace": key.namespace,
                    "resourceId": value.resource_id,
                    "resourceType": key.resource_type,
                    "associationType": key.association_type,
                    "subject": key.subject,
                    "lifecycle": value.lifecycle,
                    "frozen": value.frozen,
                    "createTs": value.created_ms,
                }
            )


def _schema_json(value: SchemaValue) -> dict[str, Any]:
    return _filled(
        {
            "subject": value.subject,
            "version": value.version,
            "id": value.id,
            "md5": value.md5,
            "schemaType": value.schema_type,
            "references": [
                _filled({"name": ref.name, "subject": ref.subject, "version": ref.version})
                for ref in value.references
            ],
            "metadata": None if value.metadata is None else value.metadata.to_json(),
            "ruleSet": None if value.rule_set is None else value.rule_set.to_json(),
            "schema": value.text,
            "deleted": value.deleted,
        }
    )


def config_json(value: ConfigValue) -> dict[str, Any]:
    """Configuration as JSON, in Confluent's order; what is not said is left out."""
    body: dict[str, Any] = {}
    for attribute, name in CONFIG_FIELDS.items():
        member = getattr(value, attribute)
        body[name] = member.to_json() if isinstance(member, Metadata | RuleSet) else member
    return _filled(body)


CONFIG_FIELDS = {
    "subject": "subject",
    "alias": "alias",
    "alias_for_deks": "aliasForDeks",
    "normalize": "normalize",
    "validate_fields": "validateFields",
    "validate_new_schemas": "validateNewSchemas",
    "validate_rules": "validateRules",
    "compatibility_level": "compatibilityLevel",
    "compatibility_policy": "compatibilityPolicy",
    "compatibility_group": "compatibilityGroup",
    "default_metadata": "defaultMetadata",
    "override_metadata": "overrideMetadata",
    "default_rule_set": "defaultRuleSet",
    "override_rule_set": "overrideRuleSet",
}
"""Attributes of ConfigValue and their names in JSON."""


def _filled(body: dict[str, Any]) -> dict[str, Any]:
    """Without texts and lists that are empty; an object stays, as Confluent writes it."""
    return {
        key: value
        for key, value in body.items()
        if value is not None and value != "" and value != []
    }


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_SMALL_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f])")


def _dumps(body: dict[str, Any]) -> bytes:
    """JSON as Jackson writes it: no blanks, UTF-8, escapes of control characters in capitals."""
    text = _encode(body)
    if "\\u00" in text:
        text = _SMALL_ESCAPE.sub(lambda found: f"{found[1]}\\u00{found[2].upper()}", text)
    return text.encode()


def decode_key(data: bytes | None) -> Key:
    """Read a key. Raises UnreadableRecordError; of an unknown type as well."""
    if data is None:
        raise UnreadableRecordError("the record has no key")
    body = _loads(data, "key")
    kind = body.get("keytype")
    read = _KEYS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise UnreadableRecordError(f"key type {kind!r} is not known")
    try:
        return read(body)
    except ValueError as fault:
        raise UnreadableRecordError(f"key of type {kind}: {fault}") from fault


def _schema_key(body: dict[str, Any]) -> SchemaKey:
    magic = _number(body, "magic", 0)
    if magic not in (0, 1):
        raise ValueError(f"magic {magic} is not known")
    return SchemaKey(_subject(body) or "", _number(body, "version"))


_KEYS: dict[str, Callable[[dict[str, Any]], Key]] = {
    "SCHEMA": _schema_key,
    "CONFIG": lambda body: ConfigKey(_subject(body)),
    "MODE": lambda body: ModeKey(_subject(body)),
    "NOOP": lambda body: NoopKey(_subject(body)),
    "DELETE_SUBJECT": lambda body: DeleteSubjectKey(_subject(body) or ""),
    "CLEAR_SUBJECT": lambda body: ClearSubjectKey(_subject(body)),
    "CONTEXT": lambda body: ContextKey(
        _text(body, "context") or subjects.DEFAULT_CONTEXT, _text(body, "tenant") or "default"
    ),
    "ASSOC": lambda body: AssociationKey(
        _text(body, "resourceName") or "",
        _text(body, "resourceNamespace") or "",
        _text(body, "resourceType") or "",
        _text(body, "associationType") or "",
        _subject(body) or "",
        _text(body, "tenant") or "default",
    ),
}


def decode_value(key: Key, data: bytes | None, timestamp_ms: int | None = None) -> Value | None:
    """Read the value of a key; None for a tombstone. Raises UnreadableRecordError."""
    if data is None or key == NoopKey():
        return None
    body = _loads(data, "value")
    try:
        return _read_value(key, body, timestamp_ms)
    except ValueError as fault:
        raise UnreadableRecordError(f"value of {key}: {fault}") from fault


def _read_value(key: Key, body: dict[str, Any], timestamp_ms: int | None) -> Value:
    match key:
        case SchemaKey(subject, version):
            return _schema_value(subject, version, body, timestamp_ms)
        case ConfigKey(subject):
            return _config_value(subject, body)
        case ModeKey(subject):
            mode = _text(body, "mode")
            if mode not in MODES:
                raise ValueError(f"mode {mode!r} is not known")
            return ModeValue(subject, mode)
        case DeleteSubjectKey(subject):
            return DeleteSubjectValue(subject, _number(body, "version"))
        case ClearSubjectKey(subject):
            return ClearSubjectValue(subject)
        case ContextKey(context, tenant):
            return ContextValue(context, tenant)
        case NoopKey(subject):
            return MarkValue(subject or "", _number(body, "version", 0), _number(body, "id", 0))
        case AssociationKey():
            created_ms = body.get("createTs")
            return AssociationValue(
                key,
                _text(body, "guid") or "",
                _text(body, "resourceId") or "",
                _text(body, "lifecycle") or "WEAK",
                body.get("frozen") is True,
                created_ms if isinstance(created_ms, int) else None,
                timestamp_ms,
            )


def _schema_value(
    subject: str, version: int, body: dict[str, Any], timestamp_ms: int | None
) -> SchemaValue:
    references = body.get("references")
    metadata = body.get("metadata")
    rule_set = body.get("ruleSet")
    return SchemaValue(
        subject,
        version,
        _number(body, "id"),
        _text(body, "schema") or "",
        sys.intern(_text(body, "schemaType") or "AVRO"),
        () if not references else _references(references),
        None if metadata is None else Metadata.from_json(metadata),
        None if rule_set is None else RuleSet.from_json(rule_set),
        body.get("deleted") is True,
        _text(body, "md5"),
        timestamp_ms,
    )


def _references(references: Any) -> tuple[Reference, ...]:
    if not isinstance(references, list):
        raise ValueError("references is not a list")
    return tuple(map(_reference, references))


def _reference(body: Any) -> Reference:
    if not isinstance(body, dict):
        raise ValueError("a reference is not an object")
    return Reference(
        _text(body, "name") or "", _text(body, "subject") or "", _number(body, "version", -1)
    )


def _config_value(subject: str | None, body: dict[str, Any]) -> ConfigValue:
    members: dict[str, Any] = {}
    for attribute, name in CONFIG_FIELDS.items():
        value = body.get(name)
        if value is None:
            continue
        if attribute.endswith("metadata"):
            members[attribute] = Metadata.from_json(value, name)
        elif attribute.endswith("rule_set"):
            members[attribute] = RuleSet.from_json(value, name)
        elif attribute in _CONFIG_SWITCHES:
            members[attribute] = value is True or value == "true"
        else:
            members[attribute] = _text(body, name)
    level = members.get("compatibility_level")
    if level is not None and level not in COMPATIBILITY_LEVELS:
        raise ValueError(f"compatibility level {level!r} is not known")
    policy = members.get("compatibility_policy")
    if policy is not None and policy not in COMPATIBILITY_POLICIES:
        raise ValueError(f"compatibility policy {policy!r} is not known")
    return ConfigValue(**(members | {"subject": subject}))


_CONFIG_SWITCHES = frozenset(
    {"normalize", "validate_fields", "validate_new_schemas", "validate_rules"}
)


def _loads(data: bytes, what: str) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise UnreadableRecordError(f"the {what} is not JSON: {fault}") from fault
    if not isinstance(body, dict):
        raise UnreadableRecordError(f"the {what} is not a JSON object")
    return body


def _subject(body: dict[str, Any]) -> str | None:
    name = _text(body, "subject")
    return None if name is None else subjects.normal(name)


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{name} is not a text")


def _number(body: dict[str, Any], name: str, default: int | None = None) -> int:
    value = body.get(name)
    if value is None and default is not None:
        return default
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31:
        return value
    raise ValueError(f"{name} is not a number of 32 bits")
