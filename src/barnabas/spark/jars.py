"""The jars that are fetched from Maven, checked against their SHA-256 before a JVM loads them.

`jars.txt` has what sessions need for Spark's Kafka connector and Avro functions, for the versions
of Spark that tests run on; `more_jars.txt` has what connectors and the demo add. A jar in neither
file (another version, or a user's package) is accepted, unless one of our packages depends on it:
all dependencies of those are listed.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable
from importlib import resources


class WrongJarError(Exception):
    """A jar is not the one that was tested."""


@functools.cache
def jar_digests(*, with_more: bool = False) -> dict[str, str]:
    """Return the SHA-256 of each jar of a session by its name, or of all jars."""
    digests = {}
    for table in ("jars.txt", "more_jars.txt") if with_more else ("jars.txt",):
        text = (resources.files("barnabas.spark") / table).read_text(encoding="utf-8")
        rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
        digests.update({name: digest for digest, name in rows})
    return digests


def jar_name(coordinates: str) -> str:
    """Return the name that Ivy gives to the jar of `group:artifact:version`."""
    group, _, rest = coordinates.partition(":")
    return f"{group}_{rest.replace(':', '-')}.jar"


def check_jars(directory: str, packages: Iterable[str] = ()) -> int:
    """Check what a session loads from a directory. Returns how many; raises WrongJarError.

    All jars that are known are looked at where one of `packages` is a connector's.
    """
    more = jar_digests(with_more=True).keys() - jar_digests().keys()
    with_more = any(jar_name(package) in more for package in packages)
    checked = 0
    for name, digest in jar_digests(with_more=with_more).items():
        try:
            _check(os.path.join(directory, name), digest)
        except FileNotFoundError:
            continue
        checked += 1
    return checked


def check_fetched(coordinates: str, paths: Iterable[str]) -> None:
    """Check the jars that were fetched for a package. Raises WrongJarError."""
    known = jar_digests(with_more=True)
    is_ours = jar_name(coordinates) in known
    for path in paths:
        digest = known.get(os.path.basename(path))
        if digest is not None:
            _check(path, digest)
        elif is_ours:
            raise WrongJarError(
                f"{path} came with {coordinates}, which does not need it: see where Spark fetches "
                "its packages from"
            )


def _check(path: str, digest: str) -> None:
    with open(path, "rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != digest:
        raise WrongJarError(
            f"{path} has the SHA-256 {actual}, not {digest}, which was tested: delete it, and "
            "see where Spark fetches its packages from"
        )
