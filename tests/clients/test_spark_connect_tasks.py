"""Tasks of connectors as Spark jobs, on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from barnabas.app.testing import Kafka
from barnabas.connect.connectors.file.connectors import FileStreamSink
from barnabas.connect.tasks.kafka_output import fenced_ids
from barnabas.connect.tasks.spark import SparkEngine
from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import Access
from barnabas.schemas.data.errors import ConnectError, DataError
from support.connect.tasks import STRING, TaskRun, TopicOffsets, read_topic
from support.spark import shared_session

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning"
)  # PySpark's collect()
LINES = "support.connect.distributed_lines"
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture
def engine() -> Iterator[SparkEngine]:
    engine = SparkEngine(shared_session)
    yield engine
    engine.stop_tasks()


def worker(kafka: Kafka) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": kafka.name("workers"),
        "key.converter": STRING,
        "barnabas.connect.plugins": f"FileStreamSource,FileStreamSink,{LINES},{__name__}",
        "value.converter": STRING,
        "consumer.session.timeout.ms": "10000",
    }


@pytest.mark.parametrize("is_exactly_once", [pytest.param(False, marks=pytest.mark.slow), True])
def test_file_to_topic_to_file(
    kafka: Kafka, engine: SparkEngine, tmp_path: Path, is_exactly_once: bool
) -> None:
    names = f"{LINES}:DistributedLines", f"{LINES}:DistributedLinesSink"
    copy(kafka, engine, tmp_path, names, is_exactly_once=is_exactly_once)


@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_what_is_not_worth_distributing_needs_no_spark(
    kafka: Kafka, tmp_path: Path, is_exactly_once: bool
) -> None:
    engine = SparkEngine(lambda: pytest.fail("Spark is started"))
    names = "FileStreamSource", "FileStreamSink"
    try:
        copy(kafka, engine, tmp_path, names, is_exactly_once=is_exactly_once)
    finally:
        engine.close()


def copy(
    kafka: Kafka,
    engine: SparkEngine,
    tmp_path: Path,
    names: tuple[str, str],
    *,
    is_exactly_once: bool,
) -> None:
    """Copy a file through a topic into another, with a source that is started twice."""
    topic, stored, name = kafka.topic("lines"), kafka.topic("offsets"), kafka.name("source")
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, name)
    file, target = tmp_path / "lines.txt", tmp_path / "copy.txt"
    file.write_text("".join(f"line {number}\n" for number in range(100)))
    settings = {"connector.class": names[0], "file": str(file), "topic": topic}
    given = worker(kafka)

    def run() -> TaskRun:
        return TaskRun(
            engine,
            name,
            settings,
            given,
            offsets,
            offsets_topic=stored,
            is_exactly_once=is_exactly_once,
        )

    source = run()
    source.wait_until(lambda: offsets.all() == [({"filename": str(file)}, {"position": 790})])
    source.stop()
    with file.open("a") as more:
        more.write("the end\n")
    source = run()
    source.wait_until(lambda: offsets.all() == [({"filename": str(file)}, {"position": 798})])
    source.stop()
    lines = file.read_bytes().split(b"\n")[:-1]
    assert [value for _, value in read_topic(kafka.bootstrap_servers, topic)] == lines
    sink = TaskRun(
        engine,
        kafka.name("sink"),
        {"connector.class": names[1], "file": str(target), "topics": topic},
        given,
        offsets,
    )
    sink.wait_until(lambda: target.exists() and target.read_bytes() == file.read_bytes())
    sink.stop()
    assert sink.task.metrics()["sink-record-send-total"] == 101


def test_error_of_a_converter_on_an_executor_ends_the_task(
    kafka: Kafka, engine: SparkEngine, tmp_path: Path
) -> None:
    topic, name = kafka.topic("in"), kafka.name("sink")
    kafka.produce(topic, [b"{"])
    settings = {
        "connector.class": f"{LINES}:DistributedLinesSink",
        "file": str(tmp_path / "out.txt"),
        "topics": topic,
        "value.converter": JSON,
    }
    offsets = TopicOffsets(kafka.bootstrap_servers, "unused", name)
    run = TaskRun(engine, name, settings, worker(kafka), offsets)
    with pytest.raises(ConnectError, match="Tolerance exceeded in error handler") as caught:
        run.wait_until(lambda: False)
    assert isinstance(caught.value.__cause__, DataError)


@pytest.mark.slow
def test_fenced_task_writes_nothing_any_more(
    kafka: Kafka, engine: SparkEngine, tmp_path: Path
) -> None:
    topic, stored, name = kafka.topic("lines"), kafka.topic("offsets"), kafka.name("source")
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, name)
    file = tmp_path / "lines.txt"
    file.write_text("1\n")
    given = worker(kafka)
    run = TaskRun(
        engine,
        name,
        {"connector.class": f"{LINES}:DistributedLines", "file": str(file), "topic": topic},
        given,
        offsets,
        offsets_topic=stored,
        is_exactly_once=True,
    )
    run.wait_until(offsets.all)
    control = TransactionControl(Access(kafka.bootstrap_servers))
    for one in fenced_ids(given["group.id"], name, 0):
        control.abort(one)
    control.close()
    with file.open("a") as more:
        more.write("2\n")
    with pytest.raises(ConnectError, match="another run has taken over"):
        run.wait_until(lambda: False)
    assert [value for _, value in read_topic(kafka.bootstrap_servers, topic)] == [b"1"]


class JavaSink(FileStreamSink):
    """A sink that needs a package, which its file names."""

    def spark_packages(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        return {"org.example.Other": Path(settings["file"]).name}


def make_package(repository: Path, *, version: str) -> None:
    """Put `org.example:thing` into a repository of Maven's layout."""
    directory = repository / "org/example/thing" / version
    directory.mkdir(parents=True)
    name = f"thing-{version}"
    with ZipFile(directory / f"{name}.jar", "w") as jar:
        jar.writestr("org/example/Thing.class", b"")
    (directory / f"{name}.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
        f"<artifactId>thing</artifactId><version>{version}</version></project>"
    )


def test_spark_is_given_the_packages_that_a_connector_needs_while_it_runs(
    engine: SparkEngine, tmp_path: Path
) -> None:
    session = shared_session()
    jvm = session._jvm
    assert jvm is not None
    system, loader = (
        jvm.java.lang.System,
        jvm.java.lang.Thread.currentThread().getContextClassLoader(),
    )
    given = {
        "spark.jars.repositories": (tmp_path / "repository").as_uri(),
        "spark.jars.ivy": str(tmp_path / "ivy"),
    }
    for version in ("1.0", "2.0"):
        make_package(tmp_path / "repository", version=version)
    before = {name: system.getProperty(name) for name in given}

    try:
        for name, value in given.items():
            system.setProperty(name, value)
        for version in ("1.0", "2.0"):  # the class is there by then
            engine.add_packages(
                {"org.example.Thing": f"org.example:thing:{version}"}, lambda _: None
            )
    finally:
        for name, value in before.items():
            system.clearProperty(name) if value is None else system.setProperty(name, value)
    jars = session.sparkContext._jsc.sc().listJars()  # for executors
    found = [jars.apply(number).rpartition("/")[2] for number in range(jars.length())]
    assert [jar for jar in found if "thing" in jar] == ["org.example_thing-1.0.jar"]
    thing = loader.getResource("org/example/Thing.class")
    assert thing is not None
    assert "thing-1.0.jar" in thing.toString()


def test_a_package_that_cannot_be_had_is_what_the_task_says(
    kafka: Kafka, engine: SparkEngine, tmp_path: Path
) -> None:
    name = kafka.name("sink")
    settings = {
        "connector.class": f"{__name__}:JavaSink",
        "file": str(tmp_path / "no-coordinates"),
        "topics": kafka.topic("in"),
    }
    offsets = TopicOffsets(kafka.bootstrap_servers, "unused", name)
    run = TaskRun(engine, name, settings, worker(kafka), offsets)
    lacking = "Spark lacks org.example.Other, and no-coordinates cannot be fetched: "
    with pytest.raises(ConnectError, match=lacking):
        run.wait_until(lambda: False)
