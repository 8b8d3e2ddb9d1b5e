"""Classes that Barnabas compiles in Spark's JVM."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from unittest.mock import MagicMock

from pyspark.sql import SparkSession

from barnabas.spark.java_code import JavaCode

THREADS = 4


class Jvm:
    """Compiles slowly enough that all threads ask for it; each class has an object."""

    def __init__(self) -> None:
        self.compiled = 0
        self.others = threading.Event()
        context = MagicMock()
        context._jvm.org.codehaus.janino.SimpleCompiler = self._compiler
        self.session = cast("SparkSession", MagicMock(sparkContext=context))

    def _compiler(self) -> Any:
        compiler = MagicMock()
        compiler.cook = self._cook
        return compiler

    def _cook(self, _source: str) -> None:
        self.compiled += 1
        self.others.wait(0.2)  # nobody sets it: those that need not wait get here as well


def test_threads_that_ask_at_once_get_one_object() -> None:
    jvm = Jvm()
    code = JavaCode("Counter", "public class Counter {}")
    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(lambda _: code.object_in(jvm.session), range(THREADS)))
    assert jvm.compiled == 1
    assert all(one is made[0] for one in made)


def test_a_new_jvm_gets_its_own() -> None:
    code = JavaCode("Counter", "public class Counter {}")
    first, second = Jvm(), Jvm()
    one, other = code.object_in(first.session), code.object_in(second.session)
    assert one is not other
    assert (first.compiled, second.compiled) == (1, 1)
