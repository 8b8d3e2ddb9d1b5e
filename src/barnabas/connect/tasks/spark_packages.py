"""Java packages that connectors need, given to Spark while it runs.

Spark reads its own setting of packages once, when its JVM starts; connectors come later. So jars
are fetched as Spark does it (its mirrors and directories hold), and go where its own went: to the
class loader of the driver, and with the next job to executors. Running work continues. The SHA-256
of jars is checked before anything loads them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from barnabas.schemas.data.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IVY: Final = "spark.jars.ivy"
_log: Final = logging.getLogger(__name__)


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
