"""Registration of a schema under a subject.

What is there already is found first, in any mode: a registration repeated is a read. Otherwise
the schema is completed (metadata and rules from configuration and the last version), gets the id
that its content has in the context, if any, is held against earlier versions, and becomes the
next version.
"""

from dataclasses import dataclass, replace

from barnabas.registry import errors, subjects
from barnabas.registry.contracts import (
    VERSION_PROPERTY,
    RuleSet,
    merged_rule_set,
    with_version,
    without_version,
)
from barnabas.registry.core.compatibility import incompatibilities, validates_new
from barnabas.registry.core.content import Content, can_stand_for, parsed, read_content, with_tags
from barnabas.registry.core.decision import INT_MAX, Decision, View
from barnabas.registry.core.lookup import (
    LOOKBACK_MAX,
    find_by_hash,
    find_content,
    get_version,
    normalizes,
    own_version,
    with_contracts,
)
from barnabas.registry.core.modes import IMPORTING, check_registrable, mode_in_scope
from barnabas.registry.core.requests import SchemaRequest, TagChange, TagRequest
from barnabas.registry.core.settings import config_in_scope, has_contracts
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import (
    ConfigValue,
    ContextKey,
    ContextValue,
    Record,
    SchemaKey,
    SchemaValue,
)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One registration: what is asked, and what holds for its subject."""

    view: View
    subject: str
    request: SchemaRequest
    config: ConfigValue
    normalize: bool
    force: bool

    @property
    def version(self) -> int:
        """The version asked for: 0 none, -1 the next one, to be said in the metadata."""
        return self.request.version or 0

    @property
    def id(self) -> int | None:
        """The id asked for."""
        return None if self.request.id is None or self.request.id < 0 else self.request.id

    @property
    def is_import(self) -> bool:
        """True if the mode takes schemas as they come from another registry."""
        return mode_in_scope(self.view, self.subject) in IMPORTING


def register(
    view: View,
    subject: str,
    request: SchemaRequest,
    *,
    normalize: bool = False,
    force: bool = False,
) -> Decision[SchemaValue]:
    """Register a schema under a subject, or find that it is there already.

    The answer is the version with its id. `force` leaves compatibility unchecked. Raises
    RegistryError: 42201 invalid schema or reference, 409 incompatible, 42205 not in this mode,
    42208 subject, 42210 rules.
    """
    _check_request(view, subject, request)
    name = subjects.normal(subject)
    config = config_in_scope(view, name)
    attempt = _Attempt(
        view, name, request, config, normalizes(view, name, config, normalize), force
    )
    if request.tags_to_add or request.tags_to_remove:
        check_registrable(view, name, with_id=attempt.id is not None)
        attempt = replace(attempt, request=_with_request_tags(attempt))
    elif not request.propagate_tags and not has_contracts(config):
        content, known = _read_or_find(attempt)
        if known is not None:
            return Decision((), known)
        check_registrable(view, name, with_id=attempt.id is not None)
        return _register(attempt, content, searched=content if attempt.id is None else None)
    else:
        check_registrable(view, name, with_id=attempt.id is not None)
    return _register(attempt, _read(attempt, is_new=_is_new(attempt)))


def _check_request(view: View, subject: str, request: SchemaRequest) -> None:
    if request.rule_set is not None:
        fault = request.rule_set.fault()
        if fault:
            raise RegistryError(errors.INVALID_RULE_SET, f"ruleSet: {fault}")
    if not subjects.is_valid(subject, may_be_context=view.defaults.allow_empty_subject):
        raise errors.invalid_subject(subject)
    if subjects.parse(subject).context == subjects.ANY_CONTEXT:
        raise errors.invalid_subject(subject)
    if (request.id or 0) > INT_MAX:
        raise RegistryError(errors.UNPROCESSABLE, f"id {request.id} is above {INT_MAX}")
    if request.version is not None and not -1 <= request.version <= INT_MAX:
        raise errors.invalid_version(request.version)


def _is_new(attempt: _Attempt) -> bool:
    return attempt.id is None and validates_new(attempt.view, attempt.config)


def _read(attempt: _Attempt, *, is_new: bool) -> Content | None:
    return read_content(
        attempt.view,
        attempt.subject,
        attempt.request,
        normalize=attempt.normalize,
        is_new=is_new,
    )


def _read_or_find(attempt: _Attempt) -> tuple[Content | None, SchemaValue | None]:
    """The content, and the version that has it already.

    A text that fails as a new one may be there from milder times; then it is found.
    """
    is_new = _is_new(attempt)
    try:
        content = _read(attempt, is_new=is_new)
    except RegistryError:
        if not is_new:
            raise
        content = _read(attempt, is_new=False)
        known = None if content is None else _already_there(attempt, content)
        if known is None:
            raise
        return content, known
    return content, None if content is None else _already_there(attempt, content)


def _already_there(attempt: _Attempt, content: Content) -> SchemaValue | None:
    """The version that a registration asks for, if it is there."""
    known: SchemaValue | None
    if attempt.version > 0:
        known = attempt.view.state.version(attempt.subject, attempt.version)
        if known is None or known.deleted or not can_stand_for(attempt.view, content, known):
            return None
    else:
        known = find_content(
            attempt.view, attempt.subject, content, latest_only=attempt.version == -1
        )
    return known if known is not None and attempt.id in (None, known.id) else None


def _register(
    attempt: _Attempt, content: Content | None, searched: Content | None = None
) -> Decision[SchemaValue]:
    """Register content under its subject, where `searched` is known not to be."""
    view, subject = attempt.view, attempt.subject
    live = view.state.versions(subject)
    version_next = view.state.next_version(subject)
    if not attempt.is_import:
        content = _completed(attempt, content, live, version_next)
    if content is None:
        raise errors.invalid_schema("the schema is empty")
    wanted_id = attempt.id if mode_in_scope(view, subject) == "IMPORT" else None
    known, wanted_id = _same_content(attempt, content, live, wanted_id, searched)
    if known is not None:
        return Decision((), known)
    if not attempt.is_import and not attempt.force:
        messages = incompatibilities(view, attempt.config, content, live)
        if messages:
            raise errors.incompatible(subject, messages)
    return _next_version(attempt, content, version_next, wanted_id)


def _completed(
    attempt: _Attempt, content: Content | None, live: list[SchemaValue], version_next: int
) -> Content:
    """Content with what it gets from configuration and from the last version."""
    previous = live[-1] if live else None
    if content is None:
        if previous is None:
            raise errors.invalid_schema("the schema is empty")
        request = replace(
            attempt.request,
            text=previous.text,
            schema_type=previous.schema_type,
            references=previous.references,
        )
        content = _read(replace(attempt, request=request), is_new=_is_new(attempt))
        assert content is not None
    if attempt.request.propagate_tags and previous is not None:
        content = _with_tags_of(attempt, content, previous)
    content = with_contracts(content, attempt.config, previous)
    metadata = content.metadata
    if attempt.version != 0 or (metadata and VERSION_PROPERTY in metadata.properties):
        content = replace(content, metadata=with_version(metadata, version_next))
    return content


def _with_tags_of(attempt: _Attempt, content: Content, previous: SchemaValue) -> Content:
    tags = parsed(attempt.view, previous).tags()
    if not tags:
        return content
    changes = [TagChange(entity, names) for entity, names in tags.items()]
    tagged = with_tags(content.parsed, changes, ())
    return replace(content, parsed=tagged, text=tagged.canonical_text)


def _with_request_tags(attempt: _Attempt) -> SchemaRequest:
    """The request with its changes of tags made in the text."""
    request = attempt.request
    content = read_content(attempt.view, attempt.subject, request, normalize=False, is_new=False)
    if content is None:
        raise errors.invalid_schema("the schema is empty")
    tagged = with_tags(content.parsed, request.tags_to_add, request.tags_to_remove)
    version = -1 if request.version is None else request.version
    return replace(
        request,
        text=tagged.canonical_text,
        references=content.references,
        version=version,
        tags_to_add=(),
        tags_to_remove=(),
    )


def _same_content(
    attempt: _Attempt,
    content: Content,
    live: list[SchemaValue],
    wanted_id: int | None,
    searched: Content | None,
) -> tuple[SchemaValue | None, int | None]:
    """The version that has the content already; else the id that the content has to get."""
    view, subject = attempt.view, attempt.subject
    context = subjects.context_of(subject)
    asked_id = wanted_id
    for known_id in reversed(view.state.ids_of(context, content.hash())):
        known = view.state.any_by_id(context, known_id)
        if known is None or not content.has_content_of(known) or wanted_id not in (None, known_id):
            continue
        same = find_by_hash(view, subject, content)
        if attempt.version == 0 and same is not None and wanted_id in (None, same.id):
            return same, wanted_id
        wanted_id = known_id
        break
    if attempt.version > 0:
        return None, wanted_id
    asked = _as_asked(attempt, content)
    if searched is not None and asked.has_content_of(searched):
        return None, wanted_id
    # Another subject may have what the next version would be; its id binds none that is there.
    bound_id = wanted_id if asked is content else asked_id
    for value in reversed(live[-LOOKBACK_MAX:] if attempt.version == 0 else live[-1:]):
        if bound_id in (None, value.id) and can_stand_for(view, asked, value):
            return value, wanted_id
    return None, wanted_id


def _as_asked(attempt: _Attempt, content: Content) -> Content:
    """Content without the version in its metadata, if that is not from the request.

    With it, a schema that inherits such metadata would be a new one each time.
    """
    metadata = attempt.request.metadata
    if metadata is not None and VERSION_PROPERTY in metadata.properties:
        return content
    if content.metadata is None or VERSION_PROPERTY not in content.metadata.properties:
        return content
    return replace(content, metadata=without_version(content.metadata))


def _next_version(
    attempt: _Attempt, content: Content, version_next: int, wanted_id: int | None
) -> Decision[SchemaValue]:
    view, subject = attempt.view, attempt.subject
    context = subjects.context_of(subject)
    version = attempt.version if attempt.version > 0 else version_next
    if version != version_next and not attempt.is_import:
        raise errors.invalid_schema(
            f"version {version} of subject {subject!r} is not the next one, {version_next}"
        )
    schema_id = view.state.next_id(context) if wanted_id is None else wanted_id
    if max(schema_id, version) > INT_MAX:
        raise RegistryError(errors.STORE_ERROR, f"context {context!r} has run out of numbers")
    _check_free(view, subject, version, schema_id, content)
    value = SchemaValue(
        subject,
        version,
        schema_id,
        content.text,
        content.schema_type,
        content.references,
        content.metadata,
        content.rule_set,
    )
    records: list[Record] = []
    if context != subjects.DEFAULT_CONTEXT and not view.state.is_named(context):
        records.append(Record(ContextKey(context), ContextValue(context)))
    records += [
        Record(SchemaKey(subject, old.version), None)
        for old in view.state.versions(subject, "deleted")
        if old.id == schema_id
        and old.version < version
        and not view.state.referrers(subject, old.version)
    ]
    records.append(Record(SchemaKey(subject, version), value))
    return Decision(tuple(records), value)


def _check_free(view: View, subject: str, version: int, schema_id: int, content: Content) -> None:
    """Raise RegistryError 42205 if an import gives an id or a version that something else has."""
    known = view.state.any_by_id(subjects.context_of(subject), schema_id)
    if known is not None and not content.has_content_of(known):
        raise errors.not_permitted(
            f"id {schema_id} is that of another schema, version {known.version} of subject "
            f"{known.subject!r}"
        )
    there = view.state.version(subject, version)
    if there is not None and there.id != schema_id:
        raise errors.not_permitted(
            f"version {version} of subject {subject!r} is there already, with id {there.id}"
        )


def modify_tags(
    view: View, subject: str, version: str | int, request: TagRequest
) -> Decision[SchemaValue]:
    """Register a version of a subject again with other tags, metadata or rules.

    Raises RegistryError 40401, 40402, 42202, and what `register` does.
    """
    name = subjects.normal(subject)
    old = get_version(view, name, version)
    tagged = with_tags(parsed(view, old), request.tags_to_add, request.tags_to_remove)
    version_new = request.new_version or 0
    metadata = old.metadata if request.metadata is None else request.metadata
    return register(
        view,
        name,
        SchemaRequest(
            tagged.canonical_text,
            old.schema_type,
            old.references,
            with_version(metadata, version_new),
            _modified_rules(view, name, request),
            version=version_new,
            propagate_tags=request.propagate_tags,
        ),
    )


def _modified_rules(view: View, subject: str, request: TagRequest) -> RuleSet | None:
    if request.rules_to_merge is None and not request.rules_to_remove:
        return request.rule_set
    number = request.new_version - 1 if request.new_version else -1
    rules = own_version(view, subject, number).rule_set
    if request.rules_to_merge is not None:
        rules = merged_rule_set(rules, request.rules_to_merge)
    return None if rules is None else rules.without(request.rules_to_remove)
