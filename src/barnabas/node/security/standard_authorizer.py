"""StandardAuthorizer: who may do what, by the ACLs of the cluster's metadata.

A super user may do everything. Otherwise a matching DENY denies; then one
ALLOW that fits allows. Where no ACL is about the resource at all,
`allow.everyone.if.no.acl.found` decides; if there is one, but not for this caller, access is
denied. READ,
WRITE, DELETE and ALTER allow DESCRIBE too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS; a DENY means
just what it says.

Until the node has the cluster's metadata, super users alone may do anything.
Source: Kafka's StandardAuthorizer and StandardAuthorizerData; Authorizer.authorizeByResourceType.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from logging import DEBUG
from typing import Final, Self

from barnabas.base.addresses import normal_address
from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import (
    AUTHORIZER_KEY,
    SUPER_USERS_KEY,
    NodeConfig,
    parse_super_users,
)
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.security.audit import AuditLog, Decided, is_noted
from barnabas.node.security.authorizer import Caller
from barnabas.node.security.principal import Principal
from barnabas.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord

ALLOW_EVERYONE_KEY: Final = "allow.everyone.if.no.acl.found"
EVERYBODY: Final = "User:*"
KNOWN_MAX: Final = 20_000
"""The most decisions that are kept; when there are more, all are forgotten."""
KNOWN_NAME_MAX: Final = 256
"""Decisions about longer names are not kept: the caller chooses names, and memory is ours."""
SOME_NAME: Final = "hardcode"
"""Kafka's name for a resource that nobody has: who may use it may use some."""

ALLOWS: Final[dict[Operation, frozenset[Operation]]] = {
    operation: frozenset({operation, Operation.ALL}) for operation in Operation
} | {
    Operation.DESCRIBE: frozenset(
        {
            Operation.ALL,
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
        }
    ),
    Operation.DESCRIBE_CONFIGS: frozenset(
        {Operation.ALL, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
    ),
}
"""By operation: the operations of an ALLOW that allow it."""

SUPER_USER: Final = Decided(True, "SuperUser")
DEFAULT_ALLOW: Final = Decided(True, "DefaultAllow")
DEFAULT_DENY: Final = Decided(False, "DefaultDeny")
NOT_READY: Final = Decided(False, "AuthorizerNotReady")


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """The settings of a node's configuration."""

    super_users: frozenset[str] = frozenset()
    """As text: `User:admin`."""
    allows_everyone: bool = False
    """True if what no ACL is about is open to all."""

    @classmethod
    def from_config(cls, config: NodeConfig) -> Self | None:
        """None where the node has no authorizer."""
        if not config.get_str(AUTHORIZER_KEY).strip():
            return None
        return cls(
            parse_super_users(config.get_str(SUPER_USERS_KEY)),
            config.get_bool(ALLOW_EVERYONE_KEY),
        )


class StandardAuthorizer:
    """An `Authorizer`: one per node, which tells it of each image."""

    is_enabled: Final = True

    def __init__(self, settings: AuthorizerSettings, audit: AuditLog) -> None:
        self._super_users = settings.super_users
        self._default = DEFAULT_ALLOW if settings.allows_everyone else DEFAULT_DENY
        self._audit = audit
        self._acls = AclIndex()
        self._known: dict[tuple[Principal, str, int, int, str], Decided] = {}
        self._known_some: dict[tuple[Principal, str, int, int], bool] = {}
        self._is_ready = False
        self.generation = 0

    @property
    def is_ready(self) -> bool:
        """True if the cluster's ACLs are known."""
        return self._is_ready

    @property
    def acl_count(self) -> int:
        """The number of ACLs."""
        return len(self._acls)

    def image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        """A `metadata.publisher.ImageListener`."""
        becomes_ready = not self._is_ready and not image.is_empty
        if not delta.acls and len(image.acls) == len(self._acls) and not becomes_ready:
            return
        self._acls.follow(delta.acls, image.acls)
        self._is_ready = self._is_ready or becomes_ready
        self._known.clear()
        self._known_some.clear()
        self.generation += 1

    # -- Authorizer

    @property
    def notes_grants(self) -> bool:
        return self._audit.notes_grants()

    def allows(
        self,
        caller: Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logs_denial: bool = True,
        logs_grant: bool = True,
    ) -> bool:
        question = (caller.principal, caller.host, operation, resource_type, name)
        decided = self._known.get(question)
        if decided is None:
            decided = self._decide(*question)
            if len(name) <= KNOWN_NAME_MAX:
                if len(self._known) >= KNOWN_MAX:
                    self._known.clear()
                self._known[question] = decided
        audit = self._audit
        if decided.is_allowed:
            if is_noted(DEBUG):
                audit.granted(caller, operation, resource_type, name, decided, is_use=logs_grant)
            return True
        if logs_denial or audit.notes_all():
            audit.denied(caller, operation, resource_type, name, decided, is_attempt=logs_denial)
        return False

    def allows_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        if self.allows(caller, operation, resource_type, SOME_NAME, logs_denial=False):
            return True
        if not self._is_ready:
            return False
        question = (caller.principal, caller.host, operation, resource_type)
        some = self._known_some.get(question)
        if some is None:
            some = self._allows_some(caller, operation, resource_type)
            if len(self._known_some) >= KNOWN_MAX:
                self._known_some.clear()
            self._known_some[question] = some
        return some

    # -- rules

    def _decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: int, name: str
    ) -> Decided:
        own = str(principal)
        if own in self._super_users:
            return SUPER_USER
        if not self._is_ready:
            return NOT_READY
        is_anything_said = False
        allowing: Acl | None = None
        allows = ALLOWS[operation]
        for of_pattern in self._acls.matching(resource_type, name):
            is_anything_said = True
            for who in (own, EVERYBODY):
                for acl in of_pattern.get(who, ()):
                    if acl.host not in (WILDCARD, host):
                        continue
                    if acl.permission_type == Permission.ALLOW:
                        if acl.operation in allows:
                            allowing = acl
                    elif acl.operation in (operation, Operation.ALL):
                        return Decided(False, acl)
        if allowing is not None:
            return Decided(True, allowing)
        return DEFAULT_DENY if is_anything_said else self._default

    def _allows_some(self, caller: Caller, operation: int, resource_type: int) -> bool:
        """Return whether some ALLOW is not dominated by a DENY; operations imply no others here."""
        denied: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        allowed: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        who = dict.fromkeys((str(caller.principal), EVERYBODY))
        for acl in self._acls.of_principals(resource_type, tuple(who)):
            if acl.host not in (WILDCARD, caller.host):
                continue
            if acl.operation not in (operation, Operation.ALL):
                continue
            is_literal = acl.pattern_type == PatternType.LITERAL
            if acl.permission_type == Permission.DENY:
                if is_literal and acl.resource_name == WILDCARD:
                    return False
                denied.setdefault(acl.pattern_type, set()).add(acl.resource_name)
            elif acl.permission_type == Permission.ALLOW:
                allowed.setdefault(acl.pattern_type, set()).add(acl.resource_name)
        if WILDCARD in allowed[PatternType.LITERAL]:
            return True
        hidden = denied[PatternType.PREFIXED]
        lengths = {len(prefix) for prefix in hidden}
        return any(
            not (pattern == PatternType.LITERAL and name in denied[PatternType.LITERAL])
            and not any(name[:length] in hidden for length in lengths if length <= len(name))
            for pattern in (PatternType.LITERAL, PatternType.PREFIXED)
            for name in allowed[pattern]
        )


# -- ACLs by the resources that they are about, so that a check looks at few of them
#
# An ACL's pattern is a literal name, a prefix of names, or every name (the literal `*`). What
# applies to a resource is found by a look-up for its name, one for `*`, and one for each length
# that a prefix of this resource type has; within a pattern, by the principal. So a check with
# 100,000 ACLs costs what one with ten does. Source: Kafka's StandardAuthorizerData and AclCache.


Acl = AccessControlEntryRecord
OfPattern = dict[str, list[Acl]]
"""The ACLs of one pattern, by principal."""


class _OfType:
    """The ACLs of one type of resource."""

    __slots__ = ("by_principal", "lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.by_principal: dict[str, dict[Uuid, Acl]] = {}
        self.literal: dict[str, OfPattern] = {}
        self.prefixed: dict[str, OfPattern] = {}
        self.lengths: dict[int, int] = {}
        """How many prefixes have a length; ascending by length."""

    def add(self, acl: Acl) -> None:
        self.by_principal.setdefault(acl.principal, {})[acl.id] = acl
        name = acl.resource_name
        patterns = self._patterns(acl)
        if name not in patterns and patterns is self.prefixed:
            self.lengths[len(name)] = self.lengths.get(len(name), 0) + 1
            self.lengths = dict(sorted(self.lengths.items()))
        patterns.setdefault(name, {}).setdefault(acl.principal, []).append(acl)

    def remove(self, acl: Acl) -> None:
        own = self.by_principal[acl.principal]
        del own[acl.id]
        if not own:
            del self.by_principal[acl.principal]
        name = acl.resource_name
        patterns = self._patterns(acl)
        of_pattern = patterns[name]
        of_principal = of_pattern[acl.principal]
        of_principal[:] = [each for each in of_principal if each.id != acl.id]
        if of_principal:
            return
        del of_pattern[acl.principal]
        if of_pattern:
            return
        del patterns[name]
        if patterns is self.prefixed:
            self.lengths[len(name)] -= 1
            if not self.lengths[len(name)]:
                del self.lengths[len(name)]

    def _patterns(self, acl: Acl) -> dict[str, OfPattern]:
        return self.literal if acl.pattern_type == PatternType.LITERAL else self.prefixed


class AclIndex:
    """The ACLs of an image; follows its changes."""

    __slots__ = ("_by_id", "_by_type")

    def __init__(self) -> None:
        self._by_id: dict[Uuid, Acl] = {}
        self._by_type: dict[int, _OfType] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def follow(self, changed: Mapping[Uuid, Acl | None], acls: Mapping[Uuid, Acl]) -> None:
        """Become what `acls` are, where only `changed` differ, or else some are gone."""
        for acl_id, acl in changed.items():
            self._remove(acl_id)
            if acl is not None:
                self._add(acl)
        if len(self._by_id) != len(acls):  # a snapshot does not say what is gone
            for acl_id in self._by_id.keys() - acls.keys():
                self._remove(acl_id)

    def _add(self, acl: Acl) -> None:
        if ":" in acl.host:  # Java writes 0:0:0:0:0:0:0:1 where connections are of ::1
            acl = copy(acl)
            acl.host = normal_address(acl.host) or acl.host
        self._by_id[acl.id] = acl
        self._by_type.setdefault(acl.resource_type, _OfType()).add(acl)

    def _remove(self, acl_id: Uuid) -> None:
        acl = self._by_id.pop(acl_id, None)
        if acl is not None:
            self._by_type[acl.resource_type].remove(acl)

    def matching(self, resource_type: int, name: str) -> Iterator[OfPattern]:
        """The ACLs of a resource, pattern by pattern."""
        of_type = self._by_type.get(resource_type)
        if of_type is None:
            return
        own = of_type.literal.get(name)
        if own is not None:
            yield own
        prefixed = of_type.prefixed
        for length in of_type.lengths:
            if length > len(name):
                break
            acls = prefixed.get(name[:length])
            if acls is not None:
                yield acls
        wild = of_type.literal.get(WILDCARD)
        if wild is not None and name != WILDCARD:
            yield wild

    def of_principals(self, resource_type: int, principals: tuple[str, ...]) -> Iterator[Acl]:
        """Every ACL of some principals for a type of resource."""
        of_type = self._by_type.get(resource_type)
        if of_type is None:
            return
        for principal in principals:
            yield from of_type.by_principal.get(principal, {}).values()
