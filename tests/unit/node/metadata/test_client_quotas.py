"""AlterClientQuotas and DescribeClientQuotas: who may be limited, in what, and who is found."""

import math
from typing import Any

import pytest
from controller_harness import Harness

from barnabas.node.metadata.quota_filter import QuotaFilterError, matching_quotas
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

Entity = dict[str, str | None]
REMOVE = None
BYTES = "producer_byte_rate"


def entry(entity: Entity, **ops: float | None) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in ops.items()
        ],
    )


def alter(
    controller: Harness, *entries: AlterClientQuotasRequestEntryData, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    response = controller.do(request)
    return [(entry.error_code, entry.error_message) for entry in response.entries]


def quotas(controller: Harness) -> dict[Any, dict[str, float]]:
    return {entity: dict(values) for entity, values in controller.image.client_quotas.items()}


OK = [(ErrorCode.NONE, None)]
INVALID = ErrorCode.INVALID_REQUEST

# entity, key, value -> Kafka's message
REFUSED: dict[str, tuple[Entity, str, float, str]] = {
    "nobody": ({}, BYTES, 1, "Invalid empty client quota entity"),
    "an unknown type": ({"group": "g"}, BYTES, 1, "Unhandled client quota entity type: group"),
    "no name": ({"user": ""}, BYTES, 1, "Empty user not supported"),
    "an address and a user": (
        {"ip": "10.0.0.1", "user": "u"},
        "connection_creation_rate",
        1,
        "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
    ),
    "what is not an address": (
        {"ip": "10.0.0"},
        "connection_creation_rate",
        1,
        "10.0.0 is not a valid IP or resolvable host.",
    ),
    "an unknown key": ({"user": "u"}, "bytes", 1, "Invalid configuration key bytes"),
    "a key of addresses": (
        {"user": "u"},
        "connection_creation_rate",
        1,
        "Invalid configuration key connection_creation_rate",
    ),
    "a key of users": ({"ip": None}, BYTES, 1, f"Invalid configuration key {BYTES}"),
    "zero": ({"user": "u"}, BYTES, 0, f"Quota {BYTES} must be greater than 0"),
    "negative": ({"user": "u"}, BYTES, -1, f"Quota {BYTES} must be greater than 0"),
    "no number": ({"user": "u"}, BYTES, math.nan, f"Quota {BYTES} must be greater than 0"),
    "endless": (
        {"user": "u"},
        BYTES,
        math.inf,
        f"Proposed value for {BYTES} is too large for a LONG.",
    ),
    "a fraction": ({"user": "u"}, BYTES, 1.5, f"{BYTES} cannot be a fractional value."),
    "too many connections": (
        {"ip": "::1"},
        "connection_creation_rate",
        2**31,
        "Proposed value for connection_creation_rate is too large for an INT.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_in_kafkas_words(case: str) -> None:
    entity, key, value, message = REFUSED[case]
    controller = Harness()
    assert alter(controller, entry(entity, **{key: value})) == [(INVALID, message)]
    assert quotas(controller) == {}


def test_limits_are_set_changed_and_removed() -> None:
    controller = Harness()
    both: Entity = {"user": "alice", "client-id": None}
    assert alter(controller, entry(both, producer_byte_rate=100, request_percentage=2.5)) == OK
    key = (("client-id", None), ("user", "alice"))
    assert quotas(controller) == {key: {BYTES: 100, "request_percentage": 2.5}}
    assert alter(controller, entry(both, producer_byte_rate=100)) == OK
    assert controller.records == []  # it was so before
    assert alter(controller, entry(both, producer_byte_rate=REMOVE, consumer_byte_rate=7)) == OK
    assert quotas(controller) == {key: {"consumer_byte_rate": 7, "request_percentage": 2.5}}
    removal = entry(
        both, consumer_byte_rate=REMOVE, request_percentage=REMOVE, producer_byte_rate=REMOVE
    )
    assert alter(controller, removal) == OK
    assert len(controller.records) == 2
    assert quotas(controller) == {}


def test_each_entity_is_decided_for_itself_and_as_a_whole() -> None:
    controller = Harness()
    answers = alter(
        controller,
        entry({"user": "alice"}, producer_byte_rate=1, nonsense=1),
        entry({"ip": "10.1.2.3"}, connection_creation_rate=9),
    )
    assert [code for code, _ in answers] == [INVALID, ErrorCode.NONE]
    assert quotas(controller) == {(("ip", "10.1.2.3"),): {"connection_creation_rate": 9}}


def test_what_is_only_to_be_validated_changes_nothing() -> None:
    controller = Harness()
    change = entry({"user": "alice"}, producer_byte_rate=1)
    assert alter(controller, change, validate_only=True) == OK
    assert quotas(controller) == {}
    assert alter(controller, validate_only=True) == []


def test_who_is_named_twice_is_told_so() -> None:
    controller = Harness()
    first = entry({"user": "alice"}, producer_byte_rate=1)
    second = entry({"user": "alice"}, producer_byte_rate=2)
    ((code, message),) = alter(controller, first, second)
    assert code == INVALID
    assert message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert quotas(controller) == {(("user", "alice"),): {BYTES: 1}}
    twice = entry({"client-id": None}, producer_byte_rate=1)
    twice.ops *= 2
    ((code, message),) = alter(controller, twice)
    assert code == INVALID
    assert message is not None
    assert message.startswith(f"Duplicate quota key {BYTES} ")


EXACT, DEFAULT, SPECIFIED = 0, 1, 2
STORED: dict[str, Any] = {
    "alice": (("user", "alice"),),
    "any user": (("user", None),),
    "alice's app": (("client-id", "app"), ("user", "alice")),
    "app": (("client-id", "app"),),
    "any app": (("client-id", None),),
    "address": (("ip", "10.0.0.1"),),
    "any address": (("ip", None),),
}
# components (type, match type, name), strict -> found
FILTERS: dict[str, tuple[list[tuple[str, int, str | None]], bool, list[str]]] = {
    "all": ([], False, list(STORED)),
    "nothing in particular": ([], True, []),
    "a user": ([("user", EXACT, "alice")], False, ["alice", "alice's app"]),
    "a user alone": ([("user", EXACT, "alice")], True, ["alice"]),
    "the default": ([("user", DEFAULT, None)], False, ["any user"]),
    "every user": ([("user", SPECIFIED, None)], False, ["alice", "any user", "alice's app"]),
    "every user alone": ([("user", SPECIFIED, None)], True, ["alice", "any user"]),
    "both": (
        [("user", SPECIFIED, None), ("client-id", EXACT, "app")],
        True,
        ["alice's app"],
    ),
    "addresses": ([("ip", SPECIFIED, None)], True, ["address", "any address"]),
    "nobody": ([("user", EXACT, "bob")], False, []),
}


def describe(components: list[tuple[str, int, str | None]], *, strict: bool) -> list[str]:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=name)
            for kind, match_type, name in components
        ],
        strict=strict,
    )
    stored = {entity: {BYTES: 1.0} for entity in STORED.values()}
    names = {entity: name for name, entity in STORED.items()}
    return [names[entity] for entity, _ in matching_quotas(stored, request)]


@pytest.mark.parametrize("case", FILTERS)
def test_who_a_filter_finds(case: str) -> None:
    components, strict, expected = FILTERS[case]
    assert describe(components, strict=strict) == expected


BAD_FILTERS: dict[str, tuple[list[tuple[str, int, str | None]], ErrorCode]] = {
    "no type": ([("", EXACT, "x")], INVALID),
    "an unknown type": ([("group", EXACT, "x")], ErrorCode.UNSUPPORTED_VERSION),
    "a type twice": ([("user", EXACT, "x"), ("user", SPECIFIED, None)], INVALID),
    "exactly nothing": ([("user", EXACT, None)], INVALID),
    "a default with a name": ([("user", DEFAULT, "x")], INVALID),
    "all with a name": ([("user", SPECIFIED, "x")], INVALID),
    "another kind of match": ([("user", 3, None)], INVALID),
    "addresses of users": ([("user", EXACT, "x"), ("ip", SPECIFIED, None)], INVALID),
}


@pytest.mark.parametrize("case", BAD_FILTERS)
def test_filters_that_make_no_sense(case: str) -> None:
    components, code = BAD_FILTERS[case]
    with pytest.raises(QuotaFilterError) as raised:
        describe(components, strict=False)
    assert raised.value.code == code


class Allowance:
    """A MutationQuota of so many partitions."""

    throttle_ms = 0

    def __init__(self, left: int) -> None:
        self.left = left
        self.asked: list[int] = []

    def spend(self, partitions: int) -> bool:
        self.asked.append(partitions)
        if partitions > self.left:
            return False
        self.left -= partitions
        return True


EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_topics_above_the_quota_on_changes_are_refused_one_by_one() -> None:
    controller = Harness()
    controller.register(1)
    controller.heartbeat(1)
    controller.mutations = Allowance(5)
    created = controller.do(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in (("a", 3), ("b", 4), ("bad name", 1), ("c", 2))
            ]
        )
    )
    assert [topic.error_code for topic in created.topics] == [
        ErrorCode.NONE,
        EXCEEDED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
    ]
    assert created.topics[1].error_message == EXCEEDED.message
    assert controller.mutations.asked == [3, 4, 2]  # what is refused anyhow does not count
    assert set(controller.image.topics.by_name) == {"a", "c"}

    controller.mutations = Allowance(2)
    grown = controller.do(
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name="a", count=6, assignments=None),
                CreatePartitionsTopic(name="c", count=4, assignments=None),
            ]
        )
    )
    assert [result.error_code for result in grown.results] == [EXCEEDED, ErrorCode.NONE]
    assert len(controller.image.topics.by_name["a"].partitions) == 3

    controller.mutations = Allowance(3)
    deleted = controller.do(
        DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in ("c", "none", "a")], timeout_ms=1
        )
    )
    assert [result.error_code for result in deleted.responses] == [
        EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert set(controller.image.topics.by_name) == {"c"}
