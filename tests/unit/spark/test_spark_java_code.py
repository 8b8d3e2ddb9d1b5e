"""Classes that Barnabas compiles in Spark's JVM."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from barnabas.spark.java_code import JavaCode, keep_compiled

THREADS = 4
CODE = b"\xca\xfe\xba\xbe"


@pytest.fixture(autouse=True)
def kept(tmp_path: Path) -> Iterator[Path]:
    """Where compiled classes are kept."""
    keep_compiled(str(tmp_path / "classes"))
    yield tmp_path
    keep_compiled(None)


class HashMap(dict[str, bytes]):
    put = dict.__setitem__


class Jvm:
    """Compiles slowly enough that all threads ask for it; each class has an object."""

    def __init__(self) -> None:
        self.compiled = 0
        self.defined: list[HashMap] = []
        self.others = threading.Event()
        context = MagicMock()
        context._jvm.java.util.HashMap = HashMap
        loaders = context._jvm.org.codehaus.commons.compiler.util.reflect
        loaders.ByteArrayClassLoader = self._loader
        context._jvm.org.codehaus.janino.SimpleCompiler = self._compiler
        self.session = cast("SparkSession", MagicMock(sparkContext=context))

    def _compiler(self) -> Any:
        compiler = MagicMock()
        compiler.cook = self._cook
        compiler.getBytecodes = lambda: {"Counter": CODE}
        return compiler

    def _loader(self, classes: HashMap, _parent: Any) -> Any:
        self.defined.append(classes)
        if classes != {"Counter": CODE}:
            raise Py4JError("it cannot be defined")
        return MagicMock()

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


@pytest.mark.parametrize("keeps", [True, False])
def test_a_new_jvm_gets_its_own(keeps: bool) -> None:
    if not keeps:
        keep_compiled(None)
    code = JavaCode("Counter", "public class Counter {}")
    first, second = Jvm(), Jvm()
    one, other = code.object_in(first.session), code.object_in(second.session)
    assert one is not other
    # The second one defines what the first one has compiled.
    assert (first.compiled, second.compiled) == (1, 0 if keeps else 1)
    assert second.defined == ([{"Counter": CODE}] if keeps else [])


def test_other_code_of_that_name_is_compiled() -> None:
    first, second = Jvm(), Jvm()
    JavaCode("Counter", "public class Counter {}").object_in(first.session)
    JavaCode("Counter", "public class Counter { int more; }").object_in(second.session)
    assert (first.compiled, second.compiled) == (1, 1)


@pytest.mark.parametrize("text", ["", "[]", '{"Counter": 1}', json.dumps({"Counter": "AAAA"})])
def test_a_file_that_cannot_be_used_is_written_again(text: str, kept: Path) -> None:
    code = JavaCode("Counter", "public class Counter {}")
    code.object_in(Jvm().session)
    (path,) = kept.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    whole = path.read_text()
    path.write_text(text)
    second = Jvm()
    code.object_in(second.session)
    assert second.compiled == 1
    assert path.read_text() == whole
