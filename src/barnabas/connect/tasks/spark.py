"""The engine on Spark: a micro-batch is one job, which a thread of the driver plans.

Connectors declare what is not worth distributing, such as a piece of a database's log: that thread
does it itself, since a job would take some hundred milliseconds longer, and have one task. Spark
starts when it is first needed, with the worker's settings:

    barnabas.connect.spark.master     local[2], spark://…, yarn …; sc://… is Spark Connect
    barnabas.connect.spark.packages   Maven coordinates, beside what connectors ask for
    barnabas.connect.spark.conf.*     any setting of Spark

Jobs of different connectors share the executors fairly (pools of the FAIR scheduler).

Spark reads its own setting of packages once, when its JVM starts; connectors come later. So jars
are fetched as Spark does it (its mirrors and directories hold), and go where its own went: to the
class loader of the driver, and with the next job to executors. Running work continues. The SHA-256
of jars is checked before anything loads them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.config.values import names, with_prefix
from barnabas.connect.connectors.base import Connector
from barnabas.connect.tasks.base import ENGINE, Waits
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.flow import FlowSpec
from barnabas.connect.tasks.kafka_transport import KafkaTransport
from barnabas.connect.tasks.local import LocalEngine
from barnabas.connect.tasks.runner import BatchRunner
from barnabas.connect.tasks.source_transactions import SETTING, Boundary, EachBatch, kind_of
from barnabas.connect.tasks.spark_runner import SparkBatchRunner, is_connect
from barnabas.connect.tasks.transport import Transport
from barnabas.schemas.data.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX: Final = "barnabas.connect.spark."
DEFAULT_MASTER: Final = "local[2]"
_IVY: Final = "spark.jars.ivy"
_log: Final = logging.getLogger(__name__)


class SparkEngine(LocalEngine):
    """Runs tasks whose micro-batches are Spark jobs."""

    def __init__(self, make_session: Callable[[], SparkSession]) -> None:
        from barnabas.spark.session import SharedSession

        super().__init__()
        self._shared = SharedSession(make_session)
        self._adding = Lock()
        self._waiting: list[Waits] = []
        self._waiting_lock = Lock()

    def runner(
        self,
        connector: Connector,
        spec: FlowSpec,
        transport: Transport,
        stopping: Event,
        boundary: Boundary | None,
        waits: Waits,
    ) -> BatchRunner:
        """Return who carries out the micro-batches of a task. Raises ConfigError."""
        assert isinstance(transport, KafkaTransport)
        is_distributed = connector.is_worth_distributing(spec.settings)
        if is_distributed and boundary is not None and not isinstance(boundary, EachBatch):
            raise ConfigError(
                f"{SETTING}={kind_of(spec.settings)} needs {ENGINE}=local for this connector: on "
                "Spark each micro-batch is committed separately, as with poll"
            )
        packages = connector.spark_packages(spec.settings)
        return SparkBatchRunner(
            *(spec, transport, stopping, boundary),
            lambda: self.session_for(waits),
            lambda: self.add_packages(packages, waits),
            is_distributed=is_distributed,
        )

    def add_packages(self, packages: Mapping[str, str], waits: Waits) -> None:
        """Give Spark the Java packages that it lacks. Raises ConnectError, SparkStartError.

        Through Spark Connect there is no way: its server has what it was started with.
        """
        if not packages or is_connect(session := self.session_for(waits)):
            return
        if not self._adding.acquire(blocking=False):
            with self._shown(waits, "Spark downloads packages for another task"):
                self._adding.acquire()
        try:
            add_packages(session, packages, lambda what: self._shown(waits, what))
        finally:
            self._adding.release()

    def session(self) -> SparkSession:
        """Return the session, which its first user waits for, and the next after Spark was lost.

        Raises SparkStartError.
        """
        return self._shared()

    def session_for(self, waits: Waits) -> SparkSession:
        """Return the session to a task, whose state shows what is done until Spark runs.

        Raises SparkStartError.
        """
        if self._shared.is_running:
            return self.session()
        with self._shown(waits, "Spark is starting"):
            return self.session()

    def say(self, line: str) -> None:
        """Show the progress of Spark's start as the state of all tasks that wait for it."""
        with self._waiting_lock:  # who waits no more has said so after this
            for waits in self._waiting:
                waits(line)

    @contextmanager
    def _shown(self, waits: Waits, what: str) -> Iterator[None]:
        with self._waiting_lock:
            waits(what)
            self._waiting.append(waits)
        try:
            yield
        finally:
            with self._waiting_lock:
                self._waiting.remove(waits)
            waits(None)

    @property
    def spark(self) -> Callable[[], Any] | None:
        """Return what gives readers and writers the Spark session."""
        return self.session

    def close(self) -> None:
        """Stop all tasks, and Spark."""
        super().close()
        self._shared.stop()


def session_of(worker: Settings, say: Callable[[str], None]) -> SparkSession:
    """Start Spark as a worker's settings say. Raises SparkStartError."""
    from barnabas.spark.session import SessionOptions, start_session

    given = with_prefix(worker, PREFIX)
    master = given.get("master", DEFAULT_MASTER)
    settings = {"spark.scheduler.mode": "FAIR", **with_prefix(given, "conf.")}
    if master.startswith("sc://"):
        from pyspark.sql import SparkSession

        return SparkSession.builder.remote(master).getOrCreate()
    options = SessionOptions(
        app_name=f"barnabas-connect-{worker.get('group.id', 'standalone')}",
        master=master,
        packages=tuple(names(given.get("packages", ""))),
        small_batches=True,
        telemetry_path=given.get("log"),
        settings=settings,
    )
    return start_session(options, say)


def spark_engine(worker: Settings) -> SparkEngine:
    """Return the engine of a worker with these settings. Spark starts with its first task."""
    engine = SparkEngine(lambda: session_of(worker, engine.say))
    return engine


def add_packages(
    session: SparkSession,
    packages: Mapping[str, str],
    waiting: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Add those packages whose class Spark lacks: name of a class -> Maven coordinates.

    `waiting` shows what takes long while it does. Raises ConnectError if one cannot be fetched, or
    is not the one that was tested.
    """
    from barnabas.spark.jars import WrongJarError, check_fetched
    from barnabas.spark.session import default_ivy_directory

    jvm = session._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for class_name, coordinates in packages.items():
        if loader.getResource(f"{class_name.replace('.', '/')}.class") is not None:
            continue
        if jvm.java.lang.System.getProperty(_IVY) is None:
            jvm.java.lang.System.setProperty(_IVY, default_ivy_directory())
        with waiting(f"Spark downloads {coordinates}"):
            paths = _fetched(session, class_name, coordinates)
        try:
            check_fetched(coordinates, paths)
        except WrongJarError as error:
            raise ConnectError(str(error)) from error
        for path in paths:
            loader.addURL(jvm.java.io.File(path).toURI().toURL())
            session.sparkContext._jsc.addJar(path)  # to executors
        _log.info("Spark has loaded %s for connectors", coordinates)


def _fetched(session: SparkSession, class_name: str, coordinates: str) -> list[str]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
    from pyspark.errors import PySparkException

    jvm = session._jvm
    assert jvm is not None
    try:
        address = jvm.java.net.URI.create(f"ivy://{coordinates}")
        resolved = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(address)
        return [resolved.apply(number) for number in range(resolved.length())]
    except (Py4JError, PySparkException) as error:
        cause = getattr(error, "java_exception", None) or error
        reason = str(cause).strip().splitlines()[0]
        raise ConnectError(
            f"Spark lacks {class_name}, and {coordinates} cannot be fetched: {reason}. Without a "
            "network, put its jars where Spark finds them (barnabas.connect.spark.conf.spark.jars)"
        ) from error
