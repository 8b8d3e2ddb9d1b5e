"""Grants: the authorizer is asked once about a name; long names are not kept in memory."""

from typing import Any

from barnabas.node.broker.grants import NAME_SIZE_MAX, Remembered
from barnabas.node.security.authorizer import AllowAll, Caller
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.acls import Operation, ResourceType


class Counting(AllowAll):
    """Counts what it is asked."""

    asked = 0

    def allows(self, *question: Any, **logs: Any) -> bool:
        self.asked += 1
        return True


def test_a_name_is_asked_about_once_and_a_long_one_is_not_kept() -> None:
    authorizer = Counting()
    caller = Caller(ANONYMOUS, "localhost")
    ids = Remembered(authorizer, caller, Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
    for name, times in (("a" * NAME_SIZE_MAX, 1), ("b" * (NAME_SIZE_MAX + 1), 3)):
        before = authorizer.asked
        assert all(ids.allows(name) for _ in range(3))
        assert authorizer.asked - before == times
