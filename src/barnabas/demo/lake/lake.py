"""The warehouse as a table of Iceberg: the S3 server, the worker that writes, and the checks."""

from __future__ import annotations

import importlib.util
import socket

from barnabas.demo.access import Access
from barnabas.demo.contract import Truth
from barnabas.demo.lake import table, worker
from barnabas.demo.lake.place import Place
from barnabas.demo.processes import ChildSpec
from barnabas.demo.verdict import Check
from barnabas.demo.workspace import ICEBERG, Settings, Workspace

_ANSWER_SECONDS_MAX = 1.0


class NoLakeError(Exception):
    """The warehouse is not Iceberg; the message says in a few words why."""


class Lake:
    """The demo's bucket and what is written to it."""

    def __init__(self, workspace: Workspace, settings: Settings, bootstrap: str) -> None:
        """Make the bucket's directory. Raises NoLakeError."""
        if settings.warehouse != ICEBERG or settings.bucket_port is None:
            raise NoLakeError("as this directory was made for")
        if importlib.util.find_spec("pyiceberg") is None:
            raise NoLakeError("pyiceberg is not installed")
        self._workspace = workspace
        self._settings = settings
        self._bootstrap = bootstrap
        self.place = Place(workspace, settings.bucket_port)
        try:
            self.place.prepare()
        except OSError as error:
            raise NoLakeError(str(error)) from error

    def answers(self) -> bool:
        """Return whether the S3 server takes connections, asked once."""
        address = ("127.0.0.1", self.place.port)
        try:
            with socket.create_connection(address, _ANSWER_SECONDS_MAX):
                return True
        except OSError:
            return False

    def worker_spec(self, access: Access | None) -> ChildSpec:
        """Return how to start the worker. Raises OSError."""
        return worker.worker_spec(
            self._workspace, self._settings, self._bootstrap, self.place, access
        )

    def checks(self, truth: Truth) -> list[Check]:
        """Return the table beside the truth. Raises table.LakeError."""
        return table.checks(self.place, truth)

    @property
    def where(self) -> str:
        """A hint for users: what to look for, and where."""
        return f"{worker.NAMESPACE}.{worker.TABLE} in s3://{worker.ROOT}"
