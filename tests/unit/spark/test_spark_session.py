"""How Spark is started, and what is said when it cannot be."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import stat
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import Queue
from unittest.mock import MagicMock

import pyspark
import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from barnabas.base.config.properties import parse_properties
from barnabas.demo.lake.place import SDK
from barnabas.spark import session, worker_daemon
from barnabas.spark.jars import jar_digests, jar_name
from barnabas.spark.session import (
    TESTED_PYSPARK,
    SessionOptions,
    SparkStartError,
    avro_package,
    cores_of,
    download_progress,
    kafka_clients_package,
    kafka_package,
    launch_jvm,
    start_session,
)
from support.patience import PATIENCE_S
from support.spark import needs_spark

SOURCES = Path(session.__file__).parents[1]


def test_a_session_whose_jvm_does_not_answer_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", MagicMock())
    monkeypatch.setattr(SparkContext, "_jvm", MagicMock())
    lost = MagicMock()
    # The first call gives up the JVM, and the second does what is left.
    lost.stop.side_effect = [ConnectionRefusedError(), None]
    session.forget_lost(lost)
    assert lost.stop.call_count == 2
    assert (SparkContext._gateway, SparkContext._jvm) == (None, None)


KILLED = """
import sys
from pyspark import SparkContext
from barnabas.spark import session

place = {"context": SparkContext, "session": session}[sys.argv[1]]
name = {"context": "_do_init", "session": "use_plain_files"}[sys.argv[1]]
usual = getattr(place, name)

def kill(*arguments, **named):
    setattr(place, name, usual)
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()
    return usual(*arguments, **named)

setattr(place, name, kill)
options = session.SessionOptions(
    packages=(), telemetry_path=sys.argv[2], settings={"spark.scheduler.mode": "FAIR"}
)
shared = session.SharedSession(lambda: session.start_session(options))
try:
    shared()
except Exception as error:
    print("failed:", type(error).__name__)
context = shared().sparkContext
for pool in ("a", "b"):
    context.setLocalProperty("spark.scheduler.pool", pool)
    print("rows:", context.parallelize(range(3), 2).count())
context._jvm.org.slf4j.LoggerFactory.getLogger("org.apache.spark.Seen").warn("seen")
shared.stop()
"""


def killed_and_replaced(where: str, telemetry: Path) -> list[str]:
    """What the script prints; Spark writes to the file."""
    command = [sys.executable, "-c", KILLED, where, str(telemetry)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@dataclass
class Replaced:
    """A JVM that was killed before its session was complete, and the next one."""

    output: list[str]
    telemetry: list[str]


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Replaced:
    telemetry = tmp_path_factory.mktemp("replaced") / "spark.log"
    return Replaced(killed_and_replaced("session", telemetry), telemetry.read_text().splitlines())


def check_output(output: list[str]) -> None:
    failed, *rows = output
    assert failed.startswith("failed: ")
    assert rows == ["rows: 3", "rows: 3"]


@needs_spark
@pytest.mark.slow
@pytest.mark.timeout(400)  # two JVMs start
def test_a_jvm_that_is_killed_while_a_session_starts_is_replaced(replaced: Replaced) -> None:
    check_output(replaced.output)


@needs_spark
@pytest.mark.slow
def test_a_jvm_that_is_killed_while_its_context_starts_is_replaced(tmp_path: Path) -> None:
    check_output(killed_and_replaced("context", tmp_path / "spark.log"))


@needs_spark
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_jobs_in_pools_of_the_fair_scheduler_need_no_file_that_a_warning_asks_for(
    replaced: Replaced,
) -> None:
    warnings = [line for line in replaced.telemetry if " WARN " in line]
    assert warnings[-1].endswith(" WARN Seen: seen")
    assert [line for line in warnings if "FairSchedulable" in line] == []


JARS = {"4.0.0": "4.0.0", "4.0.5": "4.0.0", "4.1.4": "4.1.1", "4.2.1": "4.2.0", "4.3.0": "4.3.0"}


@pytest.mark.parametrize("version", JARS)
def test_packages_fit_the_version_that_is_installed(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    assert avro_package() == f"org.apache.spark:spark-avro_2.13:{JARS[version]}"
    assert kafka_package() == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{JARS[version]}"


OLDER_SOURCES = {
    "4.0.0": None,
    "4.1.1": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "4.2.0": None,
}


@pytest.mark.parametrize("version", OLDER_SOURCES)
def test_the_source_that_fails_after_a_restart_is_not_used(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    settings = SessionOptions(packages=()).as_settings()
    assert settings.get("spark.sql.streaming.disabledV2MicroBatchReaders") == OLDER_SOURCES[version]


def test_settings_given_win_over_ours() -> None:
    options = SessionOptions(
        master="local[3]",
        settings={"spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "9"},
    )
    settings = options.as_settings()
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.sql.shuffle.partitions"] == "9"
    assert settings["spark.jars.packages"] == ",".join(
        (kafka_package(), avro_package(), kafka_clients_package())
    )


def test_only_local_masters_are_tied_to_the_loopback() -> None:
    assert "spark.driver.host" in SessionOptions().as_settings()
    assert "spark.driver.host" not in SessionOptions(master="spark://host:7077").as_settings()


@pytest.mark.parametrize("small_batches", [True, False])
def test_there_is_room_for_compiled_code(small_batches: bool) -> None:
    """Without the optimising compiler the JVM's own choice is full after a minute."""
    options = SessionOptions(small_batches=small_batches).as_settings()
    assert "-XX:ReservedCodeCacheSize=240m" in options["spark.driver.extraJavaOptions"].split()


def test_hot_code_alone_is_optimised_where_batches_are_small() -> None:
    small = SessionOptions(small_batches=True).as_settings()
    hot = SessionOptions(small_batches=True, optimises_hot_code=True).as_settings()
    for name in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        assert "-XX:TieredStopAtLevel=1" in small[name].split()
        assert "TieredStopAtLevel" not in hot[name]
        assert "-XX:Tier4InvocationThreshold=100000" in hot[name].split()


def test_plans_of_small_batches_are_described_for_a_user_interface_only() -> None:
    name = "spark.sql.ui.explainMode"
    shown = {"spark.ui.enabled": "true"}
    small = SessionOptions(small_batches=True)
    assert small.as_settings()[name] == "codegen"
    assert replace(small, settings=shown).as_settings()[name] == "simple"
    assert SessionOptions().as_settings()[name] == "simple"


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        *[("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("local[*]", os.cpu_count())],
        ("spark://host:7077", None),
    ],
)
def test_cores(master: str, cores: int | None) -> None:
    assert cores_of(master) == cores


def test_what_workers_are_forked_with_is_there() -> None:
    assert all(importlib.util.find_spec(name) for name in worker_daemon._NEEDED)
    local, cluster = SessionOptions(), SessionOptions(master="spark://host:7077")
    module = "spark.python.daemon.module"
    assert local.as_settings()[module] == worker_daemon.__name__
    assert module not in cluster.as_settings()  # its machines may have another Python


def test_packages_can_be_left_out() -> None:
    assert "spark.jars.packages" not in SessionOptions(packages=()).as_settings()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"BARNABAS_IVY_DIR": "/srv/ivy", "XDG_CACHE_HOME": "/x"}, "/srv/ivy"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/barnabas/ivy"),
        ({"HOME": "/home/someone"}, "/home/someone/.cache/barnabas/ivy"),
    ],
)
def test_where_packages_are_kept(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for name in ("BARNABAS_IVY_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert SessionOptions().ivy_directory == expected


def test_without_java_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkStartError, match="Java runtime"):
        start_session(SessionOptions())


SECRET = "hush key=:#\\ with all\tthat needs escapes"


@pytest.mark.parametrize("given", [None, "--verbose pyspark-shell"])
def test_settings_go_by_a_private_file_and_no_argument(
    monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    if given is not None:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", given)
    seen: list[Path] = []

    def launch(popen_kwargs: dict[str, int]) -> str:
        first, path, defaults, *rest = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
        assert (first, defaults) == ("--properties-file", "--load-spark-defaults")
        assert rest == (given or "pyspark-shell").split()
        seen.append(Path(path))
        assert stat.S_IMODE(seen[0].stat().st_mode) == 0o600
        found = parse_properties(seen[0].read_text())
        assert found["spark.hadoop.fs.s3a.secret.key"] == SECRET
        assert found["spark.master"] == "local[2]"
        return "gateway"

    monkeypatch.setattr(session, "launch_gateway", launch)
    options = SessionOptions(settings={"spark.hadoop.fs.s3a.secret.key": SECRET})
    assert session.launch_jvm(options) == "gateway"
    assert os.environ.get("PYSPARK_SUBMIT_ARGS") == given
    assert not seen[0].exists()


def test_threads_that_start_sessions_share_one_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_check_jars", "_fetch_and_check", "_launch_of", "use_plain_files", "_learn"):
        monkeypatch.setattr(session, name, MagicMock(return_value=None))
    monkeypatch.setattr(session, "SparkSession", MagicMock())
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("JAVA_HOME", "/java")
    start = partial(session.start_session, SessionOptions(packages=()))
    other = threading.Thread(target=start)
    launched = []

    def launch(*_: object) -> object:
        launched.append(threading.current_thread())
        if len(launched) == 1:
            other.start()
            other.join(0.3)  # it launches another JVM in that time, unless it waits
        return object()

    def initialized(gateway: object) -> None:
        monkeypatch.setattr(SparkContext, "_gateway", gateway)

    monkeypatch.setattr(session, "launch_jvm", launch)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", initialized)
    start()
    other.join(PATIENCE_S)
    assert not other.is_alive()
    assert launched == [threading.current_thread()]


def test_a_second_file_of_settings_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--properties-file x pyspark-shell")
    with pytest.raises(SparkStartError, match=r"spark-defaults\.conf"):
        session.launch_jvm(SessionOptions())


def test_local_spark_asks_who_connects() -> None:
    assert SessionOptions().as_settings()["spark.authenticate"] == "true"
    assert "spark.authenticate" not in SessionOptions(master="spark://h:7077").as_settings()


def test_a_download_is_announced_and_a_failure_names_the_telemetry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(popen_kwargs: dict[str, int]) -> None:
        os.write(popen_kwargs["stderr"], b"unresolved dependency\n")
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "launch_gateway", refuse)
    said: list[str] = []
    telemetry = tmp_path / "logs" / "spark.log"
    options = SessionOptions(ivy_directory=str(tmp_path), telemetry_path=str(telemetry))
    with pytest.raises(SparkStartError, match="Maven Central") as raised:
        start_session(options, said.append)
    assert str(telemetry) in str(raised.value)
    assert "pip install" not in str(raised.value)
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    with pytest.raises(SparkStartError, match=r"4\.3\.0; .* pip install pyspark==4\.0\.0"):
        launch_jvm(options)
    monkeypatch.undo()
    assert telemetry.read_text() == 2 * "unresolved dependency\n"
    names = f"{kafka_package()}, {avro_package()}, {kafka_clients_package()}"
    assert said == [f"downloading {names} (once, into {tmp_path})"]


def test_only_what_comes_is_counted_as_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "_PROGRESS_SECONDS", 0.01)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "earlier.jar").write_bytes(bytes(5_000_000))
    lines: Queue[str] = Queue()
    with download_progress(["a:b:1"], str(tmp_path), lines.put):
        assert lines.get(timeout=PATIENCE_S).startswith("downloading a:b:1")
        (cache / "b.jar.part").write_bytes(bytes(2_500_000))
        # The size and the file are looked at one after the other, and the file may grow between.
        assert re.fullmatch(
            r"downloading a:b:1: [12] MB so far, [12]\.\d MB of b\.jar",
            lines.get(timeout=PATIENCE_S),
        )


def test_kafka_s_clients_are_ours_to_choose() -> None:
    own = "org.apache.kafka:kafka-clients:4.0.1"
    assert SessionOptions(packages=("a:b:1",)).all_packages == ("a:b:1",)
    assert SessionOptions(packages=(kafka_package(), own)).all_packages == (kafka_package(), own)


def test_a_jar_that_is_not_the_tested_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "launch_jvm", lambda _: pytest.fail("it was loaded"))
    monkeypatch.setenv("JAVA_HOME", "/java")
    name = "org.apache.kafka_kafka-clients-3.9.2.jar"
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / name).write_bytes(b"another")
    with pytest.raises(SparkStartError, match=f"{name} has the SHA-256"):
        start_session(SessionOptions(ivy_directory=str(tmp_path)))


def test_a_jar_that_comes_as_another_is_refused_before_a_session_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The JVM that downloads it does not load it."""
    launched: list[str] = []

    class Jvm(MagicMock):
        def resolveMavenDependencies(self, *arguments: object) -> None:  # noqa: N802  # Spark's
            launched.append(str(arguments[2]))
            (tmp_path / "jars").mkdir()
            (tmp_path / "jars" / next(iter(jar_digests()))).write_bytes(b"another")

    def launch(options: SessionOptions) -> MagicMock:
        assert options.as_settings()["spark.jars.packages"] == ""
        gateway = MagicMock()
        gateway.jvm.org.apache.spark.util.DependencyUtils = Jvm()
        return gateway

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "launch_jvm", launch)
    monkeypatch.setenv("JAVA_HOME", "/java")
    options = SessionOptions(ivy_directory=str(tmp_path))
    with pytest.raises(SparkStartError, match="has the SHA-256"):
        start_session(options)
    assert launched == [",".join(options.all_packages)]


NAMED = re.compile(r'"([a-z][\w.-]*:[\w.-]+:(?:\d[\w.-]*|{[\w.()]+}))"')


def test_each_package_that_we_name_is_in_the_table() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    found = [(path, name) for path, text in texts.items() for name in NAMED.findall(text)]
    assert len(found) >= 8
    for path, name in found:
        for version in TESTED_PYSPARK.values():
            coordinates = name.replace("{SDK}", SDK).replace("{_jars_version()}", version)
            known = jar_digests(with_more=True)
            assert jar_name(coordinates) in known, f"{path} names {coordinates}"


def test_the_jars_of_this_spark_are_in_the_table() -> None:
    for package in SessionOptions().all_packages:
        group, artifact, version = package.split(":")
        assert f"{group}_{artifact}-{version}.jar" in jar_digests()
