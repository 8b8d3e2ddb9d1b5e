"""ACLs, SCRAM users and quotas of a cluster.

Passwords are hashed here and go nowhere else: neither into answers nor into logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.console.services.asking import AbsentError, Kept, RefusedError, until_known
from barnabas.console.services.cluster import ClusterService
from barnabas.console.services.topics import Asked, Slice
from barnabas.kafka.acls import Acl, AclFilter, add_acls, exactly, list_acls, remove_acls
from barnabas.kafka.client_quotas import Entity, change_quota, entity_text, list_quotas
from barnabas.kafka.scram_users import (
    Credential,
    delete_credentials,
    list_users,
    set_password,
)
from barnabas.kafka.wire_admin import WireAdmin

LIST_KEPT_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class AclRow:
    """An ACL, in Kafka's words."""

    resource_type: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str
    text: str


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user who logs in by SCRAM."""

    name: str
    credentials: tuple[Credential, ...]


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """The limits of a user, client id or address; None as a name is the default of a kind."""

    entity: Entity
    text: str
    values: Mapping[str, float]


class AclService:
    """ACLs of one cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, cluster: ClusterService) -> None:
        self._cluster = cluster
        self._all = Kept(self._ask, LIST_KEPT_S)

    def find(self, asked: Asked, *, kind: str = "", permission: str = "") -> Slice[AclRow]:
        """ACLs by their sentences (`User:ann may READ TOPIC orders`)."""
        found = [
            acl
            for acl in self._all.get()
            if kind in ("", acl.resource_type.name)
            and permission in ("", acl.permission.name)
            and asked.fits(acl.text)
        ]
        part = asked.of(found)
        return Slice([_row(acl) for acl in part.rows], part.total, part.page)

    def add(self, acls: Sequence[Acl]) -> None:
        """Add ACLs; those that exist stay."""
        with self._cluster.access.admin() as admin:
            add_acls(admin, acls)
            filters = [exactly(acl) for acl in acls]
            until_known(lambda: set(acls) <= set(list_acls(admin, filters)))
        self._all.forget()

    def remove(self, acl: Acl) -> None:
        """Remove one. Raises AbsentError."""
        with self._cluster.access.admin() as admin:
            count = remove_acls(admin, [acl])
            until_known(lambda: not list_acls(admin, [exactly(acl)]))
        self._all.forget()
        if not count:
            raise AbsentError(f"there is no such ACL: {acl.text}")

    def _ask(self) -> list[Acl]:
        with self._cluster.access.admin() as admin:
            return list_acls(admin, [AclFilter()])


def _row(acl: Acl) -> AclRow:
    return AclRow(
        acl.resource_type.name,
        acl.name,
        acl.pattern.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
        acl.text,
    )


class UserService:
    """Users of one cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, cluster: ClusterService) -> None:
        self._cluster = cluster
        self._all = Kept(self._ask, LIST_KEPT_S)

    def find(self, asked: Asked) -> Slice[UserRow]:
        """Users by their names."""
        return asked.of([row for row in self._all.get() if asked.fits(row.name)])

    def create(self, name: str, password: str, mechanisms: Iterable[str], iterations: int) -> None:
        """Create a user. Raises RefusedError if there is one of this name."""
        with self._cluster.access.admin() as admin:
            if list_users(admin, [name]):
                raise RefusedError(f"there is a user {name} already; change the password instead")
            set_password(admin, name, password, mechanisms, iterations)
            until_known(lambda: name in list_users(admin, [name]))
        self._all.forget()

    def change_password(self, name: str, password: str, iterations: int | None = None) -> None:
        """Change the password for all mechanisms that a user has. Raises AbsentError.

        Without `iterations` each mechanism keeps its own: fewer are easier to crack.
        """
        with self._cluster.access.admin() as admin:
            for one in _known(admin, name):
                count = one.iterations if iterations is None else iterations
                set_password(admin, name, password, [one.mechanism], count)
            if iterations is not None:
                wanted = {iterations}
                until_known(lambda: {one.iterations for one in _known(admin, name)} == wanted)
        self._all.forget()

    def delete(self, name: str) -> None:
        """Delete a user with all mechanisms. Raises AbsentError."""
        with self._cluster.access.admin() as admin:
            delete_credentials(admin, name, [one.mechanism for one in _known(admin, name)])
            until_known(lambda: not list_users(admin, [name]))
        self._all.forget()

    def _ask(self) -> list[UserRow]:
        with self._cluster.access.admin() as admin:
            return [UserRow(name, found) for name, found in list_users(admin).items()]


def _known(admin: WireAdmin, name: str) -> Sequence[Credential]:
    found = list_users(admin, [name])
    if name not in found:
        raise AbsentError(f"there is no user {name}")
    return found[name]


class QuotaService:
    """Quotas of one cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, cluster: ClusterService) -> None:
        self._cluster = cluster
        self._all = Kept(self._ask, LIST_KEPT_S)

    def find(self, asked: Asked, *, kind: str = "") -> Slice[QuotaRow]:
        """Quotas by their entities (`user=ann`), of a `kind` if one is given."""
        found = [
            row
            for row in self._all.get()
            if (not kind or kind in row.entity) and asked.fits(row.text)
        ]
        return asked.of(found)

    def change(self, entity: Entity, values: Mapping[str, float], removed: Iterable[str]) -> None:
        """Set and remove limits of one entity."""
        with self._cluster.access.admin() as admin:
            removed = list(removed)
            change_quota(admin, entity, values, removed)
            until_known(lambda: _has_limits(admin, entity, values, removed))
        self._all.forget()

    def remove(self, entity: Entity) -> Sequence[str]:
        """Remove all limits of one entity; returns which. Raises AbsentError."""
        with self._cluster.access.admin() as admin:
            found = list_quotas(admin, entity, is_strict=True)
            removed = sorted(found[0].values) if found else []
            if not removed:
                raise AbsentError(f"{entity_text(entity)} has no quotas")
            change_quota(admin, entity, {}, removed)
            until_known(lambda: _has_limits(admin, entity, {}, removed))
        self._all.forget()
        return removed

    def _ask(self) -> list[QuotaRow]:
        with self._cluster.access.admin() as admin:
            found = list_quotas(admin, {})
        return [QuotaRow(one.entity, entity_text(one.entity), one.values) for one in found]


def _has_limits(
    admin: WireAdmin, entity: Entity, values: Mapping[str, float], removed: Sequence[str]
) -> bool:
    """Return whether an entity has these limits, and none of those that were removed."""
    found = list_quotas(admin, entity, is_strict=True)
    limits = found[0].values if found else {}
    return values.items() <= limits.items() and not limits.keys() & set(removed)
