"""`barnabas registry config` and `mode`: settings of a subject, a context or the whole registry."""

import json
from collections.abc import Iterable
from typing import Any

import click

from barnabas.base.config.properties import from_flags
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output
from barnabas.cli.registry.client import Registry, registry_options

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
LEVEL = "compatibilityLevel"
KEYS = (
    "compatibility",
    "alias",
    "compatibilityGroup",
    "compatibilityPolicy",
    "defaultMetadata",
    "defaultRuleSet",
    "normalize",
    "overrideMetadata",
    "overrideRuleSet",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
)
"""The settings. A registry skips names that it does not know, so they are held back."""


_subject_option = click.option(
    "--subject",
    "-s",
    metavar="SUBJECT",
    help="A subject, or a context as :.NAME:; by default the whole registry.",
)
own_option = click.option("--own", is_flag=True, help="Leave out inherited settings.")


def _path(kind: str, subject: str | None) -> tuple[str, ...]:
    return (kind,) if subject is None else (kind, subject)


def _where(subject: str | None) -> str:
    return "registry" if subject is None else subject


@click.group("config")
def config_group() -> None:
    """Show and change compatibility and other settings."""


@config_group.command(
    "get",
    epilog="\b\nExamples:\n  barnabas registry config get\n"
    "  barnabas registry config get --subject orders-value\n",
)
@_subject_option
@own_option
@registry_options
def config_get_command(registry: Registry, subject: str | None, own: bool, as_json: bool) -> None:
    """Show settings."""
    inherits = subject is not None and not own
    settings = registry.get(*_path("config", subject), defaultToGlobal=inherits)
    rows = [{"key": _spelled(key), "value": value} for key, value in sorted(settings.items())]
    output = Output(as_json)
    if as_json:
        output.result({row["key"]: row["value"] for row in rows}, "")
        return
    for row in rows:
        value = row["value"]
        row["value"] = value if isinstance(value, str) else json.dumps(value)
    output.rows(rows, ("key", "value"), "Nothing is set.")


def _spelled(key: str) -> str:
    """Answers call the level otherwise than requests do."""
    return "compatibility" if key == LEVEL else key


@config_group.command(
    "set",
    epilog="\b\nExamples:\n  barnabas registry config set compatibility=FULL\n"
    "  barnabas registry config set compatibility=NONE normalize=true \\\n"
    "    --subject orders-value\n",
)
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...")
@_subject_option
@registry_options
def config_set_command(
    registry: Registry, pairs: tuple[str, ...], subject: str | None, as_json: bool
) -> None:
    """Change settings; the others stay as they are.

    true, false, null and objects are written as JSON.
    """
    body = read_settings(pairs)
    registry.ask("PUT", _path("config", subject), body=body)
    value = {"subject": subject, "set": body}
    Output(as_json).result(value, f"{_where(subject)}: set {', '.join(body)}")


def read_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """The body of a request that sets keys. Raises CliError for a key that does not exist."""
    found: dict[str, Any] = {}
    for key, text in from_flags(pairs).items():
        name = _spelled(key)
        if name not in KEYS:
            raise CliError(
                f"{key} is not a setting", ExitCode.USAGE, f"give one of {', '.join(KEYS)}"
            )
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        is_json = value is None or isinstance(value, bool | dict)
        found[name] = value if is_json else text
    return found


@config_group.command(
    "delete",
    epilog="\b\nExample:\n  barnabas registry config delete --subject orders-value\n",
)
@_subject_option
@registry_options
def config_delete_command(registry: Registry, subject: str | None, as_json: bool) -> None:
    """Delete the settings.

    The inherited or default value applies again.
    """
    registry.ask("DELETE", _path("config", subject))
    Output(as_json).result({"subject": subject}, f"{_where(subject)}: settings deleted")


@click.group("mode")
def mode_group() -> None:
    """Show and change whether schemas may be registered."""


@mode_group.command(
    "get",
    epilog="\b\nExamples:\n  barnabas registry mode get\n"
    "  barnabas registry mode get --subject orders-value\n",
)
@_subject_option
@own_option
@registry_options
def mode_get_command(registry: Registry, subject: str | None, own: bool, as_json: bool) -> None:
    """Show the mode."""
    inherits = subject is not None and not own
    answer = registry.get(*_path("mode", subject), defaultToGlobal=inherits)
    Output(as_json).result({"subject": subject, "mode": answer["mode"]}, str(answer["mode"]))


@mode_group.command(
    "set",
    epilog="\b\nExamples:\n  barnabas registry mode set READONLY\n"
    "  barnabas registry mode set IMPORT --subject orders-value\n",
)
@click.argument("mode", type=click.Choice(MODES, case_sensitive=False))
@_subject_option
@click.option("--force", is_flag=True, help="Set IMPORT even if there are schemas already.")
@registry_options
def mode_set_command(
    registry: Registry, mode: str, subject: str | None, force: bool, as_json: bool
) -> None:
    """Change the mode."""
    registry.ask("PUT", _path("mode", subject), {"force": force}, {"mode": mode})
    Output(as_json).result({"subject": subject, "mode": mode}, f"{_where(subject)}: {mode}")


@mode_group.command(
    "delete", epilog="\b\nExample:\n  barnabas registry mode delete --subject orders-value\n"
)
@_subject_option
@registry_options
def mode_delete_command(registry: Registry, subject: str | None, as_json: bool) -> None:
    """Delete the mode; the inherited one or READWRITE applies again."""
    registry.ask("DELETE", _path("mode", subject))
    Output(as_json).result({"subject": subject}, f"{_where(subject)}: mode deleted")
