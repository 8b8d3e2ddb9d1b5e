"""Files of connect-mirror-maker.sh, as workers and connectors."""

from __future__ import annotations

import logging

import pytest

from barnabas.connect.connectors.mirror import dedicated
from barnabas.connect.connectors.mirror.dedicated import DedicatedMirror, read_flows
from barnabas.connect.errors.requests import (
    BadRequestError,
    ElsewhereError,
    RebalanceNeededError,
)
from barnabas.connect.worker.memory_store import MemoryStore
from barnabas.connect.worker.offset_file import OffsetFile
from barnabas.schemas.data.errors import ConfigError, ConnectError

GIVEN = {
    "clusters": "west, east",
    "west.bootstrap.servers": "w:1",
    "east.bootstrap.servers": "e:1",
    "east.security.protocol": "SSL",
    "west.consumer.fetch.min.bytes": "7",
    "ssl.endpoint.identification.algorithm": "",
    "west->east.enabled": "true",
    "west->east.topics": "orders",
    "east->west.emit.heartbeats.enabled": "false",
    "replication.factor": "1",
    "tasks.max": "3",
    "offset.storage.replication.factor": "1",
    "east.offset.flush.interval.ms": "1000",
}


def test_flows() -> None:
    (flow,) = read_flows(GIVEN)
    assert (flow.source, flow.target) == ("west", "east")
    worker = flow.worker
    assert worker["bootstrap.servers"] == "e:1"
    assert worker["group.id"] == "west-mm2"
    assert worker["config.storage.topic"] == "mm2-configs.west.internal"
    assert worker["offset.storage.replication.factor"] == "1"
    assert worker["offset.flush.interval.ms"] == "1000"
    assert worker["security.protocol"] == "SSL"
    source = flow.connectors["MirrorSourceConnector"]
    assert source["enabled"] == "true"
    assert source["topics"] == "orders"
    assert source["tasks.max"] == "3"
    assert source["replication.factor"] == "1"
    assert source["source.cluster.bootstrap.servers"] == "w:1"
    assert source["source.consumer.fetch.min.bytes"] == "7"
    assert source["target.cluster.security.protocol"] == "SSL"
    assert source["target.cluster.alias"] == "east"
    assert set(flow.connectors) == {
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    }


def test_heartbeats_alone_make_a_flow() -> None:
    found = read_flows({**GIVEN, "east->west.emit.heartbeats.enabled": "true"})
    assert [(one.source, one.target) for one in found] == [("west", "east"), ("east", "west")]
    assert found[1].connectors["MirrorSourceConnector"]["enabled"] == "false"


@pytest.mark.parametrize(
    ("left_out", "text"),
    [("clusters", '"clusters"'), ("west.bootstrap.servers", "west.bootstrap.servers")],
)
def test_what_must_be_there(left_out: str, text: str) -> None:
    given = {name: value for name, value in GIVEN.items() if name != left_out}
    with pytest.raises(ConfigError, match=text):
        read_flows(given)


class Leader:
    """A leading herder; it raises each error in `refusals` once."""

    def __init__(self) -> None:
        self.store = MemoryStore(OffsetFile(""))
        self.refusals: dict[str, list[ConnectError]] = {}
        self.put_names: list[str] = []

    def start(self) -> None: ...

    def wait_until_ready(self, _: float) -> bool:
        return True

    def put(
        self, name: str, config: dict[str, str], target: str | None, *, may_replace: bool
    ) -> None:
        self.put_names.append(name)
        if self.refusals.get(name):
            raise self.refusals[name].pop(0)
        self.store.put_connector(name, config, target)

    def close(self) -> None: ...


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> Leader:
    made = Leader()
    monkeypatch.setattr(dedicated, "make_herder", lambda *_, **__: made)
    monkeypatch.setattr(dedicated, "DistributedHerder", Leader)
    monkeypatch.setattr(dedicated, "_RETRY_SECONDS", 0.0)
    return made


def test_what_is_configured_already_runs_on(leader: Leader) -> None:
    DedicatedMirror(GIVEN).start()
    assert len(leader.put_names) == 3
    DedicatedMirror(GIVEN).start()
    assert len(leader.put_names) == 3
    DedicatedMirror({**GIVEN, "west->east.topics": "others"}).start()
    assert leader.put_names[3:] == leader.put_names[:3]


def test_a_group_that_changes_is_asked_again_and_an_error_is_told(
    leader: Leader, caplog: pytest.LogCaptureFixture
) -> None:
    leader.refusals = {
        "MirrorSourceConnector": [RebalanceNeededError(), RebalanceNeededError()],
        "MirrorCheckpointConnector": [BadRequestError("offset syncs are off")],
        "MirrorHeartbeatConnector": [ElsewhereError("not the leader", None)],
    }
    DedicatedMirror(GIVEN).start()
    assert list(leader.store.snapshot().connectors) == ["MirrorSourceConnector"]
    errors = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert errors == [
        "west->east: MirrorCheckpointConnector cannot be configured: offset syncs are off"
    ]
