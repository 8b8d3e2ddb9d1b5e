"""`barnabas registry schema check`: a directory of schema files against a registry, for CI.

A file's name without its suffix is its subject: `orders-value.avsc` is checked against
`orders-value`. `%2F` and the like in a name are decoded. A file `schemas.toml` in the directory
may say otherwise, in one table for each file:

    ["shop/order.proto"]
    subject = "orders-value"
    references = ["common/money.proto=money:1"]

`type` sets the type of a file; `skip = true` leaves it out.
"""

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import click

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output
from barnabas.cli.registry.client import RefusedError, Registry, registry_options
from barnabas.cli.registry.files import TYPE_OF_SUFFIX, TYPES, read_text, schema_body
from barnabas.cli.registry.schema import Reason, normalize_option, read_reasons

MAPPING = "schemas.toml"
MAPPING_KEYS = {
    "subject": (str, "a text"),
    "type": (str, "a text"),
    "references": (list, "a list of texts"),
    "skip": (bool, "true or false"),
}
SUBJECT_NOT_FOUND = 40401


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A file to check, by its path below the directory."""

    name: str
    subject: str
    schema_type: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of one file."""

    file: SchemaFile
    reasons: list[Reason]
    is_new: bool

    def line(self) -> str:
        """For a file that may be registered."""
        what = "is new" if self.is_new else "is compatible"
        return f"{self.file.name}: {self.file.subject} {what}"

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "file": self.file.name,
            "subject": self.file.subject,
            "compatible": not self.reasons,
            "new": self.is_new,
            "reasons": [reason.as_json() for reason in self.reasons],
        }


@click.command(
    "check",
    epilog="\b\nExamples:\n  barnabas registry schema check schemas/\n"
    "  barnabas registry schema check schemas/ --url http://registry:8081 --json\n\n"
    "A file's name is its subject: orders-value.avsc is checked against orders-value. The file "
    f"{MAPPING} in the directory may name others:\n\n"
    '\b\n  ["shop/order.proto"]\n  subject = "orders-value"\n'
    '  references = ["common/money.proto=money:1"]\n\n'
    '`type = "JSON"` sets the type of a file; `skip = true` leaves it out.\n',
)
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@normalize_option
@registry_options
def check_command(registry: Registry, directory: str, normalize: bool, as_json: bool) -> int:
    """Check whether the schemas in DIRECTORY could be registered.

    Each is compared with the versions that the subject's compatibility level requires. Nothing is
    changed. The exit code is 1 if a schema is invalid or not compatible; a line for each reason
    names the file and the place in it.
    """
    files = find_files(directory)
    if not files:
        raise CliError(
            f"{directory}: there are no schemas in it",
            ExitCode.NOT_FOUND,
            f"their names end in {', '.join(TYPE_OF_SUFFIX)}",
        )
    checked = [_check(registry, directory, file, normalize) for file in files]
    bad = [one for one in checked if one.reasons]
    if as_json:
        Output(as_json).result([one.as_json() for one in checked], "")
    else:
        for one in checked:
            for line in [reason.line() for reason in one.reasons]:
                click.echo(f"{one.file.name}: {line}")
            if not one.reasons:
                click.echo(one.line())
        if bad:
            click.echo(f"{len(bad)} of {len(checked)} schemas cannot be registered.", err=True)
    return ExitCode.REFUSED if bad else ExitCode.DONE


def _check(registry: Registry, directory: str, file: SchemaFile, normalize: bool) -> Checked:
    text = read_text(os.path.join(directory, *file.name.split("/")))
    body = schema_body(file.schema_type, text, file.references)
    try:
        is_new = not registry.get("subjects", file.subject, "versions")
    except RefusedError as error:
        if error.number != SUBJECT_NOT_FOUND:
            raise
        is_new = True
    path = ("compatibility", "subjects", file.subject, "versions")
    query = {"verbose": True, "normalize": normalize}
    try:
        verdict = registry.ask("POST", path, query, body)
    except RefusedError as error:
        if is_new and error.number == SUBJECT_NOT_FOUND:  # as other registries answer
            return Checked(file, [], is_new)
        if error.number // 100 != 422:
            raise
        return Checked(file, [Reason(error.message)], is_new)
    if verdict["is_compatible"]:
        return Checked(file, [], is_new)
    reasons = read_reasons(verdict.get("messages") or ())
    return Checked(file, reasons or [Reason("is not compatible")], is_new)


def find_files(directory: str) -> list[SchemaFile]:
    """The schemas below a directory, sorted by name; hidden files are left out.

    Raises CliError where the mapping is wrong or two files are of one subject.
    """
    mapping = _read_mapping(directory)
    names = sorted(_walk(directory))
    for name in mapping:
        if name not in names:
            raise CliError(f"{MAPPING}: there is no file {name}", ExitCode.USAGE)
    files = []
    subjects: dict[str, str] = {}
    for name in names:
        stem, suffix = os.path.splitext(name.rpartition("/")[2])
        found = mapping.get(name, {})
        schema_type = found.get("type", TYPE_OF_SUFFIX.get(suffix.lower()))
        if schema_type is None or found.get("skip"):
            continue
        subject = found.get("subject") or unquote(stem)
        if subject in subjects:
            raise CliError(
                f"{subjects[subject]} and {name} are both of subject {subject}",
                ExitCode.USAGE,
                f"name another one in {MAPPING}",
            )
        subjects[subject] = name
        files.append(SchemaFile(name, subject, schema_type, tuple(found.get("references", ()))))
    return files


def _walk(directory: str) -> Iterator[str]:
    """Paths of files below a directory, with slashes."""
    for place, folders, names in os.walk(directory):
        folders[:] = [folder for folder in folders if not folder.startswith(".")]
        for name in names:
            if not name.startswith("."):
                path = os.path.relpath(os.path.join(place, name), directory)
                yield path.replace(os.sep, "/")


def _read_mapping(directory: str) -> dict[str, dict[str, Any]]:
    path = os.path.join(directory, MAPPING)
    try:
        with open(path, "rb") as file:
            mapping = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CliError(f"{path}: {error}", ExitCode.USAGE) from error
    for name, found in mapping.items():
        fault = _fault(found)
        if fault:
            raise CliError(f"{path}: {name}: {fault}", ExitCode.USAGE)
    return mapping


def _fault(found: Any) -> str | None:
    """The errors in the table of one file."""
    if not isinstance(found, dict):
        return "is not a table"
    for key, value in found.items():
        if key not in MAPPING_KEYS:
            return f"{key} is not one of {', '.join(MAPPING_KEYS)}"
        kind, words = MAPPING_KEYS[key]
        items = value if isinstance(value, list) else []
        if not isinstance(value, kind) or not all(isinstance(item, str) for item in items):
            return f"{key} is not {words}"
    if found.get("type", TYPES[0]) not in TYPES:
        return f"type is not one of {', '.join(TYPES)}"
    return None
