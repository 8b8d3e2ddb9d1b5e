"""Where PostgreSQL's programs are, and as whom they run."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEBIAN: Final = Path("/usr/lib/postgresql")
"""Debian keeps the programs here, a folder for each version, and not on the PATH."""
SYSTEM_USER: Final = "postgres"


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
