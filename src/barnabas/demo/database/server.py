"""The server's process: `python -m barnabas.demo.database.server --directory D --port P`.

It creates the cluster in D if needed, and becomes the server: PostgreSQL ends this process,
however it ends. Begun as root it goes on as PostgreSQL's own user, since PostgreSQL refuses root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from typing import Final

import click

from barnabas.demo.database.place import Programs, find_programs

SUPERUSER: Final = "postgres"
SETTINGS: Final = {
    "wal_level": "logical",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "20",
    "max_wal_senders": "4",
    "max_replication_slots": "4",
    "shared_buffers": "16MB",
    "timezone": "UTC",
    "log_min_messages": "warning",
}
_DATA: Final = "data"
_INITDB_SECONDS: Final = 120


@click.command(help="Run the demo's PostgreSQL.")
@click.option("--directory", required=True, help="The PostgreSQL cluster's directory.")
@click.option("--port", required=True, type=int, help="Port to listen on, on loopback.")
@click.option("--password-file", required=True, help="Holds the superuser's password.")
def main(directory: str, port: int, password_file: str) -> None:
    programs = find_programs()
    if isinstance(programs, str):
        sys.exit(f"no PostgreSQL: {programs}")
    with open(password_file, encoding="utf-8") as file:
        password = file.read()
    os.chdir(directory)
    if programs.user is not None:
        become(programs.user)
    data = os.path.join(directory, _DATA)
    if not os.path.exists(data):
        make_cluster(programs, directory, data, password)
    options = [word for item in SETTINGS.items() for word in ("-c", "=".join(item))]
    os.execv(programs.postgres, [programs.postgres, "-D", data, "-p", str(port), *options])


def become(name: str) -> None:
    """Go on as another user, for good."""
    entry = pwd.getpwnam(name)
    os.initgroups(name, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.environ["HOME"] = entry.pw_dir


def make_cluster(programs: Programs, directory: str, data: str, password: str) -> None:
    """Make a cluster, whole or not at all."""
    for name in os.listdir(directory):  # of tries that were killed
        shutil.rmtree(os.path.join(directory, name))
    with tempfile.TemporaryDirectory(prefix="new-", dir=directory) as place:
        secret, made = os.path.join(place, "password"), os.path.join(place, _DATA)
        with open(secret, "w", encoding="utf-8", opener=_private) as file:
            file.write(password)
        subprocess.run(
            [
                programs.initdb,
                *("-D", made, "-U", SUPERUSER, "--pwfile", secret, "-E", "UTF8", "--locale=C"),
                "--auth=scram-sha-256",
            ],
            stdin=subprocess.DEVNULL,
            timeout=_INITDB_SECONDS,
            check=True,
        )
        shutil.move(made, data)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    main()
