"""The authorizer finds by its index what one finds by looking at every ACL."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from barnabas.node.security.authorizer import Caller
from barnabas.node.security.principal import Principal
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.metadata_records import AccessControlEntryRecord
from support.acl_world import AclWorld, acl

NAMES: Final = ["a", "ab", "abc", "abd", "b", "ba", "*", "*a"]
USERS: Final = ["alice", "bob", "*"]
HOSTS: Final = ["10.0.0.1", "10.0.0.2", "*"]
OPERATIONS: Final = list(Operation)[2:]
TYPES: Final = [ResourceType.TOPIC, ResourceType.GROUP]
IMPLIED: Final = {
    Operation.DESCRIBE: [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER],
    Operation.DESCRIBE_CONFIGS: [Operation.ALTER_CONFIGS],
}
Acls = dict[int, AccessControlEntryRecord]


def naive(
    acls: Acls, allows_everyone: bool, user: str, host: str, operation: int, kind: int, name: str
) -> bool:
    """Kafka's rules in their plainest form."""
    about = [
        each
        for each in acls.values()
        if each.resource_type == kind
        and (
            (each.pattern_type == PatternType.LITERAL and each.resource_name in (name, "*"))
            or (each.pattern_type == PatternType.PREFIXED and name.startswith(each.resource_name))
        )
    ]
    if not about:
        return allows_everyone
    fitting = [
        each
        for each in about
        if each.principal in (f"User:{user}", "User:*") and each.host in (host, "*")
    ]
    for each in fitting:
        if each.permission_type == Permission.DENY and each.operation in (operation, Operation.ALL):
            return False
    granting = [operation, Operation.ALL, *IMPLIED.get(Operation(operation), [])]
    return any(
        each.permission_type == Permission.ALLOW and each.operation in granting for each in fitting
    )


def naive_some(acls: Acls, user: str, host: str, operation: int, kind: int) -> bool:
    """Kafka's rule by resource type: an ALLOW that no DENY hides wholly."""
    fitting = [
        each
        for each in acls.values()
        if each.resource_type == kind
        and each.principal in (f"User:{user}", "User:*")
        and each.host in (host, "*")
        and each.operation in (operation, Operation.ALL)
    ]
    denies = [each for each in fitting if each.permission_type == Permission.DENY]
    allows = [each for each in fitting if each.permission_type == Permission.ALLOW]
    literal = PatternType.LITERAL
    if any(each.pattern_type == literal and each.resource_name == "*" for each in denies):
        return False
    if any(each.pattern_type == literal and each.resource_name == "*" for each in allows):
        return True
    return any(
        not any(
            allow.resource_name.startswith(deny.resource_name)
            if deny.pattern_type == PatternType.PREFIXED
            else allow.pattern_type == literal and allow.resource_name == deny.resource_name
            for deny in denies
        )
        for allow in allows
    )


some_acl = st.builds(
    acl,
    st.integers(1, 12),
    principal=st.sampled_from([f"User:{user}" for user in USERS]),
    operation=st.sampled_from(OPERATIONS),
    name=st.sampled_from(NAMES),
    resource_type=st.sampled_from(TYPES),
    pattern=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    permission=st.sampled_from([Permission.ALLOW, Permission.DENY]),
    host=st.sampled_from(HOSTS),
)
steps = st.lists(st.one_of(some_acl, st.integers(1, 12)), max_size=16)
questions = st.lists(
    st.tuples(
        st.sampled_from(USERS[:2]),
        st.sampled_from(HOSTS[:2]),
        st.sampled_from(OPERATIONS),
        st.sampled_from(TYPES),
        st.sampled_from([*NAMES, "abcd", "", "c"]),
    ),
    min_size=1,
    max_size=12,
)


@given(steps=steps, questions=questions, allows_everyone=st.booleans(), by_snapshot=st.booleans())
def test_every_answer_is_that_of_all_acls(
    steps: list[AccessControlEntryRecord | int],
    questions: list[tuple[str, str, Operation, ResourceType, str]],
    allows_everyone: bool,
    by_snapshot: bool,
) -> None:
    world = AclWorld(allows_everyone=allows_everyone)
    acls: Acls = {}

    def compare() -> None:
        for user, host, operation, kind, name in questions:
            caller = Caller(Principal("User", user), host)
            assert world.authorizer.allows(
                caller, operation, kind, name, logs_denial=False
            ) is naive(acls, allows_everyone, user, host, operation, kind, name)
            assert world.authorizer.allows_some(caller, operation, kind) is (
                naive(acls, allows_everyone, user, host, operation, kind, "hardcode")
                or naive_some(acls, user, host, operation, kind)
            )

    for step in steps:
        if isinstance(step, int):
            if acls.pop(step, None) is None:
                continue
            if not by_snapshot:
                world.remove(step)
        else:
            acls[int.from_bytes(step.id)] = step
            if not by_snapshot:
                world.replay(step)
        if by_snapshot:
            world.load_snapshot(*acls.values())
        compare()
    assert world.authorizer.acl_count == len(acls)
    compare()
