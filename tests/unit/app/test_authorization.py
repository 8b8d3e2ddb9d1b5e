"""Warnings at a node's start about an authorizer that would refuse other nodes; the audit log."""

import logging
from pathlib import Path
from typing import Any

import pytest

from barnabas.app.authorization import Authorization
from barnabas.base.errors import ConfigError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.security.audit import audit
from barnabas.node.security.authorizer import ALLOW_ALL, Caller
from barnabas.node.security.principal import Principal
from barnabas.protocol.acls import Operation, ResourceType
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
    """Metadata that records the checks and listeners it is given."""

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
        (STANDARD, "connect as User:ANONYMOUS over CONTROLLER, PLAINTEXT (PLAINTEXT)"),
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


def test_the_audit_log_has_a_file_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.log"
    values = STANDARD | {"super.users": "User:ANONYMOUS", "barnabas.audit.file": str(path)}
    metadata: Any = Metadata()
    config = NodeConfig.from_properties(NODE | values)
    authorization = Authorization(config, ManualClock(), metadata)
    try:
        caller = Caller(Principal("User", "bob"), "10.0.0.1", 0)
        authorizer = authorization.authorizer
        for _ in range(3):
            authorizer.allows(caller, Operation.WRITE, ResourceType.TOPIC, "orders")
    finally:
        authorization.close()
        audit.setLevel(logging.NOTSET)
    lines = path.read_text().splitlines()
    assert "User:bob is Denied operation = WRITE" in lines[0]
    assert lines[1].endswith("2 times more in 0 s")
    assert path.stat().st_mode & 0o777 == 0o600
    assert caplog.messages == []
    assert audit.propagate
    assert audit.handlers == []


def test_a_file_that_cannot_be_written_stops_the_node(tmp_path: Path) -> None:
    values = STANDARD | {"barnabas.audit.file": str(tmp_path / "nowhere" / "audit.log")}
    metadata: Any = Metadata()
    with pytest.raises(ConfigError, match="cannot be written"):
        Authorization(NodeConfig.from_properties(NODE | values), ManualClock(), metadata)
