"""Fetches Java packages for programs outside of Spark, as Spark fetches its own.

They go into the directory that sessions use (see `session.default_ivy_directory`), through the
configured mirrors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.spark.jars import WrongJarError, check_fetched

Say = Callable[[str], None]


class PackageError(Exception):
    """A package cannot be fetched, or is not the one that was tested; the message says why."""


@dataclass(slots=True, frozen=True)
class Package:
    """Maven coordinates, and the dependencies to leave out (`group:artifact`, also `*`)."""

    coordinates: str
    without: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """As Spark writes it."""
        excluded = f"?exclude={','.join(self.without)}" if self.without else ""
        return f"ivy://{self.coordinates}{excluded}"


def fetch_jars(
    packages: Sequence[Package], say: Say = lambda line: None, ivy_directory: str | None = None
) -> list[list[str]]:
    """Return the jars of each package, its own and those that it needs, checked.

    Raises PackageError.

    `say` receives a line when something has to be downloaded, and the progress of that.
    """
    # Here, for the sake of who only names packages: PySpark is heavy.
    from barnabas.spark.session import (
        SessionOptions,
        SparkStartError,
        default_ivy_directory,
        download_progress,
        jvm_without_session,
    )

    directory = ivy_directory or default_ivy_directory()
    names = [package.coordinates for package in packages]
    bare = SessionOptions("barnabas-packages", packages=(), driver_memory="256m")
    try:
        with download_progress(names, directory, say), jvm_without_session(bare) as jvm:
            jvm.java.lang.System.setProperty("spark.jars.ivy", directory)
            fetched = [_fetched(jvm, package) for package in packages]
    except SparkStartError as error:
        raise PackageError(str(error)) from error
    check(packages, fetched)
    return fetched


def check(packages: Sequence[Package], fetched: Sequence[Sequence[str]]) -> None:
    """Check the jars of each package against the table. Raises PackageError."""
    try:
        for package, paths in zip(packages, fetched, strict=True):
            check_fetched(package.coordinates, paths)
    except WrongJarError as error:
        raise PackageError(str(error)) from error


def _fetched(jvm: Any, package: Package) -> list[str]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

    try:
        address = jvm.java.net.URI.create(package.address)
        paths = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(address)
        return [str(paths.apply(number)) for number in range(paths.length())]
    except Py4JError as error:
        raise PackageError(f"{package.coordinates} cannot be fetched: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    cause = str(getattr(error, "java_exception", None) or error).strip()
    return cause.splitlines()[0] if cause else "no reason given"
