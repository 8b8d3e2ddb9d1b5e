"""Barnabas's Java classes in Spark's JVM. Janino, which ships with Spark, compiles them there.

A start compiles some, for half a second of CPU in a JVM that has just begun to run. So where starts
are learned from (launching.py), the compiled classes are kept, and later starts define them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import threading
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types
from pyspark import __version__
from pyspark.sql import SparkSession

from barnabas.base.private_files import write_private

_RELEASE: Final = tuple(int(part) for part in __version__.split(".")[:2])
HAS_MOVED_CLASSES: Final = _RELEASE >= (4, 1)
"""Spark 4.1 moved classes of streaming into packages of their own."""
_OF_THE_RELEASE: Final = {
    "MEMORY": f"org.apache.spark.sql.execution.streaming{'.runtime' * HAS_MOVED_CLASSES}",
    # Spark 4.2 gives each source of a stream a name, which `StreamingRelationV2` takes last.
    "UNNAMED": ", org.apache.spark.sql.catalyst.streaming.Unassigned$.MODULE$"
    * (_RELEASE >= (4, 2)),
}
"""What Java sources call by these names because releases of Spark differ in it."""
_log = logging.getLogger(__name__)
_kept_at: str | None = None


def keep_compiled(prefix: str | None) -> None:
    """Keep compiled classes in files whose paths begin like this, from now on; None: keep none.

    Only classes that fit the JVM of this process may be there; see `Launch.compiled`.
    """
    global _kept_at
    _kept_at = prefix


class JavaCode:
    """A Java class whose object is made once for each JVM.

    In its source, `MEMORY` is the package of Spark's streams in memory, and `UNNAMED` what follows
    the other arguments of a `StreamingRelationV2`.
    """

    def __init__(self, name: str, source: str) -> None:
        for word, meaning in _OF_THE_RELEASE.items():
            source = source.replace(word, meaning)
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
        # The loader that has Spark's packages.
        parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        path = self._path
        if path is not None:
            try:
                return self._instance(gateway, jvm, self._kept(path, jvm, parent))
            except FileNotFoundError:
                pass
            except (OSError, ValueError, TypeError, AttributeError, Py4JError) as error:
                _log.info("%s is compiled again: %s", self._name, error)
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(parent)
        compiler.cook(self._source)
        made = self._instance(gateway, jvm, compiler.getClassLoader())
        if path is not None:
            _keep(path, compiler)
        return made

    def _instance(self, gateway: Any, jvm: Any, loader: Any) -> Any:
        no_types = gateway.new_array(jvm.java.lang.Class, 0)
        no_values = gateway.new_array(jvm.Object, 0)
        made = loader.loadClass(self._name)
        return made.getDeclaredConstructor(no_types).newInstance(no_values)

    @property
    def _path(self) -> str | None:
        if _kept_at is None:
            return None
        told = hashlib.sha256(f"{self._name}\n{self._source}".encode()).hexdigest()
        return f"{_kept_at}-{told[:24]}.code"

    @staticmethod
    def _kept(path: str, jvm: Any, parent: Any) -> Any:
        """A class loader with the classes of a file. Raises OSError, ValueError, TypeError,
        AttributeError, Py4JError where it cannot be used."""
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        os.utime(path)  # it is used
        classes = jvm.java.util.HashMap()
        for name, code in found.items():
            classes.put(name, base64.b64decode(code))
        loaders = jvm.org.codehaus.commons.compiler.util.reflect
        return loaders.ByteArrayClassLoader(classes, parent)


def _keep(path: str, compiler: Any) -> None:
    """Keep what was compiled. A failure costs later starts nothing but time."""
    try:
        codes = compiler.getBytecodes()
        found = {str(name): base64.b64encode(codes[name]).decode() for name in codes}
        write_private(path, json.dumps(found))
    except (OSError, Py4JError, TypeError) as error:
        _log.info("compiled Java code is not kept: %s", error)
