"""What a node says at its start of an authorizer that its other nodes cannot get past."""

from typing import Any

import pytest

from barnabas.app.authorization import Authorization
from barnabas.base.config.node import NodeConfig
from barnabas.security.authorizer import ALLOW_ALL
from sim.manual_clock import ManualClock

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "log.dirs": "/data",
}
STANDARD = {"authorizer.class.name": "StandardAuthorizer"}


class Metadata:
    """Is given checks, and listeners."""

    checks: Any = None

    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def add_listener(self, listener: Any) -> None:
        self.listeners.append(listener)


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ({}, None),
        ({"super.users": "User:admin"}, "have no effect without authorizer.class.name"),
        ({"allow.everyone.if.no.acl.found": "true"}, "everybody may do everything"),
        (STANDARD, "come as User:ANONYMOUS over CONTROLLER, PLAINTEXT (PLAINTEXT)"),
        (STANDARD | {"super.users": "User:admin"}, "ClusterAction"),
        (STANDARD | {"super.users": "User:admin;User:ANONYMOUS"}, None),
        (STANDARD | {"allow.everyone.if.no.acl.found": "true"}, None),
    ],
)
def test_what_is_said_at_the_start(
    values: dict[str, str], warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    metadata: Any = Metadata()
    config = NodeConfig.from_properties(NODE | values)
    authorization = Authorization(config, ManualClock(), metadata)
    is_on = "authorizer.class.name" in values
    assert (authorization.authorizer is not ALLOW_ALL) is is_on
    assert len(metadata.listeners) == is_on
    assert metadata.checks is not None
    assert len(caplog.messages) == (warning is not None)
    assert warning is None or warning in caplog.messages[0]
