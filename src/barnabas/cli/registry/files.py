"""Schemas in files: their type, their references, and the request that registers them."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from barnabas.cli.errors import CliError, ExitCode

TYPES = ("AVRO", "JSON", "PROTOBUF")
TYPE_OF_SUFFIX = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
LATEST = -1
"""The number in a request for the latest version of a reference's subject."""
STDIN = "-"


def type_of_file(path: str, given: str | None = None) -> str:
    """The type of a schema's file, by its suffix unless it is given. Raises CliError."""
    schema_type = given.upper() if given else TYPE_OF_SUFFIX.get(os.path.splitext(path)[1].lower())
    if schema_type is None:
        raise CliError(
            f"{path}: its name does not end in {', '.join(TYPE_OF_SUFFIX)}",
            ExitCode.USAGE,
            "give --type",
        )
    return schema_type


def read_text(path: str) -> str:
    """The text of a file, of standard input for `-`. Raises CliError."""
    try:
        if path == STDIN:
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: not UTF-8: {error}", ExitCode.USAGE) from error


def read_reference(text: str) -> dict[str, Any]:
    """`name=subject`, `name=subject:latest` or `name=subject:3`, as requests have it."""
    name, equals, rest = text.partition("=")
    subject, colon, version = rest.rpartition(":")
    if not colon or not (version == "latest" or version.isdecimal()):
        subject, version = rest, "latest"
    if not equals or not name or not subject:
        raise CliError(f"reference {text!r} is not NAME=SUBJECT:VERSION", ExitCode.USAGE)
    number = LATEST if version == "latest" else int(version)
    return {"name": name, "subject": subject, "version": number}


def schema_body(schema_type: str, text: str, references: Sequence[str] = ()) -> dict[str, Any]:
    """The body of a request with a schema."""
    body: dict[str, Any] = {"schemaType": schema_type, "schema": text}
    if references:
        body["references"] = [read_reference(one) for one in references]
    return body


def pretty(schema_type: str | None, text: str) -> str:
    """A schema's text for people: JSON indented, .proto as it is."""
    if schema_type == "PROTOBUF":
        return text.rstrip("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
