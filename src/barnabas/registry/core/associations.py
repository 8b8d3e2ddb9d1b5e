"""Associations: which subjects the keys and values of a resource (a topic) belong to.

A WEAK association points a topic at a subject that is there anyway. A STRONG one owns its subject
together with the topic, is frozen, and comes with the topic's first schema: those are kept, listed
and deleted, but not made here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from barnabas.registry import errors, subjects
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.deletion import removed_for_good
from barnabas.registry.core.modes import check_writable, mode_in_scope
from barnabas.registry.core.settings import resolve_alias
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import AssociationKey, AssociationValue, Record

TOPIC = "topic"
"""The only type of resources."""
ANY = "-"
"""Stands for every name, or every namespace."""
TYPES = ("key", "value")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter of associations."""

    resource_type: str = TOPIC
    types: Collection[str] = ()
    """Of associations; by default all."""
    lifecycle: str | None = None

    def has(self, value: AssociationValue) -> bool:
        """Return whether an association is one of them."""
        return (
            value.key.resource_type == self.resource_type
            and (not self.types or value.key.association_type in self.types)
            and self.lifecycle in (None, value.lifecycle)
        )


@dataclass(frozen=True, slots=True)
class NewAssociation:
    """One that a request asks for. Values that it does not give are None."""

    association_type: str
    subject: str | None
    lifecycle: str | None
    frozen: bool | None
    has_schema: bool
    guid: str
    """For the association, if it is new."""


@dataclass(frozen=True, slots=True)
class AssociationRequest:
    """Associations of one resource."""

    name: str
    namespace: str
    resource_id: str
    associations: Sequence[NewAssociation]


Found = list[AssociationValue]


def of_subject(view: View, subject: str, wanted: Wanted) -> Found:
    """Associations with a subject, sorted."""
    name = subjects.normal(subject)
    return _sorted(view.state.associations_of(name), wanted)


def of_resource(view: View, resource_id: str, wanted: Wanted) -> Found:
    """Associations of a resource, by its id, sorted."""
    associations = view.state.associations()
    return _sorted([one for one in associations if one.resource_id == resource_id], wanted)


def of_name(view: View, namespace: str, name: str, wanted: Wanted) -> Found:
    """Associations of the resources of a name in a namespace, sorted."""
    associations = view.state.associations(None if name == ANY else name)
    return _sorted([one for one in associations if namespace in (ANY, one.key.namespace)], wanted)


def _sorted(associations: Found, wanted: Wanted) -> Found:
    return sorted(filter(wanted.has, associations), key=lambda one: one.key)


def associate(
    view: View, request: AssociationRequest, *, is_create: bool, dry_run: bool = False
) -> Decision[Found]:
    """Make WEAK associations; the answer is those that are new.

    Raises RegistryError 40903, 40905, 40907, 40908, 42205, 42212.
    """
    if not request.name:
        raise _invalid("resourceName", "may not be empty")
    if not request.namespace:
        raise _invalid("resourceNamespace", "may not be empty")
    if not request.resource_id and not dry_run:
        raise _invalid("resourceId", "may not be empty")
    if not request.associations:
        raise _invalid("associations", "may not be empty")
    if len({one.association_type for one in request.associations}) < len(request.associations):
        raise _invalid("associationType", "may come only once in a request")
    made = []
    for one in request.associations:
        new = _associate_one(view, request, one, is_create=is_create)
        if new is not None:
            made.append(new)
    if dry_run:
        return Decision((), [])
    return Decision(tuple(Record(one.key, one) for one in made), made)


def _associate_one(
    view: View, request: AssociationRequest, one: NewAssociation, *, is_create: bool
) -> AssociationValue | None:
    """The new association; None where it is there already."""
    if one.association_type not in TYPES:
        raise _invalid("associationType", "must be key or value")
    subject = None if one.subject is None else resolve_alias(view, one.subject)
    if subject is not None:
        check_writable(view, subject)
    wanted = Wanted(types=(one.association_type,))
    for old in of_resource(view, request.resource_id, wanted):
        _hold_against(old, one, subject, is_create=is_create)
        return None
    if one.has_schema or one.lifecycle == "STRONG" or one.frozen:
        raise _invalid(
            "lifecycle", "STRONG associations, which have a schema and are frozen, cannot be made"
        )
    if subject is None:
        raise _invalid("subject", "must be given for a WEAK association")
    if subject == f":.{request.namespace}:{request.name}-{one.association_type}":
        raise _invalid("subject", f"{subject!r} is only for STRONG associations")
    if view.state.latest(subject) is None:
        raise RegistryError(
            errors.NO_ACTIVE_VERSION, f"subject {subject!r} has no version to be associated with"
        )
    if any(other.lifecycle == "STRONG" for other in view.state.associations_of(subject)):
        raise RegistryError(
            errors.STRONG_ASSOCIATION_EXISTS, f"subject {subject!r} belongs to another resource"
        )
    key = AssociationKey(request.name, request.namespace, TOPIC, one.association_type, subject)
    return AssociationValue(key, one.guid, request.resource_id, "WEAK")


def _hold_against(
    old: AssociationValue,
    one: NewAssociation,
    subject: str | None,
    *,
    is_create: bool,
) -> None:
    """Raise RegistryError where a request wants something else than what is there."""
    key = old.key
    lifecycle = one.lifecycle or ("WEAK" if is_create else old.lifecycle)
    frozen = one.frozen if one.frozen is not None else lifecycle == "STRONG"
    same = (subject or key.subject, lifecycle, frozen) == (key.subject, old.lifecycle, old.frozen)
    if same and not one.has_schema:
        return
    if is_create:
        raise RegistryError(
            errors.ASSOCIATION_EXISTS,
            f"the {key.association_type} of {key.name!r} is associated with {key.subject!r}",
        )
    if old.frozen:
        raise _frozen(key)
    if subject not in (None, key.subject):
        raise _invalid("subject", f"cannot be changed from {key.subject!r}: delete it first")
    raise _invalid("lifecycle", "STRONG associations cannot be made of WEAK ones")


def remove_associations(
    view: View,
    resource_id: str,
    wanted: Wanted,
    *,
    cascades: bool = False,
    dry_run: bool = False,
) -> Decision[None]:
    """Delete a resource's associations, and with `cascades` the subjects that it owns.

    Raises RegistryError 40410, 40908, 42205, 42206.
    """
    associations = of_resource(view, resource_id, wanted)
    if not associations:
        raise RegistryError(
            errors.ASSOCIATION_NOT_FOUND, f"Association for '{resource_id}' not found."
        )
    records = []
    for value in associations:
        key = value.key
        check_writable(view, key.subject)
        if value.frozen and not cascades:
            raise _frozen(key)
        records.append(Record(key, None))
        owns = value.lifecycle == "STRONG" and mode_in_scope(view, key.subject) != "IMPORT"
        if cascades and owns and view.state.versions(key.subject, "all"):
            records += removed_for_good(view, key.subject)
    return Decision(() if dry_run else tuple(records), None)


def _invalid(name: str, detail: str) -> RegistryError:
    return RegistryError(errors.INVALID_ASSOCIATION, f"{name}: {detail}")


def _frozen(key: AssociationKey) -> RegistryError:
    return RegistryError(
        errors.ASSOCIATION_FROZEN,
        f"the {key.association_type} of {key.name!r} is permanently bound to subject "
        f"{key.subject!r}",
    )
