"""Which files of the worker's machine connectors may reach: those below directories of its setting.

Connectors of databases, lakes and Spark's formats take a path where others take an address:
`jdbc:sqlite:/path`, `delta.location=/path`, `format=csv` with `option.path`. What they reach so is
below a directory that the worker's setting `barnabas.connect.paths` names, which is empty unless it
is set; `/` allows every path. Connectors that are for files alone are off by default instead
(`allowed_plugins.py`).

The table belongs to the process, as that of plugins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import unquote

from barnabas.connect.allowed_plugins import NotAllowedError

PATHS_SETTING: Final = "barnabas.connect.paths"
REMOTE_SCHEMES: Final = frozenset(
    {
        *("s3", "s3a", "s3n", "gs", "gcs", "oss", "cosn"),
        *("abfs", "abfss", "az", "azure", "adl", "adls", "wasb", "wasbs"),
        *("hdfs", "webhdfs", "swebhdfs", "http", "https"),
    }
)
"""Schemes of locations on other machines. Any other may lead to a local file, as `har:` does."""
EMBEDDED_DATABASES: Final = ("derby", "duckdb", "h2", "hsqldb")
"""Databases in the process of their driver: their addresses name files in many ways."""
EVERYTHING: Final = "/"
_PARTS: Final = re.compile(r"[/{},\\]")
_SQLITE: Final = "jdbc:sqlite:"
_directories: set[str] = set()


class _Connector(Protocol):
    def files(self, settings: Mapping[str, str]) -> Mapping[str, Sequence[str]]: ...


def allow_paths(directories: Iterable[str]) -> None:
    """Let connectors reach what is below these."""
    _directories.update(os.path.realpath(one.strip()) for one in directories if one.strip())


def allow_paths_of_worker(settings: Mapping[str, str]) -> None:
    """Let connectors reach what the worker's own settings name."""
    allow_paths(settings.get(PATHS_SETTING, "").split(","))


def check_files(connector: _Connector, settings: Mapping[str, str]) -> None:
    """Check the files that a connector with these settings reaches. Raises NotAllowedError."""
    for name, texts in file_errors(connector, settings).items():
        raise NotAllowedError(f"{name}: {texts[0]}")


def file_errors(connector: _Connector, settings: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """Say for each setting which files it may not name."""
    errors: dict[str, Sequence[str]] = {}
    for name, paths in connector.files(settings).items():
        refused = [path for path in paths if not _is_allowed(path)]
        if refused:
            text = f"{refused[0]} is a path of the worker's machine, and below none that"
            errors[name] = [f"{text} {PATHS_SETTING} of the worker's settings names"]
    return errors


def local_paths(*locations: str) -> list[str]:
    """Return the paths of those locations that are on this machine, or may be."""
    paths = []
    for location in locations:
        scheme, colon, rest = location.strip().partition(":")
        if colon and scheme.lower() in REMOTE_SCHEMES:
            continue
        if colon and scheme.lower() == "file":
            rest = unquote(rest)
            path = re.sub(r"^//[^/]*", "", rest) if rest.startswith("//") else rest
            paths.append(path or EVERYTHING)
        elif colon and "/" not in scheme:
            paths.append(EVERYTHING)  # a scheme that we do not know
        elif location.strip():
            paths.append(location.strip())
    return paths


def database_paths(url: str) -> list[str]:
    """Return the files of a database's address; `/` where they cannot be told from it."""
    text = url.strip()
    if text.lower().startswith(_SQLITE):
        path = text[len(_SQLITE) :].partition("?")[0]
        return [] if path in ("", ":memory:") else [path]
    kind = text.removeprefix("jdbc:").partition(":")[0].lower()
    return [EVERYTHING] if kind in EMBEDDED_DATABASES else []


def _is_allowed(path: str) -> bool:
    if EVERYTHING in _directories:
        return True
    if ".." in _PARTS.split(path):  # perhaps in a pattern, which is resolved later
        return False
    real = os.path.realpath(path)
    return any(os.path.commonpath((real, one)) == one for one in _directories)
