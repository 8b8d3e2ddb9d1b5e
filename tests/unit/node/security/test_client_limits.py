"""Which limit holds, how long a client waits, what is forgotten; time is a number."""

import random
from collections.abc import Mapping

import pytest

from barnabas.node.loop.rate import Rate, TokenBucket
from barnabas.node.metadata.image import QuotaEntity
from barnabas.node.security.quotas import client_quotas
from barnabas.node.security.quotas.client_quotas import (
    ClientQuotas,
    Limit,
    QuotaWindows,
    RequestMutations,
    find_limit,
)

USER_AND_CLIENT: QuotaEntity = (("client-id", "app"), ("user", "alice"))
USER_AND_ANY_CLIENT: QuotaEntity = (("client-id", None), ("user", "alice"))
USER: QuotaEntity = (("user", "alice"),)
ANY_USER_AND_CLIENT: QuotaEntity = (("client-id", "app"), ("user", None))
ANY_USER_AND_ANY_CLIENT: QuotaEntity = (("client-id", None), ("user", None))
ANY_USER: QuotaEntity = (("user", None),)
CLIENT: QuotaEntity = (("client-id", "app"),)
ANY_CLIENT: QuotaEntity = (("client-id", None),)

# From the most specific on, and with whom alice's app shares each.
PRECEDENCE: list[tuple[QuotaEntity, str, str]] = [
    (USER_AND_CLIENT, "alice", "app"),
    (USER_AND_ANY_CLIENT, "alice", "app"),
    (USER, "alice", ""),
    (ANY_USER_AND_CLIENT, "alice", "app"),
    (ANY_USER_AND_ANY_CLIENT, "alice", "app"),
    (ANY_USER, "alice", ""),
    (CLIENT, "", "app"),
    (ANY_CLIENT, "", "app"),
]


@pytest.mark.parametrize("level", range(len(PRECEDENCE)))
def test_the_most_specific_limit_holds(level: int) -> None:
    quotas = {entity: float(rank) for rank, (entity, _, _) in enumerate(PRECEDENCE)}
    for entity, _, _ in PRECEDENCE[:level]:
        del quotas[entity]
    _, user, client_id = PRECEDENCE[level]
    assert find_limit(quotas, "alice", "app") == Limit(level, user, client_id)


# Other clients that share the limits above: user, client id -> the ranks that apply.
OTHERS: dict[tuple[str, str], list[int]] = {
    ("alice", "other"): [1, 2, 4, 5, 7],
    ("bob", "app"): [3, 4, 5, 6, 7],
    ("bob", "other"): [4, 5, 7],
    ("alice", ""): [2, 5],
    ("bob", ""): [5],
}


@pytest.mark.parametrize("client", OTHERS)
def test_limits_hold_for_those_whom_they_name(client: tuple[str, str]) -> None:
    quotas = {entity: float(rank) for rank, (entity, _, _) in enumerate(PRECEDENCE)}
    found = []
    while (limit := find_limit(quotas, *client)) is not None:
        rank = int(limit.per_second)
        found.append(rank)
        del quotas[PRECEDENCE[rank][0]]
    assert found == OTHERS[client]


class NaiveRate:
    """Everything that was recorded, divided into samples again at each question."""

    def __init__(self, samples: int, sample_ms: int) -> None:
        self.samples, self.sample_ms = samples, sample_ms
        self.events: list[tuple[int, float]] = []

    def record(self, now_ms: int, value: float) -> None:
        self.events.append((now_ms, value))

    def per_second(self, now_ms: int) -> float:
        cut: list[list[tuple[int, float]]] = []
        for event in self.events:
            if not cut or event[0] - cut[-1][0][0] >= self.sample_ms:
                cut.append([])
            cut[-1].append(event)
        span_ms = self.samples * self.sample_ms
        held = [sample for sample in cut[-self.samples - 1 :] if now_ms - sample[-1][0] < span_ms]
        if not held:
            return 0.0
        elapsed_ms = now_ms - held[0][0][0]
        whole = elapsed_ms // self.sample_ms
        elapsed_ms += max(0, self.samples - 1 - whole) * self.sample_ms
        return sum(value for sample in held for _, value in sample) * 1000 / max(elapsed_ms, 1)


@pytest.mark.parametrize("seed", range(40))
def test_the_rate_is_that_of_a_naive_model(seed: int) -> None:
    source = random.Random(seed)
    window = source.choice([(11, 1000), (3, 1000), (2, 500), (1, 1000)])
    rate, model, now_ms = Rate(*window), NaiveRate(*window), 0
    for _ in range(300):
        now_ms += source.choice([0, 1, 30, 400, 999, 1000, 5000, 20_000])
        if source.random() < 0.7:
            value = source.choice([1, 500, 1e6, 0.25])
            rate.record(now_ms, value)
            model.record(now_ms, value)
        expected = model.per_second(now_ms)
        assert rate.per_second(now_ms) == pytest.approx(expected)
        limit = source.choice([1, 1000, 1e5])
        if expected <= limit:
            assert rate.excess_ms(limit, now_ms) == 0


# Kafka's examples (ClientQuotaManagerTest): eleven samples of a second, so that ten are elapsed.
WAITS: dict[str, tuple[float, float, int]] = {
    # bytes at once, limit a second -> wait
    "what the window grants": (5000, 500, 0),
    "a tenth above it": (5500, 500, 1000),
    "twice as much": (10_000, 500, 10_000),
    "a large request waits for more than the window": (100_000, 500, 190_000),
}


@pytest.mark.parametrize("case", WAITS)
def test_how_long_a_client_waits(case: str) -> None:
    size_bytes, limit, expected_ms = WAITS[case]
    quotas = limited({USER: {"producer_byte_rate": limit}})
    sensor = quotas.of("alice", "x", 0).produce
    assert sensor is not None
    assert sensor.spend(size_bytes, 0) == expected_ms
    sensor.give_back(size_bytes, 0)
    assert sensor.excess_ms(0) == 0


def limited(values: Mapping[QuotaEntity, Mapping[str, float]]) -> ClientQuotas:
    quotas = ClientQuotas(QuotaWindows())
    quotas.configure(values)
    return quotas


def test_whoever_waits_as_told_keeps_to_the_limit() -> None:
    quotas = limited({USER: {"producer_byte_rate": 1000}})
    source, now_ms, sent = random.Random(7), 0, 0.0
    while now_ms < 600_000:
        sensor = quotas.of("alice", "x", now_ms).produce
        assert sensor is not None
        size_bytes = source.choice([10, 2000, 9000])
        sent += size_bytes
        now_ms += 1 + sensor.spend(size_bytes, now_ms)
    # Samples come in whole seconds: what large requests leave behind goes with its sample.
    assert 0.8 * now_ms < sent < 1.25 * now_ms


def test_requests_wait_a_sample_at_most() -> None:
    quotas = limited({USER: {"request_percentage": 1}})
    sensor = quotas.of("alice", "x", 0).request
    assert sensor is not None
    assert sensor.spend(1000, 0) == 1000


def test_a_limit_changes_while_it_is_measured() -> None:
    quotas = limited({USER: {"producer_byte_rate": 500}})
    sensor = quotas.of("alice", "x", 0).produce
    assert sensor is not None
    assert sensor.spend(10_000, 0) == 10_000
    quotas.configure({USER: {"producer_byte_rate": 1000}})
    changed = quotas.of("alice", "x", 0).produce
    assert changed is sensor
    assert sensor.excess_ms(0) == 0
    quotas.configure({})
    assert not quotas.is_enforced
    assert quotas.of("alice", "x", 0).produce is None


def test_who_shares_a_limit_and_who_does_not() -> None:
    quotas = limited({USER: {"producer_byte_rate": 1}, ANY_CLIENT: {"producer_byte_rate": 2}})
    alice = quotas.of("alice", "one", 0).produce
    assert alice is quotas.of("alice", "two", 0).produce
    assert quotas.of("bob", "one", 0).produce is quotas.of("carol", "one", 0).produce
    assert quotas.of("bob", "one", 0).produce is not quotas.of("bob", "two", 0).produce
    assert quotas.of("bob", "one", 0).fetch is None


def test_sensors_expire() -> None:
    quotas = limited({ANY_CLIENT: {"producer_byte_rate": 1, "controller_mutation_rate": 1}})
    old = quotas.of("", "old", 0)
    assert old.produce is not None
    old.produce.spend(100, 0)
    new = quotas.of("", "new", 10).produce
    assert new is not None
    new.spend(1, 3_599_999)
    quotas.expire(3_600_000)
    left = {(figure.kind, figure.tags.get("client-id")) for figure in quotas.figures(0)}
    assert ("Produce", "new") in left
    assert ("Produce", "old") not in left
    assert ("ControllerMutation", "old") not in left
    again = quotas.of("", "old", 3_600_000).produce
    assert again is not None
    assert again.excess_ms(3_600_000) == 0


def test_many_names_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "SENSORS_MAX", 50)
    quotas = limited({ANY_CLIENT: {"producer_byte_rate": 1}})
    for number in range(1000):
        steady = quotas.of("", "steady", number).produce
        assert steady is not None
        steady.spend(1, number)
        other = quotas.of("", f"name-{number}", number).produce
        assert other is not None
        other.spend(1, number)
    produce = [figure for figure in quotas.figures(1000) if figure.name == "byte-rate"]
    assert len(produce) <= 50
    assert steady.rate.per_second(1000) == pytest.approx(100)  # it was never forgotten


def test_long_names_take_bounded_memory() -> None:
    quotas = limited({ANY_CLIENT: {"producer_byte_rate": 1, "controller_mutation_rate": 1}})
    for number in range(10):
        for sensor in quotas.of("", "x" * 30_000 + str(number), 0):
            if sensor is not None:
                assert len(sensor.client_id) <= client_quotas.CLIENT_ID_SIZE_MAX
    assert len(quotas._clients) == 0
    assert len(quotas._produce) == len(quotas._mutations) == 1


def test_figures_have_kafkas_names() -> None:
    quotas = limited(
        {
            (("user", "CN=al ice,O=x"),): {"producer_byte_rate": 500, "request_percentage": 10},
            CLIENT: {"consumer_byte_rate": 500},
            ANY_USER: {"controller_mutation_rate": 2},
        }
    )
    sensor = quotas.of("CN=al ice,O=x", "app", 0).produce
    assert sensor is not None
    sensor.throttled(sensor.spend(10_000, 0), 0)
    client = quotas.of("CN=al ice,O=x", "app", 0)
    assert client.fetch is not None
    client.fetch.spend(100, 0)
    bob = quotas.of("bob", "app", 0).mutations
    assert bob is not None
    bob.take(3, 0)
    quotas.exempt(10_000_000, 0)
    figures = {
        (figure.kind, figure.tags.get("user"), figure.tags.get("client-id"), figure.name): (
            figure.value
        )
        for figure in quotas.figures(0)
    }
    name = "CN%3Dal%20ice%2CO%3Dx"
    assert figures["Produce", name, "", "byte-rate"] == pytest.approx(1000)
    assert figures["Produce", name, "", "throttle-time"] == 10_000
    assert figures["Request", name, "", "request-time"] == 0
    assert figures["Fetch", "", "app", "byte-rate"] == pytest.approx(10)
    assert figures["ControllerMutation", "bob", "", "tokens"] == pytest.approx(19)
    assert figures["ControllerMutation", "bob", "", "mutation-rate"] == pytest.approx(0.1)
    assert figures["Request", None, None, "exempt-request-time"] == pytest.approx(0.1)


# strict?, the partitions of the requests -> whether each is accepted, and its throttle time
MUTATIONS: dict[str, tuple[bool, list[int], list[bool], list[int]]] = {
    "what is left allows any number at once": (True, [102, 1], [True, False], [0, 40_000]),
    "up to nothing": (True, [22, 1, 1], [True, True, False], [0, 0, 500]),
    "older clients are only told": (False, [24, 1], [True, True], [1000, 1500]),
}


@pytest.mark.parametrize("case", MUTATIONS)
def test_topic_changes_against_their_quota(case: str) -> None:
    is_strict, sizes, allowed, waits_ms = MUTATIONS[case]
    quotas = limited({USER: {"controller_mutation_rate": 2}})  # a burst of 22
    found = quotas.of("alice", "x", 0).mutations
    assert found is not None
    requests = [RequestMutations(found, 0, is_strict=is_strict) for _ in sizes]
    pairs = zip(requests, sizes, strict=True)
    assert [request.spend(size) for request, size in pairs] == allowed
    assert [request.throttle_ms for request in requests] == waits_ms


def test_a_bucket_fills_at_its_rate_up_to_its_burst() -> None:
    bucket = TokenBucket(5, 100, 0)
    assert bucket.tokens(0) == 500
    bucket.take(560, 0)
    assert bucket.tokens(0) == -60
    assert bucket.wait_ms(0) == 12_000  # the example of Kafka's TokenBucket
    assert bucket.wait_ms(11_999) == 1
    assert bucket.wait_ms(12_000) == 0
    assert bucket.tokens(10**9) == 500
    bucket.set_rate(1, 10**9)
    assert bucket.tokens(10**9) == 100
