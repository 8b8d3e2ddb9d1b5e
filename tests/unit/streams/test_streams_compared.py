"""Windows and joins of streams, compared with DuckDB over the same records.

Records come out of order, within the watermark's delay, in several micro-batches with a restart
between them; DuckDB sees them all at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import duckdb
import pytest
from pyspark.sql import SparkSession

from barnabas.streams import Pipeline, Stream, f, stream, table
from barnabas.streams.testing import PipelineTest

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.slow,
    pytest.mark.timeout(400),
]
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
DELAY_S: Final = 20
ORDERS = stream(
    "orders",
    schema="id BIGINT, user STRING, amount BIGINT, at TIMESTAMP",
    event_time="at",
    watermark=f"{DELAY_S} seconds",
)
PAYMENTS = stream(
    "payments",
    schema="order_id BIGINT, paid BIGINT, paid_at TIMESTAMP",
    event_time="paid_at",
    watermark=f"{DELAY_S} seconds",
)


def rows_of(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Orders of ten minutes, in an order that is wrong by less than the delay; their payments."""
    dice = random.Random(seed)
    orders = []
    payments = []
    for number in range(200):
        at = START + timedelta(seconds=dice.randrange(600), milliseconds=dice.randrange(1000))
        user = dice.choice(["ann", "bob", "cid"])
        orders.append({"id": number, "user": user, "amount": dice.randrange(1, 100), "at": at})
        if dice.random() < 0.7:
            paid_at = at + timedelta(seconds=dice.randrange(-30, 90))
            payments.append({"order_id": number, "paid": dice.randrange(100), "paid_at": paid_at})

    def arrival(row: dict[str, Any]) -> float:
        at: datetime = row.get("at") or row["paid_at"]
        return at.timestamp() + dice.random() * (DELAY_S - 1)

    return sorted(orders, key=arrival), sorted(payments, key=arrival)


def streamed(spark: SparkSession, step: Stream, seed: int) -> Iterator[dict[str, Any]]:
    orders, payments = rows_of(seed)
    with PipelineTest(Pipeline("compared", step.to("out")), spark=spark) as test:
        reads = {source.topic for source in test.pipeline.sources()}
        fed = [("orders", row, row["at"]) for row in orders if "orders" in reads]
        fed += [("payments", row, row["paid_at"]) for row in payments if "payments" in reads]
        # Both topics go on at one pace.
        fed.sort(key=lambda one: one[2].timestamp() // 15)
        for number, (topic, row, _) in enumerate(fed):
            test.pipe(topic, {**row})
            if number % 90 == 89:
                yield from test.values("out")
                if number == 89:
                    test.restart()
        test.advance("3 hours")
        yield from test.values("out")


def computed(query: str, seed: int) -> list[tuple[Any, ...]]:
    orders, payments = rows_of(seed)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(
            "CREATE TABLE orders (id BIGINT, user_ TEXT, amount BIGINT, at_ TIMESTAMP)"
        )
        database.execute("CREATE TABLE payments (order_id BIGINT, paid BIGINT, paid_at TIMESTAMP)")
        for name, rows in (("orders", orders), ("payments", payments)):
            for row in rows:
                values = [
                    value.replace(tzinfo=None) if isinstance(value, datetime) else value
                    for value in row.values()
                ]
                database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", values)
        return sorted(database.execute(query).fetchall())


def window_ms(name: str) -> str:
    return f"unix_millis({name})"


WINDOWS: list[tuple[str, Stream, str]] = [
    (
        "tumbling",
        ORDERS.window("1 minute").group_by("user").agg(
            emit="final", total=f.sum("amount"), least="min(amount)", orders="count(*)"
        ).select("user", "total", "least", "orders", start=window_ms("window_start")),
        """SELECT user_, sum(amount), min(amount), count(*),
                  epoch_ms(time_bucket(INTERVAL 1 MINUTE, at_)) FROM orders GROUP BY ALL""",
    ),
    (
        "hopping",
        ORDERS.group_by("user").window("2 minutes", every="30 seconds").agg(
            emit="final", total=f.sum("amount")
        ).select("user", "total", start=window_ms("window_start")),
        """SELECT user_, sum(amount), epoch_ms(start) FROM orders, LATERAL (
             SELECT unnest(generate_series(
               time_bucket(INTERVAL 30 SECOND, at_) - INTERVAL 90 SECOND,
               time_bucket(INTERVAL 30 SECOND, at_), INTERVAL 30 SECOND)) AS start)
           GROUP BY ALL""",
    ),
    (
        "sessions",
        ORDERS.group_by("user").session_window("15 seconds").agg(
            total=f.sum("amount"), orders=f.count("*")
        ).select("user", "total", "orders", start=window_ms("window_start")),
        """WITH gaps AS (
             SELECT *, CASE WHEN at_ - lag(at_) OVER mine < INTERVAL 15 SECOND THEN 0 ELSE 1 END
               AS is_new FROM orders WINDOW mine AS (PARTITION BY user_ ORDER BY at_)),
           sessions AS (
             SELECT *, sum(is_new) OVER (PARTITION BY user_ ORDER BY at_) AS n FROM gaps)
           SELECT user_, sum(amount), count(*), epoch_ms(min(at_)) FROM sessions
           GROUP BY user_, n""",
    ),
    (
        "windows of windows",
        ORDERS.window("1 minute").group_by("user").agg(total=f.sum("amount"))
        .window("5 minutes").agg(most=f.max("total"))
        .select("most", start=window_ms("window_start")),
        """WITH minutes AS (SELECT user_, time_bucket(INTERVAL 1 MINUTE, at_) AS minute,
                                   sum(amount) AS total FROM orders GROUP BY ALL)
           SELECT max(total), epoch_ms(time_bucket(INTERVAL 5 MINUTE, minute)) FROM minutes
           GROUP BY ALL""",
    ),
    (
        "a join of streams",
        ORDERS.rename(order_id="id").join(
            PAYMENTS, on="order_id", before="10 seconds", after="1 minute"
        ).select("order_id", "user", "amount", "paid"),
        """SELECT id, user_, amount, paid FROM orders JOIN payments ON id = order_id
           AND paid_at BETWEEN at_ - INTERVAL 10 SECOND AND at_ + INTERVAL 1 MINUTE""",
    ),
    (
        "an outer join of streams",
        ORDERS.rename(order_id="id").join(PAYMENTS, on="order_id", within="1 minute", how="left")
        .select("order_id", paid="coalesce(paid, -1)"),
        """SELECT id, coalesce(paid, -1) FROM orders LEFT JOIN payments ON id = order_id
           AND paid_at BETWEEN at_ - INTERVAL 1 MINUTE AND at_ + INTERVAL 1 MINUTE""",
    ),
    (
        "each once",
        ORDERS.union(ORDERS).distinct("id").select("id", "amount"),
        "SELECT id, amount FROM orders",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "query"), [(one[1], one[2]) for one in WINDOWS], ids=[one[0] for one in WINDOWS]
)
def test_a_stream_gives_what_duckdb_gives(spark: SparkSession, step: Stream, query: str) -> None:
    seed = 7
    found = sorted(tuple(row.values()) for row in streamed(spark, step, seed))
    assert found == computed(query, seed)


def test_a_table_join_gives_what_duckdb_gives(spark: SparkSession) -> None:
    """Each row joins the last change before it: DuckDB's ASOF join."""
    dice = random.Random(3)
    users = table("users", schema="level BIGINT")
    step = stream("visits", schema="id BIGINT, user STRING").join(users, on="user")
    events = [
        (second, dice.choice("abc"), dice.random() < 0.2)
        for second in sorted(dice.sample(range(1, 2_000), 150))
    ]
    with PipelineTest(Pipeline("joined", step.to("out")), spark=spark) as test:
        found = []
        for number, (second, user, is_change) in enumerate(events):
            if is_change:
                test.pipe("users", {"level": second}, key=user, at=second)
            else:
                test.pipe("visits", {"id": second, "user": user}, at=second)
            if number == 60:
                found += test.values("out")
                test.restart()
        found += test.values("out")
    with duckdb.connect() as database:
        database.execute("CREATE TABLE events (at_ BIGINT, user_ TEXT, is_change BOOLEAN)")
        database.executemany("INSERT INTO events VALUES (?, ?, ?)", events)
        expected = database.execute(
            """WITH visits AS (FROM events WHERE NOT is_change),
                    users AS (SELECT at_ AS level, user_ FROM events WHERE is_change)
               SELECT visits.at_, visits.user_, level FROM visits ASOF JOIN users
               ON visits.user_ = users.user_ AND visits.at_ >= users.level"""
        ).fetchall()
    assert sorted((row["id"], row["user"], row["level"]) for row in found) == sorted(expected)
