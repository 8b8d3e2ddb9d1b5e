"""The one place where Spark sessions are built: master, packages, memory, telemetry.

SQL, connectors and pipelines in Python all start here. Local mode is the default; any master that
Spark knows works unchanged. Spark resolves its own Kafka connector and its Avro functions
(`spark.jars.packages`) into an Ivy directory that later starts reuse.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from barnabas.base.config.properties import format_properties
from barnabas.base.private_files import write_private
from barnabas.spark.jars import WrongJarError, check_jars, jar_digests, jar_name
from barnabas.spark.java_code import keep_compiled
from barnabas.spark.launching import (
    Launch,
    archive_later,
    in_place_of_submit,
    launch_of,
    note_resolved,
)
from barnabas.spark.local_files import CHECKPOINT_MANAGER, use_plain_files
from barnabas.spark.small_batches import use_in_all_threads

Say = Callable[[str], None]

# PySpark 4.2 says so at each start; what Barnabas uses of pandas is tested.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

PACKAGES: Final = "spark.jars.packages"
TESTED_PYSPARK: Final = {"4.0": "4.0.0", "4.1": "4.1.1", "4.2": "4.2.0"}
"""By line of releases the one whose jars are known. Maven Central has no connector for others."""

_PROGRESS_SECONDS = 1.0
_ENDING_SECONDS_MAX = 30.0
# Small heaps on few cores: the serial collector takes less of both.
# The optimising compiler off leaves 48 MB for compiled code, which fill in a minute: then nothing
# is compiled any more.
_ALL_CODE = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_SMALL_CODE = f"{_ALL_CODE} -XX:TieredStopAtLevel=1"
# Twenty times the JVM's own numbers: what runs for each record gets there in seconds of much data.
_HOT_CODE = (
    f"{_ALL_CODE} -XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=20000"
    " -XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=800000"
)
_OLDER_SOURCES = "spark.sql.streaming.disabledV2MicroBatchReaders"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_FILE_OPTION = "--properties-file"
_starting = threading.Lock()
"""A process has one JVM: a second thread that starts a session waits for it."""
_launching = threading.Lock()
"""PySpark reads those arguments from the environment, which is the process's."""
_JAVA_MISSING = (
    "Spark needs a Java runtime (17 or later) and finds none: install one "
    "(Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
)


class SparkStartError(RuntimeError):
    """Spark's JVM could not be started; the message says what to do."""


def kafka_package() -> str:
    """Return the Maven coordinates of the Kafka connector for the PySpark that is installed."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_jars_version()}"


def avro_package() -> str:
    """Return the Maven coordinates of `from_avro` for the PySpark that is installed."""
    return f"org.apache.spark:spark-avro_2.13:{_jars_version()}"


def _jars_version() -> str:
    """The version of the jars for the PySpark that is installed."""
    version = pyspark.__version__
    return TESTED_PYSPARK.get(".".join(version.split(".")[:2]), version)


def kafka_clients_package() -> str:
    """Return the Maven coordinates of Kafka's Java clients that the connector runs with.

    Spark 4.0 names 3.9.0, which CVE-2025-27817 and CVE-2025-27818 concern.
    """
    return "org.apache.kafka:kafka-clients:3.9.2"


def default_ivy_directory() -> str:
    """Return where packages are kept between runs: BARNABAS_IVY_DIR, else the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("BARNABAS_IVY_DIR") or os.path.join(cache, "barnabas", "ivy")


def cores_of(master: str) -> int | None:
    """Return how many tasks a local master runs at once; None for a cluster, which may grow."""
    if not master.startswith("local"):
        return None
    match = re.search(r"\[([0-9]+)", master)
    if match:
        return int(match[1])
    return os.cpu_count() or 1 if "*" in master else 1


@dataclass(slots=True, frozen=True)
class SessionOptions:
    """The options of starting Spark. The defaults suit a laptop that also runs a broker.

    Units: `driver_memory` as Spark writes it (`768m`). `telemetry_path` receives what the JVM
    prints (appended); None leaves it on stderr. `small_batches` halves the CPU time of queries
    whose micro-batches are small: plans are interpreted and the JVM's optimising compiler stays
    off, both of which pay for themselves only over much data. With `optimises_hot_code` it compiles
    all the same what runs for each record of much data. `purpose`: sessions of one purpose load the
    same classes of Java, and share the archive of them that makes starts faster. `settings` are
    Spark's own and win over ours.
    """

    app_name: str = "barnabas"
    master: str = "local[2]"
    packages: tuple[str, ...] = field(default_factory=lambda: (kafka_package(), avro_package()))
    ivy_directory: str = field(default_factory=default_ivy_directory)
    shuffle_partitions: int = 2
    small_batches: bool = False
    optimises_hot_code: bool = False
    driver_memory: str = "768m"
    telemetry_path: str | None = None
    purpose: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_packages(self) -> tuple[str, ...]:
        """The packages, and beside Spark's Kafka connector a fixed version of Kafka's clients."""
        names = [package.split(":")[1] for package in self.packages]
        if "kafka-clients" in names or not any(n.startswith("spark-sql-kafka") for n in names):
            return self.packages
        return (*self.packages, kafka_clients_package())

    @property
    def wanted_packages(self) -> tuple[str, ...]:
        """The packages that Spark fetches, unless its own setting names others."""
        given = self.settings.get(PACKAGES)
        if given is None:
            return self.all_packages
        return tuple(name.strip() for name in given.split(",") if name.strip())

    @property
    def _code(self) -> str:
        if not self.small_batches:
            return _ALL_CODE
        return _HOT_CODE if self.optimises_hot_code else _SMALL_CODE

    def as_settings(self) -> dict[str, str]:
        """Return every Spark setting that these options stand for."""
        partitions = str(self.shuffle_partitions)
        settings = {
            "spark.app.name": self.app_name,
            "spark.master": self.master,
            "spark.driver.memory": self.driver_memory,
            "spark.driver.extraJavaOptions": self._code
            + f" -Dlog4j2.configurationFile={_telemetry_configuration()}",
            "spark.executor.extraJavaOptions": self._code,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # Spark keeps data for its user interface even without one: keep as little as possible.
            "spark.ui.liveUpdate.period": "-1",
            "spark.ui.retainedJobs": "10",
            "spark.ui.retainedStages": "20",
            "spark.ui.retainedTasks": "100",
            "spark.sql.ui.retainedExecutions": "10",
            "spark.sql.ui.explainMode": "simple",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": partitions,
            "spark.default.parallelism": partitions,
            # A batch without data would only evict state: the next one with data does that too.
            "spark.sql.streaming.noDataMicroBatches.enabled": "false",
            "spark.sql.streaming.minBatchesToRetain": "20",
        }
        if pyspark.__version__.startswith("4.1."):
            # Its newer Kafka source fails after the batch that a restarted query repeats:
            # https://issues.apache.org/jira/browse/SPARK-55271. Checkpoints are the same.
            settings[_OLDER_SOURCES] = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
        if self.master.startswith("local"):
            settings["spark.driver.host"] = "127.0.0.1"
            settings["spark.driver.bindAddress"] = "127.0.0.1"
            # Spark makes the secret itself: its ports serve any user of the machine otherwise.
            settings["spark.authenticate"] = "true"
            settings["spark.sql.streaming.checkpointFileManagerClass"] = CHECKPOINT_MANAGER
            settings["spark.python.daemon.module"] = "barnabas.spark.worker_daemon"
        if self.small_batches:
            settings["spark.sql.codegen.wholeStage"] = "false"
            settings["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
            if self.settings.get("spark.ui.enabled", "false") == "false":
                # Nobody sees the description of a micro-batch's plan: this one is empty.
                settings["spark.sql.ui.explainMode"] = "codegen"
        if self.packages:
            settings[PACKAGES] = ",".join(self.all_packages)
            settings["spark.jars.ivy"] = self.ivy_directory
        return {**settings, **self.settings}


def start_session(
    options: SessionOptions,
    say: Say = lambda line: None,
    before_launch: Callable[[], None] = lambda: None,
) -> SparkSession:
    """Start Spark, or return the session of this process if there is one.

    `say` receives a line when packages have to be downloaded, and their progress. The first start
    takes as long as the download (about 60 MB); later ones a few seconds. Other threads wait.
    `before_launch` is called when the JVM is about to be started, if one is. A JVM that ended while
    a session was being started in it is replaced. Raises SparkStartError.
    """
    with _starting:
        if _has_ended():
            forget_lost(SparkContext._active_spark_context)
        return _started(options, say, before_launch)


def _started(options: SessionOptions, say: Say, before_launch: Callable[[], None]) -> SparkSession:
    launch = None
    if SparkContext._gateway is None:
        if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
            raise SparkStartError(_JAVA_MISSING)
        _check_jars(options)
        with download_progress(options.all_packages, options.ivy_directory, say):
            _fetch_and_check(options)
            launch = _launch_of(options)
            keep_compiled(None if launch is None else launch.compiled)
            before_launch()
            gateway = launch_jvm(options, launch)
        SparkContext._ensure_initialized(gateway=gateway)
    # Workers run what this process runs. A cluster's own path to Python comes from its setting.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for name, value in _submitted_settings(options, launch).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if options.small_batches:
        use_in_all_threads(session)
    if options.master.startswith("local"):
        use_plain_files(session)
        _learn(options, session, launch)
    return session


def _launch_of(options: SessionOptions) -> Launch | None:
    settings = _without_packages(options)
    packages = options.wanted_packages if PACKAGES in options.as_settings() else ()
    return launch_of(settings, packages, options.ivy_directory, _spark_home(), options.purpose)


def _submitted_settings(options: SessionOptions, launch: Launch | None) -> dict[str, str]:
    """Those of the options; where the packages' jars are on the class path, without packages."""
    return options.as_settings() if launch is None else _without_packages(options)


def _without_packages(options: SessionOptions) -> dict[str, str]:
    return {key: value for key, value in options.as_settings().items() if key != PACKAGES}


def _learn(options: SessionOptions, session: SparkSession, launch: Launch | None) -> None:
    """Keep what makes the next start shorter."""
    if launch is not None:
        archive_later(launch)
    elif PACKAGES in options.as_settings():
        jars = session.sparkContext.getConf().get("spark.jars", "") or ""
        note_resolved(options.wanted_packages, options.ivy_directory, jars, _spark_home())


def _spark_home() -> str:
    return os.path.dirname(os.path.realpath(pyspark.__file__))


def _fetch_and_check(options: SessionOptions) -> None:
    """Fetch packages that are checked before the session's JVM does, which loads them at once.

    Another JVM fetches them, and loads none. Raises SparkStartError.
    """
    missing = missing_packages(options.wanted_packages, options.ivy_directory)
    if not any(jar_name(package) in jar_digests(with_more=True) for package in missing):
        return
    bare = replace(options, packages=(), settings={**options.settings, PACKAGES: ""})
    try:
        with jvm_without_session(bare) as jvm:
            get = jvm.java.lang.System.getProperty
            jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(
                True,
                get("spark.jars.excludes"),
                ",".join(options.wanted_packages),
                get("spark.jars.repositories"),
                options.ivy_directory,
                jvm.scala.Option.apply(get("spark.jars.ivySettings")),
            )
    except (Py4JError, SparkStartError) as error:
        raise _not_started(options) from error
    _check_jars(options)


def missing_packages(packages: Sequence[str], ivy_directory: str) -> list[str]:
    """Return those whose own jars are not in the directory."""
    jars = os.path.join(ivy_directory, "jars")
    return [one for one in packages if not os.path.exists(os.path.join(jars, jar_name(one)))]


def _check_jars(options: SessionOptions) -> None:
    try:
        check_jars(os.path.join(options.ivy_directory, "jars"), options.wanted_packages)
    except WrongJarError as error:
        raise SparkStartError(str(error)) from error


def _has_ended() -> bool:
    """Return whether Spark's JVM, a child of this process, has ended."""
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


def forget_lost(context: SparkContext | None) -> None:
    """Let go of a JVM that has ended, and of its context, so that another can be started."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it reports the lost JVM
        if context is not None:
            with contextlib.suppress(OSError, Py4JError):
                context.stop()
            context.stop()  # what is left to do where the JVM did not answer
    gateway: Any = SparkContext._gateway
    with contextlib.suppress(OSError, Py4JError):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None


class SharedSession:
    """A session that threads share: the first call makes it, or the first after a loss."""

    def __init__(self, make: Callable[[], SparkSession]) -> None:
        """`make` starts it; see `start_session`."""
        self._make = make
        self._lock = threading.Lock()
        self.started: SparkSession | None = None

    def __call__(self) -> SparkSession:
        """Return it, starting it if needed, while others wait. Raises what `make` raises."""
        with self._lock:
            self._forget_lost()
            if self.started is None:
                self.started = self._make()
            return self.started

    @property
    def is_running(self) -> bool:
        """True if a call would not have to start it."""
        return self.started is not None and not _has_ended()

    def stop(self) -> None:
        """Stop Spark, if it was started."""
        with self._lock:
            self._forget_lost()
            session, self.started = self.started, None
            if session is not None:
                session.stop()

    def _forget_lost(self) -> None:
        if self.started is not None and _has_ended():
            forget_lost(self.started.sparkContext)
            self.started = None


def launch_jvm(options: SessionOptions, launch: Launch | None = None) -> Any:
    """Start a JVM with Spark's classes; returns Py4J's way to it. Raises SparkStartError.

    With `launch` it is started without spark-submit.
    """
    path = options.telemetry_path
    if path is not None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    target = os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        streams = {} if path is None else {"stdout": target, "stderr": target}
        with contextlib.ExitStack() as around:
            around.enter_context(_submitted(_submitted_settings(options, launch)))
            if launch is not None:
                around.enter_context(in_place_of_submit(launch, _spark_home()))
            return launch_gateway(popen_kwargs=streams)  # type: ignore[no-untyped-call]  # PySpark's
    except PySparkRuntimeError as error:
        raise _not_started(options) from error
    finally:
        os.close(target)


@contextlib.contextmanager
def jvm_without_session(options: SessionOptions) -> Iterator[Any]:
    """A JVM with Spark's classes that ends with the block. Raises SparkStartError."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    gateway = launch_jvm(options)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_ENDING_SECONDS_MAX)


def _not_started(options: SessionOptions) -> SparkStartError:
    where = f"; see {options.telemetry_path}" if options.telemetry_path else ""
    return SparkStartError(
        f"Spark did not start{where}. The first start needs Maven Central for "
        f"{', '.join(options.all_packages) or 'no package'}{_untested_pyspark()}"
    )


def _untested_pyspark() -> str:
    """A hint where the installed PySpark is another than the tested ones; else nothing."""
    if pyspark.__version__ in TESTED_PYSPARK.values():
        return ""
    tested = TESTED_PYSPARK["4.0"]
    return (
        f", which may lack those for PySpark {pyspark.__version__}; "
        f"Barnabas is tested with {tested}: pip install pyspark=={tested}"
    )


@contextlib.contextmanager
def _submitted(settings: Mapping[str, str]) -> Iterator[None]:
    """Have spark-submit read its settings from a file that only this user can read.

    PySpark passes settings as arguments, which every user of the machine sees: keys of buckets
    among them. The file is gone once the JVM runs. Raises SparkStartError.
    """
    with _launching, tempfile.TemporaryDirectory(prefix="barnabas-spark-") as directory:
        given = os.environ.get(_ARGUMENTS)  # of the user: no other thread is launching
        if given and _FILE_OPTION in given:
            raise SparkStartError(
                f"{_ARGUMENTS} has {_FILE_OPTION}, of which spark-submit takes one: leave it out, "
                "and write what it sets to spark-defaults.conf in SPARK_CONF_DIR"
            )
        path = os.path.join(directory, "spark.properties")
        write_private(path, format_properties(dict(settings)))
        own = f"{_FILE_OPTION} {shlex.quote(path)} --load-spark-defaults"
        os.environ[_ARGUMENTS] = f"{own} {given or 'pyspark-shell'}"
        try:
            yield
        finally:
            if given is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = given


@contextlib.contextmanager
def download_progress(packages: Sequence[str], ivy_directory: str, say: Say) -> Iterator[None]:
    """Tell of packages that have to be downloaded, and each second how much of which file has come.

    Ivy does not say how large a file is.
    """
    missing = missing_packages(packages, ivy_directory)
    if not missing:
        yield
        return
    downloading = f"downloading {', '.join(missing)}"
    say(f"{downloading} (once, into {ivy_directory})")
    done = threading.Event()
    cache = os.path.join(ivy_directory, "cache")
    before = _size_bytes(cache)  # of other programs and versions

    def watch() -> None:
        said = 0
        while not done.wait(_PROGRESS_SECONDS):
            size_mb = (_size_bytes(cache) - before) // 1_000_000
            if size_mb > said:
                said = size_mb
                say(f"{downloading}: {size_mb} MB so far{_partial_file(cache)}")

    watcher = threading.Thread(target=watch, name="ivy-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    say("downloaded all packages")


def _partial_file(directory: str) -> str:
    """Return what has come of the file that Ivy is fetching, in words; empty between two files."""
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".part"):
                with contextlib.suppress(FileNotFoundError):  # Ivy renames it once it is whole
                    size_mb = os.stat(path).st_size / 1_000_000
                    return f", {size_mb:.1f} MB of {name.removesuffix('.part')}"
    return ""


def _size_bytes(directory: str) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.exists(path):  # Ivy renames its partial files as we look
                total += os.stat(path).st_size
    return total


def _telemetry_configuration() -> str:
    return f"file:{resources.files('barnabas.spark') / 'log4j2.properties'}"
