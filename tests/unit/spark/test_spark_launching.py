"""Starts of Spark's JVM without spark-submit: what is learned, and when it is not used."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from barnabas.spark import launching
from barnabas.spark.launching import (
    Launch,
    in_place_of_submit,
    launch_of,
    note_resolved,
    resolved,
    write_archive,
)

PACKAGES = ("org.example:one:1",)
PRINTED = """\
\0
/java\0-cp\0/spark/jars/*\0-Xmx768m\0org.apache.spark.deploy.SparkSubmit\0--conf\0a=b\0pyspark-shell\0"""


@pytest.fixture(autouse=True)
def archives_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are by default; `make test` writes none."""
    monkeypatch.delenv("BARNABAS_SPARK_ARCHIVES", raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Spark, and a Java beside it that prints commands as Spark's launcher does."""
    for name in launching._OWN_CONFIGURATION:
        monkeypatch.delenv(name, raising=False)
    spark, java = tmp_path / "spark", tmp_path / "jdk" / "bin" / "java"
    (spark / "jars").mkdir(parents=True)
    (spark / "jars" / "two-2.jar").touch()
    java.parent.mkdir(parents=True)
    (java.parent / "printed").write_text(PRINTED)
    java.write_text('#!/bin/sh\necho "$@" >> "$(dirname $0)/calls"\ncat "$(dirname $0)/printed"\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return str(spark)


def learn(tmp_path: Path, home: str) -> str:
    jars = tmp_path / "ivy" / "jars"
    jars.mkdir(parents=True)
    for name in ("org.example_one-1.jar", "org.other_two-2.jar"):
        (jars / name).touch()
    found = ",".join(f"file://{jars / name}" for name in sorted(os.listdir(jars)))
    note_resolved(PACKAGES, str(tmp_path / "ivy"), found, home)
    return str(tmp_path / "ivy")


def launch(ivy: str, home: str, purpose: str = "", **settings: str) -> Launch | None:
    given = {"spark.master": "local[2]", "spark.driver.memory": "768m"}
    return launch_of({**given, **settings}, PACKAGES, ivy, home, purpose)


def test_packages_are_on_the_class_path_once_they_were_resolved(tmp_path: Path, home: str) -> None:
    assert launch(str(tmp_path / "ivy"), home) is None
    ivy = learn(tmp_path, home)
    found = launch(ivy, home)
    assert found is not None
    # Spark has the other one itself.
    assert found.class_path == f"/spark/jars/*:{ivy}/jars/org.example_one-1.jar"
    assert found.arguments() == [
        f"{tmp_path}/jdk/bin/java",
        "-cp",
        found.class_path,
        "-Xmx768m",
    ]


def test_a_jar_that_is_gone_is_resolved_again(tmp_path: Path, home: str) -> None:
    ivy = learn(tmp_path, home)
    os.unlink(f"{ivy}/jars/org.example_one-1.jar")
    assert resolved(PACKAGES, ivy) is None
    assert launch(ivy, home) is None


def test_the_command_is_asked_for_once(tmp_path: Path, home: str) -> None:
    ivy = learn(tmp_path, home)
    first, second = launch(ivy, home), launch(ivy, home)
    assert first == second
    calls = tmp_path / "jdk" / "bin" / "calls"
    assert len(calls.read_text().splitlines()) == 1
    launch(ivy, home, **{"spark.driver.memory": "1g"})
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        ({"spark.master": "spark://host:7077"}, ""),
        ({"spark.master": "local-cluster[2,1,512]"}, ""),
        ({"spark.driver.extraClassPath": "/x"}, ""),
        ({"spark.jars": "x.jar"}, ""),
        ({}, "SPARK_CONF_DIR"),
        ({}, "PYSPARK_SUBMIT_ARGS"),
    ],
)
def test_spark_submit_starts_what_has_settings_of_its_own(
    settings: dict[str, str],
    variable: str,
    tmp_path: Path,
    home: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ivy = learn(tmp_path, home)
    if variable:
        monkeypatch.setenv(variable, "x")
    assert launch(ivy, home, **settings) is None


def test_a_launcher_that_prints_something_else_is_not_used(tmp_path: Path, home: str) -> None:
    ivy = learn(tmp_path, home)
    (tmp_path / "jdk" / "bin" / "printed").write_text("usage: …")
    assert launch(ivy, home) is None
    assert not [name for name in os.listdir(f"{ivy}/starts") if name.startswith("command")]


def test_the_jvm_lists_its_classes_until_there_is_an_archive(tmp_path: Path, home: str) -> None:
    found = launch(learn(tmp_path, home), home)
    assert found is not None

    def script() -> str:
        with in_place_of_submit(found, home):
            path = Path(os.environ["SPARK_HOME"], "bin", "spark-submit")
            assert path.stat().st_mode & 0o777 == 0o700
            return path.read_text()

    assert f"-XX:DumpLoadedClassList={found.class_list}" in script()
    assert "SPARK_HOME" not in os.environ
    Path(found.archive).touch()
    assert f"-XX:SharedArchiveFile={found.archive}" in script()
    assert f"SPARK_HOME={home};" in script()


def test_without_archives_none_is_written_but_one_that_exists_is_used(
    tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_SPARK_ARCHIVES", "0")
    monkeypatch.setattr(launching, "_look_later", lambda *_: pytest.fail("it would be written"))
    found = launch(learn(tmp_path, home), home)
    assert found is not None

    def script() -> str:
        with in_place_of_submit(found, home):
            return Path(os.environ["SPARK_HOME"], "bin", "spark-submit").read_text()

    launching.archive_later(found)
    assert "-XX:DumpLoadedClassList" not in script()
    Path(found.archive).touch()
    assert f"-XX:SharedArchiveFile={found.archive}" in script()


@pytest.mark.parametrize("changed", ["spark/jars/two-2.jar", "ivy/jars/org.example_one-1.jar"])
def test_another_jar_at_the_same_path_needs_another_archive(
    changed: str, tmp_path: Path, home: str
) -> None:
    printed = tmp_path / "jdk" / "bin" / "printed"
    printed.write_text(PRINTED.replace("/spark/", f"{home}/"))
    found = launch(learn(tmp_path, home), home)
    assert found is not None
    before = found.archive
    assert found.archive == before
    (tmp_path / changed).write_text("as installed again")
    assert found.archive != before


@pytest.mark.parametrize(
    ("sizes", "written_after"),
    [([5_000], 1), ([200_000, 205_000], 2), ([200_000, 400_000, 401_000], 3), ([], None)],
)
def test_the_archive_is_written_once_few_classes_are_loaded(
    sizes: list[int],
    written_after: int | None,
    tmp_path: Path,
    home: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = launch(learn(tmp_path, home), home)
    assert found is not None
    looks = 0

    class Timer:
        """Due at once."""

        def __init__(self, _seconds: float, look: Any, arguments: Any) -> None:
            self._look, self._arguments = look, arguments

        def start(self) -> None:
            nonlocal looks
            if looks < len(sizes):
                Path(found.class_list).write_bytes(b"x" * sizes[looks])
            looks += 1
            self._look(*self._arguments)

    written = []
    monkeypatch.setattr(launching, "write_archive", lambda _launch: written.append(looks))
    monkeypatch.setattr(threading, "Timer", Timer)
    launching.archive_later(found)
    assert written == ([] if written_after is None else [written_after])


def test_each_purpose_has_an_archive(tmp_path: Path, home: str) -> None:
    """The first start of one says which classes are in it: others load more."""
    ivy = learn(tmp_path, home)
    found = {purpose: launch(ivy, home, purpose) for purpose in ("", "sql")}
    plain, sql = found[""], found["sql"]
    assert plain is not None
    assert sql is not None
    assert plain.archive != sql.archive
    assert plain.arguments() == sql.arguments()


def test_an_archive_is_written_whole_or_not_at_all(tmp_path: Path, home: str) -> None:
    found = launch(learn(tmp_path, home), home)
    assert found is not None
    assert not write_archive(found)  # no list of classes
    java = tmp_path / "jdk" / "bin" / "java"
    dump = """#!/bin/sh
for option in "$@"; do case "$option" in
    -XX:SharedClassListFile=*) list="${option#*=}";;
    -XX:SharedArchiveFile=*) archive="${option#*=}";;
esac; done
cat "$list" > "$archive"
"""
    for end, is_written in (("exit 1", False), ("exit 0", True)):
        java.write_text(f"{dump}{end}\n")
        java.chmod(0o755)
        # The JVM may be in the middle of a line.
        Path(found.class_list).write_text("java/lang/Object\njava/lang/Str")
        archive = Path(found.archive)  # another one for another Java
        assert write_archive(found) is is_written
        assert not is_written or archive.read_text() == "java/lang/Object\n"
        left = [name for name in os.listdir(found.directory) if not name.endswith(".json")]
        assert left == ([archive.name] if is_written else [])


def test_what_nobody_uses_is_deleted(tmp_path: Path) -> None:
    day_s = 86_400
    ages = {"a.jsa": 40 * day_s, "b.jsa": 20 * day_s, "c.partial": day_s, "d.partial": 60}
    ages |= {"f.code": 40 * day_s, "g.code": 20 * day_s}
    for name, age_s in {**ages, "e.json": 40 * day_s}.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    launching._sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["b.jsa", "d.partial", "e.json", "g.code"]
