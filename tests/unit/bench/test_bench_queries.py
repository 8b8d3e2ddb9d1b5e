"""What the benchmark of SQL queries works out by itself: what engines run, keys, checks, tables."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from barnabas.protocol.records.records import decode_records

sys.path.append(str(Path(__file__).parents[3]))  # the benchmark is no part of the package

from bench import run as command
from bench.queries import flink, plain_spark, spark_job
from bench.queries import run as queries
from bench.queries.engines import EngineAccess, LineEngine
from bench.queries.jobs import (
    END,
    KEYS,
    KINDS,
    WINDOW_SECONDS,
    Job,
    Results,
    batches,
    plain_key,
    value_of,
    window_keys,
)
from bench.report import render_table

ACCESS = EngineAccess("127.0.0.1:9092", "http://127.0.0.1:8081", 1)
# Prints each line, and answers the line "end": after the line "fail", by failing.
ECHO = """
import sys
fails = False
for line in sys.stdin:
    fails = fails or line == "fail\\n"
    if fails and line == "end\\n":
        sys.exit("it failed")
    print("ended" if line == "end\\n" else line, flush=True)
"""


class Echo(LineEngine):
    name = "echo"

    @classmethod
    def fetch(cls) -> None:
        raise RuntimeError("not here\nand more")

    def command(self) -> list[str]:
        return [sys.executable, "-c", ECHO]

    def lines(self, job: Job) -> list[str]:
        return [job.kind, job.sink]


def test_one_program_runs_jobs_one_after_the_other(tmp_path: Path) -> None:
    with Echo(tmp_path / "echo", ACCESS) as engine:
        engine.run(Job("filter", "one"))
        engine.end()
        first = engine.pid
        engine.run(Job("count", "two"))
        engine.end()
        assert engine.pid == first
        engine.check_alive()


def test_processes_that_end_meanwhile_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Echo(tmp_path / "echo", ACCESS) as engine:
        engine.run(Job("filter", "one"))
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        pids = [engine.pid, ended.pid]
        monkeypatch.setattr("bench.queries.engines.session_processes", lambda _: iter(pids))
        assert engine.memory_megabytes() > 0
        assert engine.cpu_seconds() >= 0


def test_the_program_is_started_again_after_it_failed(tmp_path: Path) -> None:
    with Echo(tmp_path / "echo", ACCESS) as engine:
        engine.run(Job("filter", "fail"))
        with pytest.raises(RuntimeError, match="echo ended with 1:\nit failed"):
            engine.end()
        first = engine.pid
        engine.end()
        engine.run(Job("filter", "one"))
        engine.end()
        assert engine.pid != first


def test_a_rival_that_is_not_available_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class There(Echo):
        @classmethod
        def fetch(cls) -> None:
            pass

    monkeypatch.setattr(queries, "RIVALS", {"spark": Echo, "flink": There})
    assert queries.available(["spark", "flink"]) == ["flink"]
    assert capsys.readouterr().out == "Queries are not measured on spark: not here\n"


def test_rivals_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "query", "--beside", "spark,storm"])
    assert "no such engine: storm" in capsys.readouterr().err


@pytest.mark.parametrize("kind", flink.FlinkSql.kinds)
def test_flink_takes_a_statement_a_line(kind: str) -> None:
    lines = flink.statements(Job(kind, "results-flink-3"), "127.0.0.1:9092")
    assert [line.split("(")[0].strip() for line in lines[2:4]] == [
        "CREATE TABLE source_results_flink_3",
        "CREATE TABLE results_flink_3",
    ]
    assert lines[4].startswith("INSERT INTO results_flink_3 SELECT ")
    assert not any("\n" in line or line == END for line in lines)


@pytest.mark.parametrize(
    ("is_exactly_once", "expected"),
    [
        (
            False,
            [
                "set execution.checkpointing.interval=1000 ms",
                "set execution.checkpointing.mode=AT_LEAST_ONCE",
            ],
        ),
        (
            True,
            [
                "set execution.checkpointing.interval=100 ms",
                "set execution.checkpointing.mode=EXACTLY_ONCE",
            ],
        ),
    ],
)
def test_flink_s_guarantees(is_exactly_once: bool, expected: list[str]) -> None:
    *settings, source, sink, _ = flink.statements(Job("count", "out", is_exactly_once), "x:1")
    assert settings == expected
    assert ("'sink.delivery-guarantee'='exactly-once'" in sink) == is_exactly_once
    assert "delivery" not in source


@pytest.mark.parametrize("cores", [1, 2])
def test_rivals_use_as_many_cores_as_ours(cores: int, tmp_path: Path) -> None:
    assert flink.settings(tmp_path, cores)["parallelism.default"] == str(cores)
    spark = spark_job.settings(cores, "a.jar")
    assert spark["spark.master"] == f"local[{cores}]"
    assert spark["spark.sql.shuffle.partitions"] == str(cores)


def test_rivals_run_jobs_of_ours() -> None:
    for rival in (flink.FlinkSql, plain_spark.PlainSpark):
        assert set(rival.kinds) < set(KINDS)


def test_keys_of_windows() -> None:
    key = b"k7" + (1_700_000_010_000).to_bytes(8, "big")
    assert plain_key(b'{"k":"k7","w":1700000010000}') == key
    assert plain_key(key) == key
    assert plain_key(b"") == b""


@pytest.mark.parametrize("first", [5_000, 5_123])
def test_counts_to_expect_are_those_of_the_records(first: int) -> None:
    at_ms, records = 1_700_000_012_345, 3 * KEYS
    found: Counter[bytes] = Counter()
    for _, batch in batches(first, records, at_ms, value_of):
        for record in decode_records(batch):
            seconds = record.timestamp // 1_000
            start_ms = (seconds - seconds % WINDOW_SECONDS) * 1_000
            found[(record.key or b"") + start_ms.to_bytes(8, "big")] += 1
    assert Counter(window_keys(first, records, at_ms)) == found


@pytest.mark.parametrize(
    ("results", "total", "failure"),
    [
        ([(b"a", 1), (b"b", 1), (b"a", 2)], 3, None),
        ([(b"a", 2), (b"b", 1), (b"c", 5)], 8, None),
        ([(b"a", 3), (b"b", 1)], 3, "cover 4 records, not 3"),
        ([(b"a", 3)], 3, "b'a' has the count 3, not 2"),
        ([(b"a", 2), (b"c", 1)], 3, "b'b' has the count None, not 1"),
    ],
    ids=["right", "others too", "too many", "another count", "none"],
)
def test_results_are_checked(
    results: list[tuple[bytes, int]], total: int, failure: str | None
) -> None:
    taken = Results("count")
    for key, count in results:
        taken.take(key, b'{"N":%d}' % count)
    counts = {b"a": 2, b"b": 1}
    if failure is None:
        taken.check(total, counts)
    else:
        with pytest.raises(RuntimeError, match=failure):
            taken.check(total, counts)


def test_results_of_a_filter_are_checked() -> None:
    taken = Results("filter")
    for number in range(3):
        taken.take(b"k", b'{"V":%d}' % (2 * number))
    taken.check(6, {})
    with pytest.raises(RuntimeError, match="cover 6 records, not 4"):
        taken.check(4, {})


def test_each_engine_has_a_table() -> None:
    figures = {
        "streams": {"query_filter_s": 50_000.0},
        "barnabas": {"query_filter_s": 60_000.0, "query_count_cpu_us": 6.0},
        "spark": {"query_filter_s": 90_000.0, "query_count_cpu_us": 5.0},
        "flink": {"query_filter_s": 60_000.0},
    }
    machine = dict.fromkeys(("cpu", "cores", "kernel", "python", "java", "barnabas", "kafka"), "x")
    table = render_table(
        {
            "rounds": [figures],
            "limits": {},
            "quick": False,
            "date": "2026-11-29",
            "machine": {**machine, "memory_gb": 1},
        }
    )
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert rows == [
        "| | Kafka Streams | Barnabas | Ratio | Spread | Aim |",
        "| Filter | 50,000 events/s | 60,000 events/s | **1.20** | 1.20 to 1.20 |  |",
        "| | Plain Spark SQL | Barnabas | Ratio | Spread | Aim |",
        "| Filter | 90,000 events/s | 60,000 events/s | **0.67** | 0.67 to 0.67 | ≥ 0.77 ✗ |",
        "| The same, windowed count | 5.0 µs | 6.0 µs | **1.20** | 1.20 to 1.20 | ≤ 1.3 ✓ |",
        "| | Flink SQL | Barnabas | Ratio | Spread | Aim |",
        "| Filter | 60,000 events/s | 60,000 events/s | **1.00** | 1.00 to 1.00 |  |",
    ]
