"""The jars that a session fetches, checked against their SHA-256 in `jars.txt`.

The table has what Spark's Kafka connector and Avro functions need, for the versions of Spark that
tests run on. A jar that it does not name, of another version or a package of a user's, passes.
"""

from __future__ import annotations

import functools
import hashlib
import os
from importlib import resources


class WrongJarError(Exception):
    """A jar is not the one that was tested."""


@functools.cache
def jar_digests() -> dict[str, str]:
    """Return the SHA-256 of each jar by its name."""
    text = (resources.files("barnabas.spark") / "jars.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {name: digest for digest, name in rows}


def check_jars(directory: str) -> int:
    """Check those that lie in a directory. Returns how many were; raises WrongJarError."""
    checked = 0
    for name, digest in jar_digests().items():
        path = os.path.join(directory, name)
        try:
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            continue
        if found != digest:
            raise WrongJarError(
                f"{path} has the SHA-256 {found}, not {digest}, which was tested: delete it, and "
                "see where Spark fetches its packages from"
            )
        checked += 1
    return checked
