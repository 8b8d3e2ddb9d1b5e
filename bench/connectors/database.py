"""A PostgreSQL of the benchmark's own: the tests', which are not packaged."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
_server = import_module("support.connect.postgres")

USER: str = _server.USER
postgres = _server.postgres
"""A context manager that gives a server."""
insert_many = _server.insert_many
capture_settings = import_module("support.connect.capture").settings
SourceDriver = import_module("support.connect.reading").SourceDriver


def access(server: Any) -> dict[str, str]:
    """The settings of JDBC's connectors that say where it is."""
    return {
        "connection.url": server.jdbc_url,
        "connection.user": USER,
        "connection.password": server.password,
    }
