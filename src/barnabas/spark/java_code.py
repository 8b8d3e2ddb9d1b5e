"""Barnabas's Java classes in Spark's JVM. Janino, which ships with Spark, compiles them there."""

from __future__ import annotations

import logging
import threading
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types
from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


class JavaCode:
    """A Java class whose object is made once for each JVM."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source
        self._made: tuple[Any, Any] | None = None
        """The gateway to a JVM, and the object there."""
        self._making = threading.Lock()

    def object_in(self, session: SparkSession) -> Any:
        """Return the object in the session's JVM.

        Raises Py4JError if the class does not fit this version of Spark.
        """
        gateway: Any = session.sparkContext._gateway
        # Queries whose first micro-batches meet must get one class: Py4J takes classes of one name
        # for the same.
        with self._making:
            if self._made is None or self._made[0] is not gateway:
                self._made = gateway, self._new(gateway, session.sparkContext._jvm)
            return self._made[1]

    def why_not_in(self, session: SparkSession) -> str:
        """Return why the class cannot be used in a session; empty if it can."""
        try:
            self.object_in(session)
        except Py4JError as error:
            _log.info("%s cannot be compiled: %s", self._name, error)
            return f"Spark {session.version} has other classes"
        return ""

    def _new(self, gateway: Any, jvm: Any) -> Any:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        # The loader that has Spark's packages.
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        compiler.setParentClassLoader(loader)
        compiler.cook(self._source)
        made = compiler.getClassLoader().loadClass(self._name)
        no_types = gateway.new_array(jvm.java.lang.Class, 0)
        no_values = gateway.new_array(jvm.Object, 0)
        return made.getDeclaredConstructor(no_types).newInstance(no_values)
