"""A database with the tables of the workload, and a capture source's view of it."""

from __future__ import annotations

from collections.abc import Callable

from support.connect.postgres import DATABASE, HOST, USER, Postgres
from support.connect.workload import CHANGES, ROWS, TABLES

PREFIX = "p"
FENCE = "CREATE TABLE fence (id int PRIMARY KEY)"
FENCE_TOPIC = f"{PREFIX}.public.fence"


def settings(server: Postgres, database: str = DATABASE, **more: str) -> dict[str, str]:
    """A configuration; names have underscores for points."""
    return {
        "topic.prefix": PREFIX,
        "database.hostname": HOST,
        "database.port": str(server.port),
        "database.user": USER,
        "database.password": server.password,
        "database.dbname": database,
        "plugin.name": "pgoutput",
        "slot.name": f"slot_{database}",
    } | {name.replace("_", "."): value for name, value in more.items()}


def fill(server: Postgres, database: str) -> None:
    """Make the workload's tables and the rows that a snapshot sees."""
    server.run(TABLES, ROWS, FENCE, database=database)


def change(server: Postgres, database: str, wait_for_fence: Callable[[int], object]) -> None:
    """Make the workload's changes.

    Before a table is altered, `wait_for_fence` waits for the row with a number in the table of that
    name: facts about columns that the log lacks come from the catalog, as it is now.
    """
    for number, statement in enumerate(CHANGES):
        if "ALTER" in statement:
            server.run(f"INSERT INTO fence VALUES ({number})", database=database)
            wait_for_fence(number)
        server.run(statement, database=database)
    server.run("INSERT INTO fence VALUES (1000)", database=database)
    wait_for_fence(1000)
