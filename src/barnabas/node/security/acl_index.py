"""ACLs by the resources that they are about, so that a check looks at few of them.

An ACL's pattern is a literal name, a prefix of names, or every name (the literal `*`). What
applies to a resource is found by a look-up for its name, one for `*`, and one for each length that
a prefix of this resource type has; within a pattern, by the principal. So a check with 100,000 ACLs
costs what one with ten does. Source: Kafka's StandardAuthorizerData and AclCache.
"""

from collections.abc import Iterator, Mapping
from copy import copy

from barnabas.base.addresses import normal_address
from barnabas.base.ids import Uuid
from barnabas.protocol.acls import WILDCARD, PatternType
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord

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
