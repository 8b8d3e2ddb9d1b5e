"""The audit log: what was allowed and what was refused, to whom, and by which rule.

Lines are those of Kafka's `kafka.authorizer.logger`, by the logger `barnabas.audit`: refusals at
INFO, what was allowed at DEBUG, and at TRACE what was only looked up. Its level can be changed
while the node runs, as that of any logger (KIP-412): WARN turns it off.

Repeated refusals are written once a minute, with the number of times. Of different refusals each
principal has a budget a minute, one for what it asks to read and one for what it asks to write;
more are only counted. So clients in a loop do not fill the disk, and none can hide another's
refusals. Refused requests to administer something (delete a topic, alter an ACL) have no budget:
each is written.
"""

import logging
from collections import Counter, OrderedDict
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.clock import Clock, Timer
from barnabas.base.ids import Uuid
from barnabas.node.security.authorizer import Caller
from barnabas.node.security.principal import Principal
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord

TRACE: Final = 5
REPEAT_MS: Final = 60_000
"""For so long the same refusal is only counted."""
REFUSALS_MAX: Final = 1000
"""So many different refusals of a principal are named within REPEAT_MS, of reads and of writes."""
REMEMBERED_MAX: Final = 20_000
"""So many refusals of all principals are remembered, to tell which are repeated."""

NAME_SHOWN_MAX: Final = 256

USES: Final = frozenset(
    {
        *(key for key in ApiKey if key.name.startswith(("DESCRIBE_", "LIST_"))),
        *(key for key in ApiKey if key.name.endswith(("_DESCRIBE", "HEARTBEAT"))),
        *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.FIND_COORDINATOR),
        *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH),
        *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.LEAVE_GROUP),
        *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN),
        *(ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT),
        *(ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
    }
)
"""Requests of producers, consumers and those who look; all others administer something."""
READS: Final = frozenset({Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS})

audit = logging.getLogger("barnabas.audit")
is_noted = audit.isEnabledFor
"""Whether events of a level are logged; bound once, since every check asks."""


class Decided(NamedTuple):
    """An answer, and the ACL or the rule that gave it."""

    is_allowed: bool
    rule: AccessControlEntryRecord | str


class _Event(NamedTuple):
    caller: Caller
    operation: int
    resource_type: int
    name: str
    rule: str


_Refusal: TypeAlias = tuple[Caller, int, int, str, str | Uuid]
"""The identity of a refusal; its last part is the rule, or the id of its ACL."""
_Budget: TypeAlias = tuple[Principal, bool]
"""A principal, and whether it asked to read."""


class _Repeats:
    """A refusal that was named, and how often it happened since."""

    __slots__ = ("named_ms", "times", "what")

    def __init__(self, what: _Event, named_ms: int) -> None:
        self.what = what
        self.named_ms = named_ms
        self.times = 0


class AuditLog:
    """Writes the lines of one node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._repeats: OrderedDict[_Refusal, _Repeats] = OrderedDict()
        self._oldest_ms = 0
        """When the first of these was named."""
        self._named: Counter[_Budget] = Counter()
        """The number of refusals in `_repeats` that count for each budget."""
        self._unnamed: Counter[Principal] = Counter()
        self._timer: Timer | None = None

    def notes_grants(self) -> bool:
        """Return whether what is allowed is written too."""
        return audit.isEnabledFor(logging.DEBUG)

    def notes_all(self) -> bool:
        """Return whether what is only looked up is written too."""
        return audit.isEnabledFor(TRACE)

    def granted(
        self,
        caller: Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        decided: Decided,
        *,
        is_use: bool,
    ) -> None:
        """Something was allowed; `is_use` is False where it was only looked up."""
        level = logging.DEBUG if is_use else TRACE
        if audit.isEnabledFor(level):
            shown = name[:NAME_SHOWN_MAX]
            what = _Event(caller, operation, resource_type, shown, _shown(decided.rule))
            audit.log(level, "%s", _line(what, is_allowed=True))

    def denied(
        self,
        caller: Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        decided: Decided,
        *,
        is_attempt: bool,
    ) -> None:
        """Something was refused; `is_attempt` is False where it was only looked up."""
        if not audit.isEnabledFor(logging.INFO if is_attempt else TRACE):
            return
        rule = decided.rule
        if not is_attempt:
            shown = name[:NAME_SHOWN_MAX]
            what = _Event(caller, operation, resource_type, shown, _shown(rule))
            audit.log(TRACE, "%s", _line(what))
            return
        now_ms = self._clock.monotonic_ms()
        if self._repeats and now_ms - self._oldest_ms >= REPEAT_MS:
            self._end_repeats(now_ms)
        name = name[:NAME_SHOWN_MAX]
        # By what the rule is called: records cannot be hashed.
        key = (caller, operation, resource_type, name, rule if isinstance(rule, str) else rule.id)
        repeated = self._repeats.get(key)
        if repeated is not None:
            repeated.times += 1
        else:
            budget = _budget(caller, operation)
            is_remembered = (
                self._named[budget] < REFUSALS_MAX and len(self._repeats) < REMEMBERED_MAX
            )
            if is_remembered or caller.request not in USES:
                # As text: the record may be gone when it is repeated.
                what = _Event(caller, operation, resource_type, name, _shown(rule))
                if is_remembered:
                    if not self._repeats:
                        self._oldest_ms = now_ms
                    self._repeats[key] = _Repeats(what, now_ms)
                    self._named[budget] += 1
                audit.info("%s", _line(what))
                return
            self._unnamed[caller.principal] += 1
        if self._timer is None:
            self._timer = self._clock.call_later(REPEAT_MS, self._timer_rang)

    def close(self) -> None:
        """Say what was only counted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._end_repeats(self._clock.monotonic_ms(), after_ms=0)

    def _timer_rang(self) -> None:
        self._timer = None
        self._end_repeats(self._clock.monotonic_ms())
        if any(repeated.times for repeated in self._repeats.values()):
            self._timer = self._clock.call_later(REPEAT_MS, self._timer_rang)

    def _end_repeats(self, now_ms: int, after_ms: int = REPEAT_MS) -> None:
        """Say how often something happened, a while after it was named first."""
        ended = 0
        while self._repeats:
            key, repeated = next(iter(self._repeats.items()))
            passed_ms = now_ms - repeated.named_ms
            if passed_ms < after_ms:
                self._oldest_ms = repeated.named_ms
                break
            del self._repeats[key]
            self._named[_budget(key[0], key[1])] -= 1
            ended += 1
            if repeated.times:
                line, seconds = _line(repeated.what), passed_ms / 1000
                audit.info("%s, %d times more in %.0f s", line, repeated.times, seconds)
        self._named = +self._named
        if ended:
            for principal, times in self._unnamed.items():
                audit.info(
                    "%d more refusals of other kinds are not named, of Principal = %s",
                    *(times, _safe(str(principal))),
                )
            self._unnamed.clear()


def _budget(caller: Caller, operation: int) -> _Budget:
    return caller.principal, operation in READS


def _line(what: _Event, *, is_allowed: bool = False) -> str:
    caller = what.caller
    return (
        f"Principal = {_safe(str(caller.principal))} is {'Allowed' if is_allowed else 'Denied'} "
        f"operation = {_name(Operation, what.operation)} from host = {caller.host} "
        f"on resource = {_pascal(_name(ResourceType, what.resource_type))}:LITERAL:"
        f"{_safe(what.name)} for request = {_request(caller.request)} "
        f"with resourceRefCount = 1 based on rule {what.rule}"
    )


def _shown(rule: AccessControlEntryRecord | str) -> str:
    if isinstance(rule, str):
        return rule
    return (
        f"MatchingAcl(acl=StandardAcl(resourceType={_name(ResourceType, rule.resource_type)}, "
        f"resourceName={_safe(rule.resource_name)}, "
        f"patternType={_name(PatternType, rule.pattern_type)}, "
        f"principal={_safe(rule.principal)}, host={_safe(rule.host)}, "
        f"operation={_name(Operation, rule.operation)}, "
        f"permissionType={_name(Permission, rule.permission_type)}))"
    )


def _name(kind: type[Operation | ResourceType | PatternType | Permission], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return "UNKNOWN"


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _request(key: int) -> str:
    try:
        return _pascal(ApiKey(key).name)
    except ValueError:
        return "UNKNOWN"


def _safe(text: str) -> str:
    """A caller's text on one line: nobody writes lines of their own into this log."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
