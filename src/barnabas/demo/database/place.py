"""The database's part of the demo's directory: the cluster, and who logs in with which password.

Also where PostgreSQL's programs are, and as whom they run.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas.base.private_files import write_private
from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Settings, Workspace

DATABASE: Final = "postgres"
"""The part's name, and that of its directory."""
OPERATOR, CAPTURE = "operator", "capture"
"""Who owns the tables and changes them; who reads their changes."""
PASSWORD_VARIABLE: Final = "BARNABAS_DEMO_DATABASE_PASSWORD_FILE"
"""Names the file with the operator's password: passwords are in no command line."""
_PASSWORD_BYTES: Final = 18
_SEARCH: Final = 0o001
DEBIAN: Final = Path("/usr/lib/postgresql")
"""Debian keeps the programs here, a folder for each version, and not on the PATH."""
SYSTEM_USER: Final = "postgres"


class Place:
    """Files of the demo's PostgreSQL."""

    def __init__(self, workspace: Workspace, settings: Settings) -> None:
        self._workspace = workspace
        self._settings = settings

    def prepare(self, programs: Programs) -> None:
        """Create passwords and the cluster's directory if they do not exist. Raises OSError."""
        os.makedirs(self._workspace.path(DATABASE), mode=0o711, exist_ok=True)
        for name in ("superuser", OPERATOR, CAPTURE):
            if not os.path.exists(self.password_file(name)):
                write_private(self.password_file(name), secrets.token_urlsafe(_PASSWORD_BYTES))
        directory = self._settings.database_directory
        if directory is not None and os.path.isdir(directory):
            return
        directory = self._workspace.path(DATABASE, "cluster")
        if programs.user is not None and not _is_open_to_all(self._workspace.path(DATABASE)):
            # Nobody but root comes to the demo's directory.
            directory = tempfile.mkdtemp(prefix="barnabas-demo-postgres-")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if programs.user is not None:
            shutil.chown(directory, programs.user)
        self._settings.database_directory = directory
        self._workspace.save_settings(self._settings)

    def spec(self) -> ChildSpec:
        """Return how to start the server."""
        assert self._settings.database_directory is not None
        command = [sys.executable, "-m", "barnabas.demo.database.server"]
        command += ["--directory", self._settings.database_directory]
        command += ["--port", str(self._settings.database_port)]
        command += ["--password-file", self.password_file("superuser")]
        return ChildSpec(
            DATABASE,
            command,
            grace_seconds=5.0,
            advice="See the log; --fresh begins with a new database.",
        )

    def password_file(self, role: str) -> str:
        """Return the file with a role's password, and nothing else."""
        return self._workspace.path(DATABASE, f"{role}.password")

    def password(self, role: str) -> str:
        """Return a role's password. Raises OSError."""
        with open(self.password_file(role), encoding="utf-8") as file:
            return file.read()


def _is_open_to_all(path: str) -> bool:
    """Return whether any user may pass through a directory and all those above it."""
    while os.stat(path).st_mode & _SEARCH:
        above = os.path.dirname(path)
        if above == path:
            return True
        path = above
    return False


@dataclass(slots=True, frozen=True)
class Programs:
    """The programs of a server. `user` is the user that runs it; None is ourselves."""

    initdb: str
    postgres: str
    user: str | None


def find_programs() -> Programs | str:
    """Return the programs, or in a few words why there is no PostgreSQL here."""
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        return "it is not installed"
    if os.geteuid() != 0:
        return Programs(initdb, postgres, None)
    try:
        pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return f"it does not run as root, and there is no user {SYSTEM_USER}"
    return Programs(initdb, postgres, SYSTEM_USER)


def _program(name: str) -> str | None:
    program = shutil.which(name)
    if program is not None:
        return program
    folders = [path for path in DEBIAN.glob("*/bin") if os.access(path / name, os.X_OK)]
    return str(max(folders, key=_version) / name) if folders else None


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", folder.parent.name))
