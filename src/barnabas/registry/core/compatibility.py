"""Compatibility: which versions a new schema is held against, and the words when it fails."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.registry import errors, subjects
from barnabas.registry.contracts import Metadata
from barnabas.registry.core.content import Content, parsed, read_content
from barnabas.registry.core.decision import View
from barnabas.registry.core.lookup import normalizes, version_number
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.core.settings import config_in_scope
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import ConfigValue, SchemaValue
from barnabas.schemas.schema import Incompatibility

SCHEMA_SHOWN_MAX = 10 * 1024
"""The length of an old schema in a message, in characters."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a compatibility check, with the lines that explain an incompatibility."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


def check_version(
    view: View,
    subject: str,
    version: str | int,
    request: SchemaRequest,
    *,
    normalize: bool = False,
    verbose: bool = False,
) -> Verdict:
    """Hold a schema against one version of a subject.

    A subject without versions has no latest one: all is compatible with that. With `verbose` an
    invalid schema is a verdict. Raises RegistryError 40402, 42202, and 42201 without `verbose`.
    """
    name = subjects.normal(subject)
    number = version_number(version)
    earlier = view.state.latest(name) if number == -1 else view.state.version(name, number)
    if (earlier is None or earlier.deleted) and number != -1:
        raise errors.version_not_found(number)
    return _check(view, name, [earlier] if earlier else [], request, normalize, verbose)


def check_all(
    view: View,
    subject: str,
    request: SchemaRequest,
    *,
    normalize: bool = False,
    verbose: bool = False,
) -> Verdict:
    """Hold a schema against the versions that registration would hold it against.

    Raises RegistryError 42201 without `verbose`.
    """
    name = subjects.normal(subject)
    return _check(view, name, view.state.versions(name), request, normalize, verbose)


def _check(
    view: View,
    subject: str,
    previous: Sequence[SchemaValue],
    request: SchemaRequest,
    normalize: bool,
    verbose: bool,
) -> Verdict:
    config = config_in_scope(view, subject)
    try:
        content = read_content(
            view,
            subject,
            request,
            normalize=normalizes(view, subject, config, normalize),
            is_new=validates_new(view, config),
        )
        if content is None:
            raise errors.invalid_schema("the schema is empty")
        messages = incompatibilities(view, config, content, previous)
    except RegistryError as fault:
        if not verbose or fault.code != errors.INVALID_SCHEMA:
            raise
        messages = [fault.message]
    return Verdict(not messages, tuple(messages))


def validates_new(view: View, config: ConfigValue) -> bool:
    """Return whether new schemas have to pass checks that stored ones need not."""
    asked = config.validate_new_schemas
    return view.defaults.validate_new_schemas if asked is None else asked


def validates_fields(view: View, config: ConfigValue) -> bool:
    """Return whether the names of fields are checked."""
    asked = config.validate_fields
    return view.defaults.validate_fields if asked is None else asked


def incompatibilities(
    view: View, config: ConfigValue, content: Content, previous: Sequence[SchemaValue]
) -> list[str]:
    """Lines that say why content is not compatible with versions, ascending; none if it is.

    The level of the configuration says with which: the latest only, or all of them, the latest
    first, up to the first that is not compatible.
    """
    messages: list[str] = []
    checks_fields = validates_fields(view, config)
    if checks_fields:
        messages += _reserved_fields(content, previous)
    if config.compatibility_group is not None:
        group = _group(content.metadata, config.compatibility_group)
        previous = [
            value
            for value in previous
            if _group(value.metadata, config.compatibility_group) == group
        ]
    level = config.compatibility_level or view.defaults.compatibility_level.upper()
    if level != "NONE" and previous:
        kind = level.removesuffix("_TRANSITIVE")
        lenient = config.compatibility_policy == "LENIENT"
        for value in reversed(previous if level != kind else previous[-1:]):
            lines = _against(view, content, value, kind, lenient)
            if lines:
                messages += lines
                break
    if messages:
        switch = "true" if checks_fields else "false"
        messages.append(f"{{validateFields: '{switch}', compatibility: '{level}'}}")
    return messages


def _group(metadata: Metadata | None, name: str) -> str | None:
    return None if metadata is None else metadata.properties.get(name)


def _against(
    view: View, content: Content, value: SchemaValue, kind: str, lenient: bool
) -> list[str]:
    if value.schema_type != content.schema_type:
        types = f"{content.schema_type}, version {value.version} is of type {value.schema_type}"
        return [f"the schema is of type {types}"]
    old = parsed(view, value)
    messages: list[str] = []
    if kind in ("BACKWARD", "FULL"):
        differences = content.parsed.incompatibilities(old, lenient=lenient)
        messages += _lines(content, differences, "new", "old")
    if kind in ("FORWARD", "FULL"):
        differences = old.incompatibilities(content.parsed, lenient=lenient)
        messages += _lines(content, differences, "old", "new")
    if messages:
        shown = value.text
        messages.append(f"{{oldSchemaVersion: {value.version}}}")
        if len(shown) > SCHEMA_SHOWN_MAX:
            messages.append(f"{{oldSchema: <truncated> '{shown[:SCHEMA_SHOWN_MAX]}...'}}")
        else:
            messages.append(f"{{oldSchema: '{shown}'}}")
    return messages


def _lines(
    content: Content, differences: Sequence[Incompatibility], reader: str, writer: str
) -> list[str]:
    return [_line(content.schema_type, one, reader, writer) for one in differences]


def _line(schema_type: str, difference: Incompatibility, reader: str, writer: str) -> str:
    text = difference.description.replace("reader schema", f"{reader} schema")
    text = text.replace("writer schema", f"{writer} schema")
    if difference.path and difference.path not in text:
        text = f"{text} (at '{difference.path}')"
    if schema_type == "AVRO":
        kind, details = difference.kind, difference.details
        return f"{{errorType:'{kind}', description:'{text}', additionalInfo:'{details}'}}"
    return f'{{errorType:"{difference.kind}", description:"{text}"}}'


def _reserved_fields(content: Content, previous: Sequence[SchemaValue]) -> list[str]:
    """Names that the last version reserves stay reserved, and no field may have one."""
    reserved = content.metadata.reserved if content.metadata else frozenset()
    before = previous[-1].metadata if previous else None
    gone = sorted((before.reserved if before else frozenset()) - reserved)
    lines = [
        f"field '{name}' is reserved in the last version and not in the new one" for name in gone
    ]
    used = sorted(content.parsed.top_level_fields() & reserved) if reserved else []
    lines += [f"field '{name}' has a name that the metadata reserves" for name in used]
    return lines
