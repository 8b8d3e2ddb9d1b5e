"""Transactions, ACLs, users and quotas as JSON. All of them concern the whole cluster.

What a form gives is checked here against Kafka's words; brokers decide the rest. A password is in
no answer, no audit log and no error.
"""

from __future__ import annotations

import sys
from typing import Any, Final, TypeVar

from barnabas.base.scram import ITERATIONS_MAX, ITERATIONS_MIN
from barnabas.console.pages.calls import BadRequestError, Call, destroying, is_unicode, of_cluster
from barnabas.console.services.transactions import MINUTES_DEFAULT
from barnabas.kafka.acls import OPERATIONS, Acl, is_principal
from barnabas.kafka.client_quotas import KEYS, KINDS, entity_text
from barnabas.kafka.scram_users import ITERATIONS_DEFAULT, MECHANISMS
from barnabas.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

PASSWORD_SIZE_MAX: Final = 1_000
NAME_SIZE_MAX: Final = 1_000

E = TypeVar("E", Operation, PatternType, Permission, ResourceType)


# -- transactions


def transactions(call: Call) -> Any:
    """A page of transactions."""
    return call.services.transactions.find(call.asked(), state=call.text("state"))


def hanging(call: Call) -> Any:
    """A page of transactions that no coordinator will end."""
    minutes = call.number("minutes", MINUTES_DEFAULT)
    if minutes < 0:
        raise BadRequestError("minutes are negative")
    found = call.services.transactions.hanging(minutes, call.text("topic") or None)
    return call.asked().of(found)


terminate = destroying(
    "abort transaction",
    "transaction",
    lambda services, name: services.transactions.terminate(name),
)


def abort_hanging(call: Call) -> Any:
    """Abort a hanging transaction in a partition; the body repeats the partition."""
    topic, partition = call.given("topic"), call.given("partition", int)
    producer, start = call.given("producer_id", int), call.given("start_offset", int)
    place = f"{topic}-{partition}"
    call.confirm(place)
    call.do(
        "abort hanging transaction",
        place,
        lambda: call.services.transactions.abort_hanging(topic, partition, producer, start),
        producer_id=producer,
        start_offset=start,
    )
    call.services.hanging.forget(topic, partition, producer)
    return {}


# -- ACLs


def acls(call: Call) -> Any:
    """A page of ACLs."""
    return call.services.acls.find(
        call.asked(), kind=call.text("kind"), permission=call.text("permission")
    )


def acl_words(_: Call) -> Any:
    """The operations of each kind of resource, for forms."""
    return {
        kind.name: sorted((one.name for one in found), key=lambda one: (one != "ALL", one))
        for kind, found in OPERATIONS.items()
    }


def add_acls(call: Call) -> Any:
    """Add ACLs: one for each operation."""
    operations = call.given("operations", list)
    if not operations or len(operations) > len(Operation):
        raise BadRequestError("operations are missing")
    made = [_acl(call, operation) for operation in operations]
    call.do(
        "add ACLs",
        made[0].principal,
        lambda: call.services.acls.add(made),
        acls=[acl.text for acl in made],
    )
    return {"added": [acl.text for acl in made]}


def remove_acl(call: Call) -> Any:
    """Remove an ACL; the body repeats its principal."""
    acl = _acl(call, call.given("operation"))
    call.confirm(acl.principal)
    call.do("remove ACL", acl.principal, lambda: call.services.acls.remove(acl), acl=acl.text)
    return {}


def _acl(call: Call, operation: Any) -> Acl:
    kind = _word(ResourceType, call.given("resource_type"), "resource_type")
    wanted = _word(Operation, operation, "operation")
    if kind not in OPERATIONS:
        raise BadRequestError(f"{kind.name} is not a kind of resource")
    if wanted not in OPERATIONS[kind]:
        known = ", ".join(sorted(one.name for one in OPERATIONS[kind]))
        raise BadRequestError(
            f"{wanted.name} is not an operation of {kind.name}, which has {known}"
        )
    pattern = _word(PatternType, call.given("pattern"), "pattern")
    permission = _word(Permission, call.given("permission"), "permission")
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise BadRequestError("pattern is LITERAL or PREFIXED")
    if permission not in (Permission.ALLOW, Permission.DENY):
        raise BadRequestError("permission is ALLOW or DENY")
    principal = _name(call.given("principal"), "principal")
    if not is_principal(principal):
        raise BadRequestError("write the principal's type first: User:NAME")
    if kind is ResourceType.CLUSTER:
        name, pattern = CLUSTER_NAME, PatternType.LITERAL
    else:
        name = _name(call.given("name"), "name")
    host = _name(call.given("host"), "host")
    return Acl(kind, name, pattern, principal, host, wanted, permission)


def _word(kind: type[E], text: Any, what: str) -> E:
    try:
        return kind[str(text)]
    except KeyError:
        raise BadRequestError(f"{what} is not one of Kafka's words") from None


def _name(text: str, what: str) -> str:
    if not text.strip() or len(text) > NAME_SIZE_MAX:
        raise BadRequestError(f"{what} is missing or too long")
    if not is_unicode(text):
        raise BadRequestError(f"{what} is not text")
    return text


# -- users


def users(call: Call) -> Any:
    """A page of users."""
    return call.services.users.find(call.asked())


def create_user(call: Call) -> Any:
    """Create a user."""
    name = _name(call.given("name"), "name")
    mechanisms = call.body.get("mechanisms", list(MECHANISMS))
    if (
        not isinstance(mechanisms, list)
        or not mechanisms
        or not all(one in MECHANISMS for one in mechanisms)
    ):
        raise BadRequestError(f"mechanisms are some of {', '.join(MECHANISMS)}")
    password, iterations = _password(call), _iterations(call)
    call.do(
        "create user",
        name,
        lambda: call.services.users.create(name, password, mechanisms, iterations),
        mechanisms=mechanisms,
    )
    return {"name": name}


def change_password(call: Call) -> Any:
    """Change a user's password."""
    name, password = call.path["user"], _password(call)
    iterations = _iterations(call) if "iterations" in call.body else None
    call.do(
        "change password",
        name,
        lambda: call.services.users.change_password(name, password, iterations),
    )
    return {}


delete_user = destroying("delete user", "user", lambda services, name: services.users.delete(name))


def _password(call: Call) -> str:
    found = call.body.get("password")
    if not isinstance(found, str) or not found or len(found) > PASSWORD_SIZE_MAX:
        raise BadRequestError("password is missing or too long")
    if not is_unicode(found):
        raise BadRequestError("password is not text")
    return found


def _iterations(call: Call) -> int:
    found = call.body.get("iterations", ITERATIONS_DEFAULT)
    if type(found) is not int or not ITERATIONS_MIN <= found <= ITERATIONS_MAX:
        raise BadRequestError(f"iterations are from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return found


# -- quotas


def quotas(call: Call) -> Any:
    """A page of quotas."""
    return call.services.quotas.find(call.asked(), kind=call.text("kind"))


def quota_words(_: Call) -> Any:
    """The quotas there are, with what each limits."""
    return KEYS


def change_quota(call: Call) -> Any:
    """Set limits of one entity; null removes one."""
    entity = _entity(call)
    limits = call.given("values", dict)
    if not limits:
        raise BadRequestError("values are missing")
    for key, value in limits.items():
        if key not in KEYS:
            raise BadRequestError(f"there are the quotas {', '.join(KEYS)}")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 < value <= sys.float_info.max):
            raise BadRequestError(f"{key} is not a number above 0")
    values = {key: float(value) for key, value in limits.items() if value is not None}
    removed = [key for key, value in limits.items() if value is None]
    call.do(
        "change quota",
        entity_text(entity),
        lambda: call.services.quotas.change(entity, values, removed),
        values=limits,
    )
    return {}


def remove_quota(call: Call) -> Any:
    """Remove all limits of one entity; the body repeats the entity as it is shown."""
    entity = _entity(call)
    call.confirm(entity_text(entity))
    removed = call.do(
        "remove quota", entity_text(entity), lambda: call.services.quotas.remove(entity)
    )
    return {"removed": removed}


def _entity(call: Call) -> dict[str, str | None]:
    given: dict[str, str | None] = call.given("entity", dict)
    if not given or not set(given) <= set(KINDS):
        raise BadRequestError(f"entity names some of {', '.join(KINDS)}")
    if "ip" in given and len(given) > 1:
        raise BadRequestError("an ip goes with neither a user nor a client-id")
    for kind, name in given.items():
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise BadRequestError(f"{kind} is a name, or null for the default")
        if name is not None:
            _name(name, kind)
    return given


ENDPOINTS = (
    of_cluster("GET", "/api/transactions", "view", "the list of transactions", transactions),
    of_cluster("GET", "/api/hanging", "view", "hanging transactions", hanging),
    of_cluster(
        "POST", "/api/transactions/{transaction}/abort", "admin", "aborting transactions", terminate
    ),
    of_cluster("POST", "/api/hanging/abort", "admin", "aborting transactions", abort_hanging),
    of_cluster("GET", "/api/acls", "view", "the list of ACLs", acls),
    of_cluster("GET", "/api/acls/words", "view", "the list of ACLs", acl_words),
    of_cluster("POST", "/api/acls", "admin", "adding ACLs", add_acls),
    of_cluster("DELETE", "/api/acls", "admin", "removing ACLs", remove_acl),
    of_cluster("GET", "/api/users", "view", "the list of users", users),
    of_cluster("POST", "/api/users", "admin", "creating users", create_user),
    of_cluster(
        "POST", "/api/users/{user}/password", "admin", "changing passwords", change_password
    ),
    of_cluster("DELETE", "/api/users/{user}", "admin", "deleting users", delete_user),
    of_cluster("GET", "/api/quotas", "view", "the list of quotas", quotas),
    of_cluster("GET", "/api/quotas/words", "view", "the list of quotas", quota_words),
    of_cluster("POST", "/api/quotas", "edit", "changing quotas", change_quota),
    of_cluster("DELETE", "/api/quotas", "admin", "removing quotas", remove_quota),
)
