"""AlterConfigs and IncrementalAlterConfigs as the controller decides them."""

from typing import Any

import pytest
from controller_harness import Harness

from barnabas.node.broker.controller.handlers import without_refused
from barnabas.node.metadata.controller.config_changes import Operation
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import MetadataVersion
from barnabas.protocol.messages import configs as legacy
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.metadata_records import ClearElrRecord, ConfigRecord
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
GROUP, METRICS = ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS
SET, DELETE, APPEND, SUBTRACT = Operation

Change = tuple[str, Operation | int, str | None]


@pytest.fixture
def controller() -> Harness:
    harness = Harness()
    harness.add_brokers(2)
    harness.do(
        CreateTopicsRequest(
            topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
        )
    )
    return harness


def alter(
    controller: Harness,
    kind: int,
    name: str,
    *changes: Change,
    validate_only: bool = False,
) -> tuple[ErrorCode, str]:
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    [result] = controller.do(request).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return ErrorCode(result.error_code), result.error_message or ""


def replace(controller: Harness, kind: int, name: str, **values: str | None) -> Any:
    resource = legacy.AlterConfigsAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            legacy.AlterConfigsAlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in values.items()
        ],
    )
    [result] = controller.do(legacy.AlterConfigsRequest(resources=[resource])).responses
    return ErrorCode(result.error_code)


def held(controller: Harness, kind: int, name: str) -> dict[str, str]:
    return dict(controller.image.configs.for_resource(kind, name))


def test_set_and_delete(controller: Harness) -> None:
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5"))[0] == 0
    assert held(controller, TOPIC, "t") == {"retention.ms": "5"}
    alter(controller, TOPIC, "t", ("retention.ms", DELETE, None), ("segment.ms", SET, "6"))
    assert held(controller, TOPIC, "t") == {"segment.ms": "6"}


def test_lists_are_appended_to_and_taken_from(controller: Harness) -> None:
    alter(controller, TOPIC, "t", ("cleanup.policy", APPEND, "compact"))
    assert held(controller, TOPIC, "t") == {"cleanup.policy": "delete,compact"}
    alter(controller, TOPIC, "t", ("cleanup.policy", APPEND, "compact"))
    assert held(controller, TOPIC, "t") == {"cleanup.policy": "delete,compact"}
    alter(controller, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))
    assert held(controller, TOPIC, "t") == {"cleanup.policy": "compact"}


def test_what_is_set_already_writes_nothing_for_a_topic(controller: Harness) -> None:
    alter(controller, TOPIC, "t", ("retention.ms", SET, "5"))
    alter(controller, TOPIC, "t", ("retention.ms", SET, "5"))
    assert controller.records == []


def test_what_is_set_already_is_written_again_for_a_broker(controller: Harness) -> None:
    for _ in range(2):
        alter(controller, BROKER, "0", ("log.retention.ms", SET, "9000"))
        assert [type(record.message) for record in controller.records] == [ConfigRecord]


def test_validate_only_changes_nothing(controller: Harness) -> None:
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True)[0] == 0
    assert held(controller, TOPIC, "t") == {}


def test_one_bad_value_leaves_the_resource_as_it_was(controller: Harness) -> None:
    code, _ = alter(
        controller, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "never")
    )
    assert code is ErrorCode.INVALID_CONFIG
    assert held(controller, TOPIC, "t") == {}


REFUSED: dict[str, tuple[int, str, tuple[Change, ...], ErrorCode, str]] = {
    "unknown topic": (
        TOPIC,
        "x",
        (("retention.ms", SET, "5"),),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "does not exist",
    ),
    "all topics": (TOPIC, "", (), ErrorCode.INVALID_REQUEST, "Default topic resources"),
    "bad topic name": (TOPIC, "a b", (), ErrorCode.INVALID_TOPIC_EXCEPTION, "invalid"),
    "unknown key": (TOPIC, "t", (("no.key", SET, "5"),), ErrorCode.INVALID_CONFIG, "no.key"),
    "bad value": (
        TOPIC,
        "t",
        (("max.message.bytes", SET, "-1"),),
        ErrorCode.INVALID_CONFIG,
        "max.message.bytes",
    ),
    "null value": (
        TOPIC,
        "t",
        (("retention.ms", SET, None),),
        ErrorCode.INVALID_REQUEST,
        "Null value not supported for : retention.ms",
    ),
    "key twice": (
        TOPIC,
        "t",
        (("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        ErrorCode.INVALID_REQUEST,
        "duplicate config keys",
    ),
    "append to a number": (
        TOPIC,
        "t",
        (("retention.ms", APPEND, "1"),),
        ErrorCode.INVALID_CONFIG,
        "Can't APPEND to key retention.ms",
    ),
    "unknown operation": (TOPIC, "t", (("retention.ms", 9, "1"),), ErrorCode.INVALID_REQUEST, "9"),
    "unknown type": (3, "t", (), ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
    "broker name": (BROKER, "one", (), ErrorCode.INVALID_REQUEST, "Unable to parse"),
    "unknown broker": (BROKER, "7", (), ErrorCode.BROKER_ID_NOT_REGISTERED, "7"),
    "read-only": (
        BROKER,
        "0",
        (("process.roles", SET, "broker"),),
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: process.roles",
    ),
    "per-broker for all": (
        BROKER,
        "",
        (("cordoned.log.dirs", SET, "/a"),),
        ErrorCode.INVALID_REQUEST,
        "default cluster level",
    ),
    "bad broker value": (
        BROKER,
        "",
        (("log.segment.bytes", SET, "few"),),
        ErrorCode.INVALID_REQUEST,
        "log.segment.bytes",
    ),
    "a broker that nobody could connect to": (
        BROKER,
        "",
        (("max.connection.creation.rate", SET, "0"),),
        ErrorCode.INVALID_REQUEST,
        "Invalid max.connection.creation.rate 0",
    ),
    "a listener that nobody could connect to": (
        BROKER,
        "0",
        (("listener.name.plaintext.max.connections", SET, "0"),),
        ErrorCode.INVALID_REQUEST,
        "Invalid max.connections 0",
    ),
    "a listener's rate for all brokers": (
        BROKER,
        "",
        (("listener.name.plaintext.max.connection.creation.rate", SET, "5"),),
        ErrorCode.INVALID_REQUEST,
        "default cluster level",
    ),
    "minimum of one broker": (
        BROKER,
        "0",
        (("min.insync.replicas", SET, "2"),),
        ErrorCode.INVALID_CONFIG,
        "Broker-level min.insync.replicas",
    ),
    "no minimum": (
        BROKER,
        "",
        (("min.insync.replicas", DELETE, None),),
        ErrorCode.INVALID_CONFIG,
        "cannot be removed",
    ),
    "all groups": (GROUP, "", (), ErrorCode.INVALID_REQUEST, "Default group resources"),
    "unknown group key": (GROUP, "g", (("x", SET, "1"),), ErrorCode.INVALID_CONFIG, "x"),
    "group beyond the broker's bound": (
        GROUP,
        "g",
        (("consumer.session.timeout.ms", SET, "1"),),
        ErrorCode.INVALID_CONFIG,
        "group.consumer.min.session.timeout.ms",
    ),
    "heartbeats too rare": (
        GROUP,
        "g",
        (
            ("consumer.session.timeout.ms", SET, "45000"),
            ("consumer.heartbeat.interval.ms", SET, "15000"),
            ("share.heartbeat.interval.ms", SET, "15000"),
            ("share.session.timeout.ms", SET, "45001"),
            ("streams.session.timeout.ms", SET, "99999999"),
        ),
        ErrorCode.INVALID_CONFIG,
        "streams.session.timeout.ms",
    ),
    "nameless metrics": (METRICS, "", (), ErrorCode.INVALID_REQUEST, "can't be empty"),
    "metrics too often": (
        METRICS,
        "m",
        (("interval.ms", SET, "5"),),
        ErrorCode.INVALID_REQUEST,
        "between",
    ),
    "metrics of nobody": (
        METRICS,
        "m",
        (("match", SET, "client_shoe=x"),),
        ErrorCode.INVALID_CONFIG,
        "client_shoe",
    ),
    "metrics pattern": (
        METRICS,
        "m",
        (("match", SET, "client_id=("),),
        ErrorCode.INVALID_CONFIG,
        "client_id=(",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_changes(controller: Harness, case: str) -> None:
    kind, name, changes, expected, words = REFUSED[case]
    before = controller.image.configs
    code, message = alter(controller, kind, name, *changes)
    assert code is expected
    assert words in message
    assert controller.image.configs.by_resource == before.by_resource


def test_a_resource_given_twice_is_refused_once(controller: Harness) -> None:
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t")
    response = controller.do(IncrementalAlterConfigsRequest(resources=[resource, resource]))
    assert [result.error_code for result in response.responses] == [ErrorCode.INVALID_REQUEST]


def test_groups_and_metrics_need_not_exist(controller: Harness) -> None:
    assert alter(controller, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))[0] == 0
    assert alter(controller, METRICS, "m", ("match", SET, "client_id=a.*"))[0] == 0
    assert held(controller, GROUP, "g") == {"consumer.session.timeout.ms": "50000"}


def test_legacy_requests_replace_everything(controller: Harness) -> None:
    alter(controller, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "6"))
    assert replace(controller, TOPIC, "t", segment_ms="7") == 0
    assert held(controller, TOPIC, "t") == {"segment.ms": "7"}
    assert replace(controller, TOPIC, "t", retention_ms=None) is ErrorCode.INVALID_REQUEST
    assert replace(controller, TOPIC, "t") == 0
    assert held(controller, TOPIC, "t") == {}


def test_another_minimum_clears_eligible_leaders(controller: Harness) -> None:
    alter(controller, TOPIC, "t", ("min.insync.replicas", SET, "2"))
    alter(controller, BROKER, "", ("min.insync.replicas", SET, "2"))
    [*_, last] = controller.records
    assert isinstance(last.message, ClearElrRecord)
    assert last.message.topic_name == ""


def test_dynamic_broker_values_hold_for_topics(controller: Harness) -> None:
    alter(controller, BROKER, "", ("log.retention.ms", SET, "1000"))
    configs = controller.image.configs
    assert controller.effective.topic(configs, "t")["retention.ms"] == 1000
    alter(controller, BROKER, "0", ("log.retention.ms", SET, "2000"))
    configs = controller.image.configs
    assert controller.effective.topic(configs, "t")["retention.ms"] == 2000
    alter(controller, TOPIC, "t", ("retention.ms", SET, "3000"))
    configs = controller.image.configs
    assert controller.effective.topic(configs, "t")["retention.ms"] == 3000


# -- throttles, as kafka-reassign-partitions sets them

THROTTLES: dict[str, tuple[int, str, Change, ErrorCode]] = {
    "a broker's leaders": (
        BROKER, "0", ("leader.replication.throttled.rate", SET, "1000000"), ErrorCode.NONE
    ),
    "a broker's followers": (
        BROKER, "1", ("follower.replication.throttled.rate", SET, "5"), ErrorCode.NONE
    ),
    "all brokers": (BROKER, "", ("follower.replication.throttled.rate", SET, "5"), ErrorCode.NONE),
    "a negative rate": (
        BROKER, "0", ("leader.replication.throttled.rate", SET, "-1"), ErrorCode.INVALID_REQUEST
    ),
    "replicas of leaders": (
        TOPIC, "t", ("leader.replication.throttled.replicas", SET, "0:0,1:1"), ErrorCode.NONE
    ),
    "all replicas": (
        TOPIC, "t", ("follower.replication.throttled.replicas", SET, "*"), ErrorCode.NONE
    ),
    "no replicas": (
        TOPIC, "t", ("follower.replication.throttled.replicas", SET, "zero:0"),
        ErrorCode.INVALID_CONFIG,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", THROTTLES)
def test_throttles_are_kept(controller: Harness, case: str) -> None:
    kind, name, change, code = THROTTLES[case]
    assert alter(controller, kind, name, change)[0] is code
    key, _, value = change
    assert held(controller, kind, name).get(key) == (value if code is ErrorCode.NONE else None)


def test_throttled_replicas_are_added_and_taken_away(controller: Harness) -> None:
    key = "leader.replication.throttled.replicas"
    alter(controller, TOPIC, "t", (key, APPEND, "0:0"))
    alter(controller, TOPIC, "t", (key, APPEND, "0:1"))
    assert held(controller, TOPIC, "t") == {key: "0:0,0:1"}
    alter(controller, TOPIC, "t", (key, SUBTRACT, "0:0"))
    assert held(controller, TOPIC, "t") == {key: "0:1"}


def test_cordoned_directories_need_a_metadata_version_that_knows_them() -> None:
    old = Harness(MetadataVersion.IBP_4_2_IV1)
    old.add_brokers(1)
    for operation, value in ((SET, ""), (DELETE, None)):
        code, message = alter(old, BROKER, "0", ("cordoned.log.dirs", operation, value))
        assert code is ErrorCode.INVALID_CONFIG
        assert "requires metadata.version >= 4.3-IV0" in message


CORDONED_DIRECTLY = {
    "nothing set, one added": (None, SET, "/a", False),
    "nothing set, all added": (None, SET, "*", False),
    "emptied": ("/a,/b", SET, "", True),
    "removed": ("/a,/b", DELETE, None, True),
    "fewer": ("/a,/b", SET, "/b", True),
    "the same, with blanks": ("/a,/b", SET, " /b , /a", True),
    "another": ("/a,/b", SET, "/c", False),
    "one taken out": ("/a,/b", SUBTRACT, "/a", True),
    "one put in": ("/a,/b", APPEND, "/c", False),
    "all, by name": ("*", SET, "/a", False),
}


@pytest.mark.parametrize(
    ("current", "operation", "value", "is_allowed"),
    CORDONED_DIRECTLY.values(),
    ids=CORDONED_DIRECTLY,
)
def test_a_controller_lets_directories_out_of_the_cordon_and_none_in(
    controller: Harness, current: str | None, operation: int, value: str | None, is_allowed: bool
) -> None:
    if current is not None:
        record = ConfigRecord(
            resource_type=BROKER, resource_name="1", name="cordoned.log.dirs", value=current
        )
        controller.append([MetadataRecord(record)])
    resources = [
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[AlterableConfig(name=key, config_operation=change, value=text)],
        )
        for kind, name, key, change, text in (
            (BROKER, "1", "cordoned.log.dirs", operation, value),
            (BROKER, "1", "log.retention.ms", SET, "1"),
            (TOPIC, "t", "retention.ms", SET, "1"),
        )
    ]
    first, unrelated, topic = resources
    request = IncrementalAlterConfigsRequest(resources=[first, topic], validate_only=True)
    left, refused = without_refused(controller.image, request, AlterConfigsResourceResponse)
    assert left.validate_only
    assert left.resources == ([first, topic] if is_allowed else [topic])
    codes = [(answer.resource_type, answer.resource_name, answer.error_code) for answer in refused]
    assert codes == ([] if is_allowed else [(BROKER, "1", ErrorCode.INVALID_CONFIG)])
    other = IncrementalAlterConfigsRequest(resources=[unrelated])
    found = without_refused(controller.image, other, AlterConfigsResourceResponse)
    assert found == (other, [])


def test_a_controller_is_asked_to_replace_the_cordon(controller: Harness) -> None:
    for value in ("/a", "*"):
        resource = legacy.AlterConfigsAlterConfigsResource(
            resource_type=BROKER,
            resource_name="1",
            configs=[legacy.AlterConfigsAlterableConfig(name="cordoned.log.dirs", value=value)],
        )
        request = legacy.AlterConfigsRequest(resources=[resource])
        left, refused = without_refused(
            controller.image, request, legacy.AlterConfigsResourceResponse
        )
        assert left.resources == []
        assert [answer.error_code for answer in refused] == [ErrorCode.INVALID_CONFIG]
