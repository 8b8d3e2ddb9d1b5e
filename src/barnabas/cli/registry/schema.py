"""`barnabas registry schema register` and `get`; and why two schemas are incompatible.

A registry's reasons become lines for people.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output
from barnabas.cli.registry.client import RefusedError, Registry, registry_options
from barnabas.cli.registry.files import TYPES, pretty, read_text, schema_body, type_of_file

INCOMPATIBLE = 409, 40901
"""Confluent's newest registries answer the second."""

type_option = click.option(
    "--type",
    "schema_type",
    type=click.Choice(TYPES, case_sensitive=False),
    help="Type of the schema; by default by the file's suffix: .avsc, .json or .proto.",
)
reference_option = click.option(
    "--reference",
    "-r",
    "references",
    multiple=True,
    metavar="NAME=SUBJECT:VERSION",
    help="A schema that this one uses, by the name that it has in the text; may be repeated. "
    "Without a version, the latest.",
)
normalize_option = click.option(
    "--normalize", is_flag=True, help="Treat schemas that differ only in order and layout as equal."
)
_REASON = re.compile(
    r"""\{errorType:\s*(['"])(?P<kind>\w+)\1,\s*description:\s*(['"])(?P<text>.*?)\3"""
    r"""(?:,\s*additionalInfo:\s*(['"])(?P<details>.*)\5)?\}""",
    re.DOTALL,
)
_VERSION = re.compile(r"\{oldSchemaVersion:\s*(\d+)\}")
_ABOUT = re.compile(r"\{(oldSchema|validateFields|compatibility):")


@click.command(
    "register",
    epilog="\b\nExamples:\n  barnabas registry schema register orders-value order.avsc\n"
    "  barnabas registry schema register orders-value order.proto \\\n"
    "    -r common/money.proto=money:1\n"
    "  barnabas registry schema register orders-value - --type JSON < order.json\n",
)
@click.argument("subject")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@type_option
@reference_option
@normalize_option
@registry_options
def register_command(
    registry: Registry,
    subject: str,
    file: str,
    schema_type: str | None,
    references: tuple[str, ...],
    normalize: bool,
    as_json: bool,
) -> None:
    """Register the schema in FILE under SUBJECT.

    A schema that is already registered keeps its version and id.
    """
    body = schema_body(type_of_file(file, schema_type), read_text(file), references)
    path = ("subjects", subject, "versions")
    try:
        made = registry.ask("POST", path, {"normalize": normalize}, body)
    except RefusedError as error:
        if error.number not in INCOMPATIBLE:
            raise
        raise _incompatible(registry, subject, body, error.number) or error from error
    if "version" not in made:  # registries before Confluent's 7.6 tell the id only
        registered = registry.ask("POST", path[:2], {"normalize": normalize}, body)
        made = {"id": made["id"], "version": registered["version"]}
    value = {"subject": subject, "version": made["version"], "id": made["id"]}
    Output(as_json).result(value, f"{subject}: version {value['version']}, id {value['id']}")


def _incompatible(
    registry: Registry, subject: str, body: dict[str, Any], code: int
) -> CliError | None:
    """A refusal with the reasons only; the registry's own has the old schema in it too."""
    path = ("compatibility", "subjects", subject, "versions")
    reasons = read_reasons(registry.ask("POST", path, {"verbose": True}, body).get("messages", ()))
    if not reasons:
        return None
    lines = "; ".join(reason.line() for reason in reasons)
    return CliError(f"not compatible with {subject}: {lines} [{code}]")


@click.command(
    "get",
    epilog="\b\nExamples:\n  barnabas registry schema get orders-value\n"
    "  barnabas registry schema get orders-value 2 --raw\n"
    "  barnabas registry schema get --id 7\n",
)
@click.argument("subject", required=False)
@click.argument("version", required=False)
@click.option("--id", "number", type=click.IntRange(0), help="The schema with this id.")
@click.option("--raw", is_flag=True, help="Print the text as it is stored, not indented.")
@click.option("--deleted", is_flag=True, help="Look among the deleted too.")
@registry_options
def get_command(
    registry: Registry,
    subject: str | None,
    version: str | None,
    number: int | None,
    raw: bool,
    deleted: bool,
    as_json: bool,
) -> None:
    """Print a schema.

    VERSION of SUBJECT, by default the latest, or the one with an id.
    """
    if (subject is None) == (number is None):
        raise CliError("give a subject, or an id with --id", ExitCode.USAGE)
    stored: dict[str, Any]
    if subject is None:
        stored = {"id": number, **registry.get("schemas", "ids", number or 0)}
    else:
        stored = get_version(registry, subject, version or "latest", deleted=deleted)
    text = stored["schema"]
    shown = text if raw else pretty(stored.get("schemaType", "AVRO"), text)
    Output(as_json).result(stored, shown)


def get_version(
    registry: Registry, subject: str, version: str | int, *, deleted: bool = False
) -> dict[str, Any]:
    """A version of a subject, as the registry tells it, with its type. Raises CliError."""
    stored = registry.get("subjects", subject, "versions", version, deleted=deleted)
    return {"schemaType": "AVRO", **stored}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a schema is refused. The message says the place in the schema."""

    message: str
    kind: str | None = None
    """Confluent's word for it, None where the schema itself is at fault."""
    details: str | None = None
    version: int | None = None
    """The earlier version that it is at odds with."""

    def line(self) -> str:
        """For people."""
        text = " ".join(self.message.split())
        against = f" (version {self.version})" if self.version is not None else ""
        return f"{self.kind}: {text}{against}" if self.kind else text + against

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "kind": self.kind,
            "message": self.message,
            "details": self.details,
            "version": self.version,
        }


def read_reasons(messages: Iterable[str]) -> list[Reason]:
    """The reasons among the `messages` of a verbose check: the old schema is not shown again."""
    found: list[tuple[str, str | None, str | None]] = []
    version = None
    for message in messages:
        about_version = _VERSION.fullmatch(message)
        if about_version:
            version = int(about_version[1])
        elif not _ABOUT.match(message):
            match = _REASON.fullmatch(message)
            if match is None:
                found.append((message, None, None))
            else:
                found.append((match["text"], match["kind"], match["details"] or None))
    return [Reason(text, kind, details, version) for text, kind, details in found]
