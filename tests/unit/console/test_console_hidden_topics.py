"""Groups show and count only the topics that the user may see."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from barnabas import Cluster
from barnabas.app.testing import Kafka
from support.console_world import Console, console
from support.node_process import wait_until

PATIENCE_S = 60
AGES_S = {"shop-orders": 60, "secret-plan": 3_600}
SHOWN = {"ann": {"secret-plan", "shop-orders"}, "eve": {"shop-orders"}}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """Two topics, each record in a batch of its own, that `shop-till` and `shop-spy` read."""
    with Cluster() as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        producer = kafka.producer()
        for topic, count in (("shop-orders", 3), ("secret-plan", 7)):
            kafka.admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(PATIENCE_S)
            then_ms = int(time.time() - AGES_S[topic]) * 1000
            for _ in range(count):
                producer.produce(topic, "x", timestamp=then_ms)
                producer.flush(PATIENCE_S)
        commit(kafka, "shop-till", **{"shop-orders": 1, "secret-plan": 2})
        commit(kafka, "shop-spy", **{"secret-plan": 0})
        yield kafka


@pytest.fixture(scope="module")
def page(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    users = tmp_path_factory.mktemp("console") / "users"
    users.write_text("ann: pw,admin\neve: pw,shop\n")
    values = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "console.users.file": str(users),
        "console.roles.shop.rights": "view,edit",
        "console.roles.shop.topics": "shop-*",
        "console.roles.shop.groups": "shop-*",
    }
    with console(values) as found:
        yield found


def commit(kafka: Kafka, group: str, **offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    places = [TopicPartition(topic, 0, at) for topic, at in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


@pytest.mark.parametrize(
    ("user", "late"),
    [
        (
            "ann",
            {"shop-spy": (7, 3_600, "secret-plan-0"), "shop-till": (7, 3_600, "secret-plan-0")},
        ),
        ("eve", {"shop-till": (2, 60, "shop-orders-0")}),
    ],
)
def test_late_groups_count_the_topics_that_a_role_reaches(
    page: Console, user: str, late: dict[str, tuple[int, int, str]]
) -> None:
    page.log_in(user, "pw")
    found = page.get("late-groups")
    groups = {one["name"]: one for one in found["groups"]}
    assert {name: (one["lag"], one["worst"]) for name, one in groups.items()} == {
        name: (lag, worst) for name, (lag, _, worst) in late.items()
    }
    for name, (_, age_s, _) in late.items():
        assert age_s <= groups[name]["lag_s"] <= age_s + PATIENCE_S
    assert found["is_partial"] is (user == "eve")


@pytest.mark.parametrize(("user", "total"), [("ann", 7), ("eve", 2)])
def test_a_group_shows_the_topics_that_a_role_reaches(page: Console, user: str, total: int) -> None:
    page.log_in(user, "pw")
    found = page.get("groups/shop-till")
    assert {one["topic"] for one in found["lags"]} == SHOWN[user]
    assert (found["total"], {lag for _, lag in found["history"]}) == (total, {total})
    assert found["is_partial"] is (user == "eve")
    assert "secret" not in page.http.get("/api/groups/shop-spy").text or user == "ann"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_shows_the_partitions_that_a_role_reaches(
    page: Console, kafka: Kafka, protocol: str
) -> None:
    group = f"shop-{protocol}"
    settings = {"group.id": group, "group.protocol": protocol, "enable.auto.commit": False}
    with kafka.consumer(*AGES_S, **settings) as consumer:

        def is_assigned() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == len(AGES_S)

        wait_until(is_assigned, "the consumer's assignment")
        for user, shown in SHOWN.items():
            page.log_in(user, "pw")
            found = page.get(f"groups/{group}")
            (member,) = found["members"]
            assert {topic for topic, _ in member["partitions"]} == shown
            assert {one["topic"] for one in found["lags"]} == shown


def test_a_reset_moves_only_topics_that_the_user_may_see(page: Console, kafka: Kafka) -> None:
    for user, shown in SHOWN.items():
        page.log_in(user, "pw")
        moves = page.done("POST", "groups/shop-till/plan", {"to": "latest"})["moves"]
        assert {one["topic"] for one in moves} == shown
    given = [{"topic": topic, "partition": 0, "before": None, "after": 0} for topic in AGES_S]
    commit(kafka, "shop-idle", **{"shop-orders": 1, "secret-plan": 2})
    answer = page.send("POST", "groups/shop-idle/reset", {"moves": given, "confirm": "shop-idle"})
    assert (answer.status_code, "this topic" in answer.text) == (403, True)
    page.done("POST", "groups/shop-idle/reset", {"moves": given[:1], "confirm": "shop-idle"})
    page.log_in("ann", "pw")
    at = {one["topic"]: one["committed"] for one in page.get("groups/shop-idle")["lags"]}
    assert at == {"shop-orders": 0, "secret-plan": 2}
