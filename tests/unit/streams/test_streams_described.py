"""Pipelines as they are described: schemas, names, what Spark cannot do. Spark is not started."""

from __future__ import annotations

import contextvars
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import MagicMock

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkTypeError
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.base.errors import ConfigError
from barnabas.kafka.settings import java_settings, librdkafka_settings
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.spark.exactly_once import writer_name
from barnabas.spark.supervision import why
from barnabas.streams import (
    Pipeline,
    PipelineError,
    Processor,
    col,
    connect,
    f,
    from_dataframe,
    stream,
    table,
)
from barnabas.streams import (
    json as json_of,
)
from barnabas.streams.avro_format import avro_bytes, avro_schema_of, avro_value
from barnabas.streams.code import send_whole
from barnabas.streams.dsl import Stream
from barnabas.streams.environment import Cluster, current
from barnabas.streams.mapping import RowFunction, as_python, as_spark
from barnabas.streams.pipeline import load_pipeline
from barnabas.streams.run_options import RunOptions
from barnabas.streams.running import RunningPipeline
from barnabas.streams.running_query import QueryFigures, RunningQuery
from barnabas.streams.schemas import ddl_of, maker_of, to_row
from barnabas.streams.sinks import no_letters
from barnabas.streams.sources import Source
from barnabas.streams.table_state import in_order


@dataclass
class Place:
    city: str
    zip: str | None


@dataclass
class Order:
    id: int
    amount: Annotated[Decimal, "DECIMAL(10,2)"]
    weight: float | None
    at: datetime
    day: date
    paid: bool
    photo: bytes
    total: Decimal
    place: Place
    tags: list[str] = field(default_factory=list)
    more: dict[str, int] = field(default_factory=dict)


ORDER_DDL = (
    "`id` BIGINT NOT NULL, `amount` DECIMAL(10,2) NOT NULL, `weight` DOUBLE, "
    "`at` TIMESTAMP NOT NULL, `day` DATE NOT NULL, `paid` BOOLEAN NOT NULL, "
    "`photo` BINARY NOT NULL, `total` DECIMAL(38,18) NOT NULL, "
    "`place` STRUCT<`city`: STRING NOT NULL,`zip`: STRING> NOT NULL, "
    "`tags` ARRAY<STRING> NOT NULL, `more` MAP<STRING,BIGINT> NOT NULL"
)


def test_importing_and_describing_loads_no_spark() -> None:
    code = """
import sys
from barnabas.streams import Pipeline, avro, col, f, from_dataframe, json, stream, table
stations = table("stations", schema="name STRING").select("name", upper=f.upper("name"))
energy = (stream("charging", event_time="at").filter((col("kwh") > 0) & ~col("a").isNull())
          .join(stations, on="station").window("1 minute").group_by("station")
          .agg(kwh=f.sum("kwh")).to("energy", schema=avro()))
pipeline = Pipeline("energy", energy)
assert energy.mode() == "append"
print(sorted(name for name in sys.modules if name in ("pyspark", "pandas", "pyarrow")))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_dataclass_says_what_ddl_says() -> None:
    assert ddl_of(Order) == ORDER_DDL
    assert ddl_of("a INT") == "a INT"


@pytest.mark.parametrize("kind", [int, Processor, 5])
def test_what_has_no_columns_is_no_schema(kind: Any) -> None:
    with pytest.raises(PipelineError, match="a schema is DDL text or a dataclass"):
        ddl_of(kind)


def test_an_annotation_that_spark_lacks_is_named() -> None:
    @dataclass
    class Odd:
        one: complex

    with pytest.raises(PipelineError, match=r"Odd\.one: no Spark type for <class 'complex'>"):
        ddl_of(Odd)


def order() -> Order:
    return Order(
        7, Decimal("1.50"), None, datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 2), True,
        b"\x00", Decimal("2.000000000000000000"), Place("Ghent", None), ["a"], {"b": 1},
    )  # fmt: skip


def test_rows_and_dataclasses_are_one_another() -> None:
    row = to_row(order())
    assert row["place"] == {"city": "Ghent", "zip": None}
    assert maker_of(Order).make(row) == order()
    assert maker_of("a INT").make({"a": 1}) == {"a": 1}


def test_every_type_survives_avro() -> None:
    place = StructType().add("city", StringType(), False).add("zip", StringType())
    row = (
        StructType()
        .add("id", LongType(), False)
        .add("amount", DecimalType(10, 2), False)
        .add("weight", DoubleType())
        .add("at", TimestampType(), False)
        .add("day", DateType(), False)
        .add("paid", BooleanType(), False)
        .add("photo", BinaryType(), False)
        .add("total", DecimalType(38, 18), False)
        .add("place", place, False)
        .add("tags", ArrayType(StringType()), False)
        .add("more", MapType(StringType(), LongType()), False)
    )
    schema = json.dumps(avro_schema_of(row, "Order"))
    assert maker_of(Order).make(avro_value(schema, avro_bytes(schema, to_row(order())))) == order()


def test_a_type_that_avro_lacks_is_named() -> None:
    with pytest.raises(
        PipelineError, match="Row_a: Avro has no type for map<bigint,string>: cast it"
    ):
        avro_schema_of(StructType().add("a", MapType(LongType(), StringType())), "Row")


CLICKS = stream("clicks", schema="user STRING")
USERS = table("users", schema="name STRING")

MISTAKES: list[tuple[str, Callable[[], Any], str]] = [
    ("a name with a slash", lambda: Pipeline("a/b", CLICKS.to("x")), "letters, digits"),
    ("a name that is a place", lambda: Pipeline("..", CLICKS.to("x")), "letters, digits"),
    (
        "dead letters among results",
        lambda: Pipeline("a", CLICKS.to("a-dead-letters")),
        "reads or writes a-dead-letters already",
    ),
    (
        "dead letters that are read",
        lambda: Pipeline("a", CLICKS.to("x"), dead_letters="clicks"),
        "reads or writes clicks already",
    ),
    ("a topic named as a file", lambda: Pipeline("a", CLICKS.to("first-start")), "have that name"),
    ("nothing written", lambda: Pipeline("a"), r"end a stream with \.to\(topic\)"),
    ("a topic twice", lambda: Pipeline("a", CLICKS.to("x"), CLICKS.to("x")), "writes x twice"),
    ("no bound in time", lambda: CLICKS.join(CLICKS, on="user"), "needs a bound in time"),
    ("a bound to a table", lambda: CLICKS.join(USERS, on="user", within="1 minute"), "no time"),
    ("two keys to a table", lambda: CLICKS.join(USERS, on=["a", "b"]), "on one column"),
    ("nothing to aggregate", lambda: CLICKS.group_by("user").agg(), "needs an aggregate"),
    ("anyone's sessions", lambda: CLICKS.session_window("1 minute").count(), "whose sessions"),
    (
        "sessions that change",
        lambda: CLICKS.group_by("user").session_window("1 minute").count(emit="changes"),
        "when they are final",
    ),
    ("final for ever", lambda: CLICKS.group_by("user").count(emit="final"), "without a window"),
    (
        "windows in windows",
        lambda: CLICKS.window("1 minute").window("1 hour"),
        "in windows already",
    ),
    (
        "changes after a join",
        lambda: CLICKS.join(USERS, on="user").window("1 hour").count(emit="changes").to("x").mode(),
        r"cut the pipeline in two with \.through",
    ),
    (
        "changes counted again",
        lambda: CLICKS.group_by("user").count().window("1 hour").count().to("x").mode(),
        "only state of a query",
    ),
    ("an option that is none", lambda: RunOptions.of(None, None, {"masters": 1}), "no such option"),
    ("half once", lambda: RunOptions.of(None, None, {"guarantee": "half"}), "at_least_once or"),
    ("no file", lambda: load_pipeline("absent.py"), "there is no file absent.py"),
    ("no module", lambda: load_pipeline("absent_module:p"), "there is no module absent_module"),
    ("no pipeline there", lambda: load_pipeline("json:dumps"), "is not a pipeline but function"),
    ("nothing there", lambda: load_pipeline("json:absent"), "json has nothing named absent"),
]


@pytest.mark.parametrize(
    ("mistake", "message"), [(one[1], one[2]) for one in MISTAKES], ids=[one[0] for one in MISTAKES]
)
def test_a_mistake_is_said_before_anything_runs(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        mistake()


MODES: list[tuple[str, Stream, str]] = [
    ("no state", CLICKS.filter("a > 1"), "append"),
    ("over all time", CLICKS.group_by("user").count(), "update"),
    ("a window", CLICKS.window("1 minute").count(), "update"),
    ("a window's end", CLICKS.window("1 minute").count(emit="final"), "append"),
    ("a session", CLICKS.group_by("user").session_window("1 minute").count(), "append"),
    ("a table", CLICKS.join(USERS, on="user"), "append"),
    ("a table, then a window", CLICKS.join(USERS, on="user").window("1 minute").count(), "append"),
    ("windows of windows", CLICKS.window("1 minute").count().window("1 hour").count(), "append"),
    ("cut in two", CLICKS.join(USERS, on="user").through("y").read(schema="a INT"), "append"),
]


@pytest.mark.parametrize(
    ("step", "mode"), [(one[1], one[2]) for one in MODES], ids=[one[0] for one in MODES]
)
def test_results_come_at_each_change_where_spark_can(step: Stream, mode: str) -> None:
    assert step.to("x").mode() == mode


def test_what_writes_a_topic_between_belongs_to_the_pipeline() -> None:
    second = CLICKS.through("between").read(schema="user STRING").group_by("user").count()
    pipeline = Pipeline("two", second.to("x"))
    assert [output.topic for output in pipeline.outputs] == ["between", "x"]
    assert sorted(source.topic for source in pipeline.sources()) == ["between", "clicks"]


def test_an_expression_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="use & for and"):
        bool(col("a") > 1 and f.lit(True))


CHANGE, ROW = True, False
ORDERS: list[tuple[str, list[tuple[str, int, int, bool]], list[int]]] = [
    ("by time", [("a", 5, 0, ROW), ("a", 3, 1, ROW)], [1, 0]),
    ("a change first", [("a", 5, 0, ROW), ("a", 5, 9, CHANGE)], [1, 0]),
    ("changes by offset", [("a", 9, 0, CHANGE), ("a", 4, 1, CHANGE), ("a", 5, 2, ROW)], [2, 0, 1]),
    ("other keys apart", [("a", 9, 0, CHANGE), ("b", 4, 1, CHANGE), ("b", 5, 2, ROW)], [1, 2, 0]),
]


@pytest.mark.parametrize(
    ("rows", "expected"), [(one[1], one[2]) for one in ORDERS], ids=[one[0] for one in ORDERS]
)
def test_changes_and_rows_of_a_micro_batch_in_order(
    rows: list[tuple[str, int, int, bool]], expected: list[int]
) -> None:
    given = [(key, number, at, offset, kind) for number, (key, at, offset, kind) in enumerate(rows)]
    assert [row[1] for row in in_order(given)] == expected


def test_the_first_start_is_remembered(tmp_path: Path) -> None:
    texts = iter(["first", "second"])
    spark: Any = None
    for _ in range(2):
        cluster = Cluster(spark, "nowhere:1", directory=str(tmp_path))
        assert cluster.binding("a", "value").pinned("schema", lambda: next(texts)) == "first"


def test_schemas_in_memory_are_versions_of_subjects() -> None:
    schemas = MemoryRegistry({"a-value": '"string"'})
    assert schemas.register("a-value", "AVRO", '"string"') == 1
    assert schemas.register("a-value", "AVRO", '"int"') == 2
    assert schemas.register("b-value", "AVRO", '"int"') == 2
    assert [one["id"] for one in schemas.versions("a-value")] == [1, 2]
    assert schemas.resolved_avro_of("b-value") == {2: '"int"'}
    assert schemas.resolved_avro(3) is None
    assert schemas.versions("c-value") == []


WHYS = [
    (ValueError("[A.B] no such column\nmore"), "no such column"),
    (
        ValueError("x\nTraceback (most recent call last):\n  File\nValueError: bad row\n"),
        "ValueError: bad row",
    ),
    (ValueError("a\nmalformed record in t, partition 0, offset 3: empty SQLSTATE: P0001"),
     "malformed record in t, partition 0, offset 3: empty"),
    (ValueError(), "ValueError"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "line"), WHYS)
def test_a_failure_in_a_line(error: Exception, line: str) -> None:
    assert why(error) == line


def test_a_pipeline_is_found_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "clicks_file.py").write_text(
        "from barnabas.streams import Pipeline, stream\n"
        "output = stream('clicks', schema='user STRING').to('x')\n"
        "pipeline = Pipeline('p', output)\n"
    )
    path = str(tmp_path / "clicks_file.py")
    assert load_pipeline(path).name == "p"
    assert load_pipeline(f"{path}:output").name == "clicks_file"
    del sys.modules["clicks_file"]


def test_json_is_read_with_a_schema_only() -> None:
    binding = Cluster(None, "nowhere:1").binding("a", "value")  # type: ignore[arg-type]  # unused
    with pytest.raises(PipelineError, match="JSON is read with a schema"):
        json_of().reader(binding)


def test_each_output_has_a_writer_of_its_own() -> None:
    """A pipeline a-b that writes c is not the pipeline a that writes b-c."""

    def transactional_id(pipeline: str, topic: str) -> str:
        options = RunOptions("nowhere:1", guarantee="exactly_once")
        cluster: Any = Cluster(None, "nowhere:1")  # type: ignore[arg-type]  # unused
        query = RunningQuery(topic, "append", lambda _: cluster, cluster, options, pipeline)
        sink: Any = query._sink(no_letters)
        return str(writer_name(sink._writer._query_name))

    assert transactional_id("a-b", "c") != transactional_id("a", "b-c")


def test_to_catch_up_a_query_waits_for_what_it_reads() -> None:
    first = CLICKS.through("between")
    second = first.read(schema="user STRING").through("further").read(schema="user STRING")
    pipeline = Pipeline("three", second.to("x"))
    nothing: Any = None
    for until_caught_up in (False, True):
        options = RunOptions("nowhere:1", until_caught_up=until_caught_up)
        running = RunningPipeline(
            pipeline.name, pipeline.outputs, pipeline.dead_letters, options, nothing
        )
        queries = {query.topic: query for query in running._queries}
        started = [topic for topic, query in queries.items() if not query.must_wait()]
        if not until_caught_up:
            assert started == ["between", "further", "x", "three-dead-letters"]
            continue
        assert started == ["between"]
        queries["between"]._life._has_ended = True
        assert not queries["further"].must_wait()
        assert queries["x"].must_wait()
        assert queries["three-dead-letters"].must_wait()
        queries["further"]._life._has_ended = True
        assert not queries["three-dead-letters"].must_wait()


def test_progress_of_a_pipeline_that_has_ended_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = None
    pipeline = Pipeline("ends", CLICKS.to("x"))
    running = RunningPipeline(pipeline.name, pipeline.outputs, None, RunOptions("n:1"), nothing)
    figures = RunningQuery.figures

    def before_the_end(query: RunningQuery) -> QueryFigures:
        found = figures(query)
        running.stop()
        return found

    monkeypatch.setattr(RunningQuery, "figures", before_the_end)
    assert running.progress().is_running
    progress = running.progress()
    assert (progress.is_running, list(progress.queries)) == (False, ["x"])


def test_a_connection_is_there_for_other_threads_and_cells() -> None:
    unused: Any = object()
    made = contextvars.copy_context().run(lambda: connect("nowhere:1", spark=unused))
    assert current() is made


def test_a_table_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bound rows would be joined before the table is there."""
    spark: Any = MagicMock()
    cluster = Cluster(spark, "nowhere:1", records_per_batch_max=5)
    option = spark.readStream.format.return_value.option
    for source in (USERS.source, CLICKS.step):
        assert isinstance(source, Source)
        cluster.records(source)
    bounded = [call.args for call in option.return_value.option.call_args_list]
    assert bounded == [("maxOffsetsPerTrigger", 5)]


def test_dead_letters_of_a_topic_that_is_read_twice_come_once() -> None:
    again = stream("clicks", schema="user STRING").step
    other = stream("clicks", schema="user INT").step
    assert isinstance(CLICKS.step, Source)
    assert isinstance(again, Source)
    assert isinstance(other, Source)
    assert CLICKS.step.reads_like(again)
    assert not CLICKS.step.reads_like(other)


LOGIN = {"sasl.mechanism": "PLAIN", "security.protocol": "SASL_PLAINTEXT"}
JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" '
    'password="words";'
)


@pytest.mark.parametrize(
    "login", [{"sasl.username": "ann", "sasl.password": "words"}, {"sasl.jaas.config": JAAS}]
)
def test_a_login_is_for_both_kinds_of_clients(login: dict[str, str]) -> None:
    given = {**LOGIN, **login, "client.rack": "a"}
    cluster = Cluster(None, "nowhere:1", client=given)  # type: ignore[arg-type]  # unused
    assert cluster.client_settings() == {
        **LOGIN,
        "bootstrap.servers": "nowhere:1",
        "client.rack": "a",
        "sasl.username": "ann",
        "sasl.password": "words",
    }
    assert java_settings(given) == {**LOGIN, "client.rack": "a", "sasl.jaas.config": JAAS}
    assert "words" not in repr(cluster)
    assert "words" not in repr(RunOptions("nowhere:1", client=given))


def test_certificates_are_for_both_kinds_of_clients(tmp_path: Path) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_text("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n")
    given = {"security.protocol": "SSL", "ssl.ca.location": str(authority)}
    assert librdkafka_settings(given) == given
    java = java_settings(given)
    assert "BEGIN CERTIFICATE" in java["ssl.truststore.certificates"]
    with pytest.raises(ConfigError, match="cannot be read"):
        java_settings({**given, "ssl.ca.location": "/nowhere.pem"})
    nowhere = {"security.protocol": "SSL", "ssl.truststore.location": "/nowhere.pem"}
    with pytest.raises(PipelineError, match=r"ssl\.truststore\.location: cannot be read"):
        Cluster(None, "a:1", client=nowhere).client_settings()  # type: ignore[arg-type]  # unused
    kerberos = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.x": "y"}
    assert java_settings(kerberos) == librdkafka_settings(kerberos) == kerberos


def test_what_functions_give_is_made_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark makes null of an int for a DOUBLE, and takes a time without a zone for local."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        part = StructType().add("at", TimestampType()).add("n", DoubleType())
        row = StructType().add("parts", ArrayType(part)).add("sums", MapType(StringType(), part))
        noon = datetime.fromisoformat("2026-01-01T12:00:00")
        made = {"parts": [{"at": noon, "n": 1}], "sums": {"a": {"n": True}}}
        utc = noon.replace(tzinfo=UTC)
        assert as_spark(made, row) == ([(utc, 1.0)], {"a": (None, True)})
        given = {"parts": [{"at": noon, "n": 1.0}], "sums": {}}
        tokyo = {"at": utc - timedelta(hours=9), "n": 1.0}
        assert as_python(given, row) == {"parts": [tokyo], "sums": {}}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_function_that_fails_fails_the_query_without_dead_letters() -> None:
    schema = StructType().add("a", LongType(), False)
    call = RowFunction(lambda row: {"a": str(row["a"])}, schema, schema, None)
    with pytest.raises(PySparkTypeError):
        call({"a": 1}, None)
    assert RowFunction(lambda row: [row, row], schema, schema, None)({"a": 1}, None) == [(1,), (1,)]
    assert RowFunction(lambda row: None, schema, schema, None)({"a": 1}, None) == []


def test_modules_beside_a_pipeline_are_sent_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "beside_it.py").write_text("def double(row): return row")
    (tmp_path / "shop_pipeline.py").write_text(
        "from beside_it import double\ndef change(row): return double(row)\n"
    )
    module = importlib.import_module("shop_pipeline")
    send_whole(module.change)
    sent = cloudpickle.dumps(module.change)  # type: ignore[no-untyped-call]  # PySpark's
    for name in ("shop_pipeline", "beside_it"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", sys.path[1:])
    assert cloudpickle.loads(sent)(5) == 5


def test_exactly_once_needs_a_topic_that_is_read() -> None:
    frame: Any = None
    pipeline = Pipeline("rates", from_dataframe(frame).to("x"))
    options = RunOptions("nowhere:1", guarantee="exactly_once")
    with pytest.raises(PipelineError, match="exactly once needs a topic that is read"):
        RunningPipeline(pipeline.name, pipeline.outputs, None, options, frame)
