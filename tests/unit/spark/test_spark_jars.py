"""Jars are compared with the table before a JVM loads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from barnabas.connect.connectors.iceberg.connectors import PACKAGE
from barnabas.connect.tasks.spark import add_packages
from barnabas.schemas.data.errors import ConnectError
from barnabas.spark import session
from barnabas.spark.jars import WrongJarError, check_fetched, check_jars, jar_name
from barnabas.spark.packages import Package, PackageError, fetch_jars

OTHERS = "org.example:thing:1.0"


@pytest.fixture
def place(tmp_path: Path) -> Callable[[str], str]:
    """Put a file of some bytes there, under a name."""

    def write(name: str) -> str:
        path = tmp_path / "jars" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"another")
        return str(path)

    return write


def test_another_jar_under_a_known_name_is_refused(place: Callable[[str], str]) -> None:
    with pytest.raises(WrongJarError, match="has the SHA-256"):
        check_fetched(PACKAGE, [place(jar_name(PACKAGE))])


def test_a_jar_that_comes_along_unasked_is_refused(place: Callable[[str], str]) -> None:
    with pytest.raises(WrongJarError, match="which does not need it"):
        check_fetched(PACKAGE, [place("org.evil_thing-1.0.jar")])


def test_packages_of_users_bring_what_they_like(place: Callable[[str], str]) -> None:
    check_fetched(OTHERS, [place(jar_name(OTHERS)), place("org.example_more-2.jar")])


def test_a_session_with_a_connectors_package_checks_its_jars(
    place: Callable[[str], str], tmp_path: Path
) -> None:
    place(jar_name(PACKAGE))
    assert check_jars(str(tmp_path / "jars")) == 0
    with pytest.raises(WrongJarError, match="has the SHA-256"):
        check_jars(str(tmp_path / "jars"), [OTHERS, PACKAGE])


def jvm_that_fetches(*paths: str) -> MagicMock:
    jvm = MagicMock()
    found = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies.return_value
    found.length.return_value = len(paths)
    found.apply.side_effect = paths.__getitem__
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.getResource.return_value = None
    return jvm


def test_a_running_session_gets_no_other_jar(place: Callable[[str], str]) -> None:
    running: Any = MagicMock()
    running._jvm = jvm_that_fetches(place(jar_name(PACKAGE)))
    with pytest.raises(ConnectError, match="has the SHA-256"):
        add_packages(running, {"org.example.Thing": PACKAGE})
    loader = running._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL.assert_not_called()
    running.sparkContext._jsc.addJar.assert_not_called()
    running._jvm = jvm_that_fetches(place(jar_name(OTHERS)))
    add_packages(running, {"org.example.Thing": OTHERS})
    running.sparkContext._jsc.addJar.assert_called_once()


def test_programs_get_no_other_jar(
    place: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jvm = MagicMock()
    jvm.return_value.__enter__.return_value = jvm_that_fetches(place(jar_name(PACKAGE)))
    monkeypatch.setattr(session, "jvm_without_session", jvm)
    with pytest.raises(PackageError, match="has the SHA-256"):
        fetch_jars([Package(PACKAGE)], ivy_directory=str(tmp_path))
