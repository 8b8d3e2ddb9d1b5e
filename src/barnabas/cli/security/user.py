"""`barnabas user`: users who log in by SCRAM, whose credentials the cluster keeps."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, option_set
from barnabas.cli.output import Output, Row
from barnabas.cli.prompts import confirm, new_password, read_password
from barnabas.cli.reaching import reached
from barnabas.kafka.scram_users import (
    ITERATIONS_DEFAULT,
    MECHANISMS,
    delete_credentials,
    list_users,
    set_password,
)

if TYPE_CHECKING:
    from barnabas.cli.admin import Admin


def _mechanism_option(help_text: str) -> Callable[[Function], Function]:
    return click.option(
        "--mechanism",
        "mechanisms",
        multiple=True,
        type=click.Choice(MECHANISMS, case_sensitive=False),
        help=help_text,
    )


@click.group()
def command() -> None:
    """List, create and delete users that log in by SCRAM; change passwords."""


@command.command("list", epilog="\b\nExample:\n  barnabas user list\n")
@connection_options
def list_command(connection: Connection, as_json: bool) -> None:
    """List users and how they log in. Passwords cannot be read."""
    with reached(connection) as admin:
        users = admin.run(list_users)
    rows: list[Row] = [
        {
            "user": name,
            "mechanisms": [item.mechanism for item in credentials],
            "iterations": [item.iterations for item in credentials],
        }
        for name, credentials in users.items()
    ]
    Output(as_json).rows(rows, ("user", "mechanisms", "iterations"), "There are no users.")


_new_password_options = option_set(
    click.option(
        "--iterations",
        type=click.IntRange(4096, 16384),
        default=ITERATIONS_DEFAULT,
        show_default=True,
        help="Iterations of PBKDF2: higher is slower to crack and to log in.",
    ),
    click.option("--generate", is_flag=True, help="Generate a password and print it."),
)


@command.command(
    "create",
    epilog="\b\nExamples:\n  barnabas user create alice\n"
    "  barnabas user create alice --generate\n"
    "  pass show kafka/alice | barnabas user create alice\n",
)
@click.argument("name")
@_mechanism_option("Mechanism to log in with; by default both.")
@_new_password_options
@connection_options
def create_command(
    connection: Connection,
    name: str,
    mechanisms: Sequence[str],
    generate: bool,
    iterations: int,
    as_json: bool,
) -> None:
    """Create a user. The password is asked for, or read from standard input."""
    with reached(connection) as admin:
        if admin.run(list_users, [name]):
            raise CliError(f"{name} exists", hint=f"barnabas user password {name} changes it")
        password = new_password() if generate else read_password(f"Password of {name}")
        admin.run(set_password, name, password, mechanisms or MECHANISMS, iterations)
    _report(name, password if generate else None, "created", as_json)
    Output(as_json).note(
        f"It may do what ACLs allow it: barnabas acl add --allow-principal User:{name} …"
    )


@command.command(
    "password",
    epilog="\b\nExamples:\n  barnabas user password alice\n"
    "  barnabas user password alice --generate --json\n",
)
@click.argument("name")
@_mechanism_option("Change only these mechanisms; by default all that the user has.")
@_new_password_options
@connection_options
def password_command(
    connection: Connection,
    name: str,
    mechanisms: Sequence[str],
    generate: bool,
    iterations: int,
    as_json: bool,
) -> None:
    """Change a user's password.

    It is asked for, or read from standard input.
    """
    with reached(connection) as admin:
        had = _mechanisms(admin, name)
        password = new_password() if generate else read_password(f"New password of {name}")
        admin.run(set_password, name, password, mechanisms or had, iterations)
    _report(name, password if generate else None, "changed", as_json)


@command.command(
    "delete",
    epilog="\b\nExamples:\n  barnabas user delete alice\n"
    "  barnabas user delete alice --mechanism SCRAM-SHA-256\n",
)
@click.argument("names", nargs=-1, required=True)
@_mechanism_option("Remove only this mechanism; by default all.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@connection_options
def delete_command(
    connection: Connection,
    names: Sequence[str],
    mechanisms: Sequence[str],
    yes: bool,
    as_json: bool,
) -> None:
    """Delete users: they cannot log in any more. Their ACLs stay."""
    with reached(connection) as admin:
        had = {name: _mechanisms(admin, name) for name in names}
        confirm(f"Delete {', '.join(names)}?", yes)
        for name, all_mechanisms in had.items():
            admin.run(delete_credentials, name, mechanisms or all_mechanisms)
    rows: list[Row] = [{"user": name, "deleted": True} for name in had]
    Output(as_json).result(rows, "\n".join(f"{name}: deleted" for name in had))


def _mechanisms(admin: "Admin", name: str) -> list[str]:
    """Return the mechanisms of a user's credentials. Raises CliError for an unknown user."""
    users = admin.run(list_users, [name])
    if name not in users:
        raise CliError(f"there is no user {name}", ExitCode.NOT_FOUND)
    return [item.mechanism for item in users[name]]


def _report(name: str, password: str | None, what: str, as_json: bool) -> None:
    row: Row = {"user": name, what: True}
    text = f"{name}: {what}"
    if password is not None:
        row["password"] = password
        text += f"\npassword: {password}"
    Output(as_json).result(row, text)
