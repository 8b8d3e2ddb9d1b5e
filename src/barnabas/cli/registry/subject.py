"""`barnabas registry subject`: subjects and their versions."""

from typing import Any

import click

from barnabas.cli.output import Output, Row
from barnabas.cli.prompts import confirm
from barnabas.cli.registry.client import RefusedError, Registry, registry_options
from barnabas.cli.registry.schema import get_version

SUBJECT_SOFT_DELETED = 40404
VERSION_SOFT_DELETED = 40406
EVERY_CONTEXT = ":*:"


@click.group("subject")
def subject_group() -> None:
    """List, describe and delete subjects."""


@subject_group.command(
    "list",
    epilog="\b\nExamples:\n  barnabas registry subject list\n"
    "  barnabas registry subject list --prefix orders\n"
    "  barnabas registry subject list --prefix :.test:\n",
)
@click.option(
    "--prefix",
    default=EVERY_CONTEXT,
    help="Only subjects with this prefix; by default those of all contexts.",
)
@click.option("--deleted", is_flag=True, help="List the deleted ones too.")
@registry_options
def list_command(registry: Registry, prefix: str, deleted: bool, as_json: bool) -> None:
    """List subjects."""
    names = registry.get("subjects", subjectPrefix=prefix, deleted=deleted)
    rows = [{"subject": name} for name in names]
    Output(as_json).rows(rows, ("subject",), "There are no subjects.")


@subject_group.command(
    "describe", epilog="\b\nExample:\n  barnabas registry subject describe orders-value\n"
)
@click.argument("subject")
@click.option("--deleted", is_flag=True, help="Show deleted versions too.")
@registry_options
def describe_command(registry: Registry, subject: str, deleted: bool, as_json: bool) -> None:
    """Show compatibility, mode and versions of a subject."""
    numbers = registry.get("subjects", subject, "versions", deleted=deleted)
    config = registry.get("config", subject, defaultToGlobal=True)
    mode = registry.get("mode", subject, defaultToGlobal=True)
    gone = (
        set(registry.get("subjects", subject, "versions", deletedOnly=True)) if deleted else set()
    )
    rows = [_version_row(registry, subject, number, number in gone) for number in numbers]
    described: dict[str, Any] = {
        "subject": subject,
        "compatibility": config.get("compatibilityLevel"),
        "mode": mode.get("mode"),
        "versions": rows,
    }
    output = Output(as_json)
    if as_json:
        output.result(described, "")
        return
    click.echo(f"{subject}  compatibility {described['compatibility']}  mode {described['mode']}")
    columns = ["version", "id", "type", "references", *(["deleted"] if deleted else [])]
    output.rows(rows, columns)


def _version_row(registry: Registry, subject: str, number: int, is_deleted: bool) -> Row:
    version = get_version(registry, subject, number, deleted=is_deleted)
    references = [
        f"{one['name']}={one['subject']}:{one['version']}" for one in version.get("references", ())
    ]
    return {
        "version": number,
        "id": version["id"],
        "type": version["schemaType"],
        "references": references,
        "deleted": is_deleted,
    }


@subject_group.command(
    "delete",
    epilog="\b\nExamples:\n  barnabas registry subject delete orders-value\n"
    "  barnabas registry subject delete orders-value --version 2\n"
    "  barnabas registry subject delete orders-value --permanent --yes\n",
)
@click.argument("subject")
@click.option("--version", metavar="VERSION", help="Delete this version only.")
@click.option(
    "--permanent",
    is_flag=True,
    help="Delete for good: data with these schemas can no longer be read.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@registry_options
def delete_command(
    registry: Registry, subject: str, version: str | None, permanent: bool, yes: bool, as_json: bool
) -> None:
    """Delete a subject or one of its versions.

    What is deleted is no longer listed and can be registered again, but its ids can still be read.
    With --permanent, the schemas are gone.
    """
    what = subject if version is None else f"version {version} of {subject}"
    if permanent:
        confirm(f"Delete {what} for good? Data with these schemas can no longer be read.", yes)
    path = ("subjects", subject) if version is None else ("subjects", subject, "versions", version)
    try:
        gone = registry.ask("DELETE", path)
    except RefusedError as error:
        if not permanent or error.number not in (SUBJECT_SOFT_DELETED, VERSION_SOFT_DELETED):
            raise
    else:
        if version is not None:
            path = (*path[:3], str(gone))  # `latest` is another one now
    if permanent:
        gone = registry.ask("DELETE", path, {"permanent": True})
    versions = gone if isinstance(gone, list) else [gone]
    value = {"subject": subject, "versions": versions, "permanent": permanent}
    numbers = ", ".join(map(str, versions))
    text = f"{subject}: deleted {'for good ' if permanent else ''}versions {numbers}"
    Output(as_json).result(value, text)
