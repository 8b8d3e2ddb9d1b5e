"""`barnabas registry schema diff`: what changed between two versions of a subject."""

import difflib
import json
import sys
from typing import Any

import click

from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output
from barnabas.cli.registry.client import Registry, registry_options
from barnabas.cli.registry.compare import Stored, Verdict, compare
from barnabas.cli.registry.files import pretty
from barnabas.cli.registry.schema import get_version

COLOURS = {"+": "green", "-": "red", "@": "cyan"}
LATEST = "latest"


@click.command(
    "diff",
    epilog="\b\nExamples:\n  barnabas registry schema diff orders-value\n"
    "  barnabas registry schema diff orders-value 1 3\n",
)
@click.argument("subject")
@click.argument("old", required=False, metavar="[OLD]")
@click.argument("new", required=False, metavar="[NEW]")
@registry_options
def diff_command(
    registry: Registry, subject: str, old: str | None, new: str | None, as_json: bool
) -> None:
    """Show what changed from version OLD to version NEW.

    It also shows whether they are compatible. By default NEW is the latest version, and OLD the
    one before NEW.
    """
    after = get_version(registry, subject, new or LATEST)
    before = get_version(registry, subject, old or _version_before(registry, after))
    lines = _diff(before, after)
    verdicts = compare(registry, before, after)
    value: dict[str, Any] = {
        "subject": subject,
        "old": before["version"],
        "new": after["version"],
        "diff": lines,
        "verdicts": [
            {
                "level": verdict.level,
                "compatible": verdict.is_compatible,
                "reasons": [reason.as_json() for reason in verdict.reasons],
            }
            for verdict in verdicts
        ],
    }
    shown = [_coloured(line) for line in lines] or [f"{subject}: the texts are the same"]
    shown.append("")
    for verdict in verdicts:
        shown += _verdict_lines(verdict, before["version"], after["version"])
    Output(as_json).result(value, "\n".join(shown))


def _version_before(registry: Registry, after: Stored) -> int:
    numbers = registry.get("subjects", after["subject"], "versions")
    earlier = [number for number in numbers if number < after["version"]]
    if not earlier:
        raise CliError(
            f"{after['subject']} has no version before {after['version']}", ExitCode.NOT_FOUND
        )
    return int(max(earlier))


def _diff(before: Stored, after: Stored) -> list[str]:
    lines = difflib.unified_diff(
        _lines(before), _lines(after), _title(before), _title(after), lineterm=""
    )
    return list(lines)


def _title(schema: Stored) -> str:
    return f"{schema['subject']} version {schema['version']} (id {schema['id']})"


def _lines(schema: Stored) -> list[str]:
    """A schema's text, then its references, metadata and rules if it has them."""
    lines = pretty(schema["schemaType"], schema["schema"]).splitlines()
    if schema["schemaType"] != "AVRO":
        lines.insert(0, f"type {schema['schemaType']}")
    lines += [
        f"reference {one['name']} = {one['subject']} version {one['version']}"
        for one in schema.get("references") or ()
    ]
    for name in ("metadata", "ruleSet"):
        if schema.get(name):
            lines += f"{name} {json.dumps(schema[name], indent=2)}".splitlines()
    return lines


def _coloured(line: str) -> str:
    return click.style(line, fg=COLOURS.get(line[:1])) if sys.stdout.isatty() else line


def _verdict_lines(verdict: Verdict, old: int, new: int) -> list[str]:
    """A line, with a line below for each reason."""
    can = "can" if verdict.is_compatible else "cannot always"
    meaning = {
        "BACKWARD": f"version {new} {can} read data of version {old}",
        "FORWARD": f"version {old} {can} read data of version {new}",
    }.get(verdict.level, "as the subject's level asks for")
    word = "yes" if verdict.is_compatible else "no"
    return [
        f"{verdict.level}: {word} ({meaning})",
        *(f"  {reason.line()}" for reason in verdict.reasons),
    ]
