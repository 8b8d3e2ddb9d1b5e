"""The `barnabas` command: the list of commands, and the handling of their failures.

A command's module is imported when the command runs; help texts are listed here, so that
`barnabas --help` and `barnabas start` stay quick.
"""

import importlib
import json
import os
import sys
from typing import Any, NoReturn

import click

from barnabas import __version__
from barnabas.cli.errors import CliError, ExitCode, from_exception, use_kafkas_words
from barnabas.cli.help import HelpContext, styled, use_colours, write_sections
from barnabas.cli.output import drop_output

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "demo": ("Run the whole platform on generated data, with a dashboard.", "demo"),
        "dev": ("Run a broker or a small cluster for development.", "dev.command"),
        "start": ("Run a node from a server.properties file.", "start"),
        "storage": ("Format and inspect a node's data directories.", "storage"),
    },
    "Topics and records": {
        "topic": ("List, create, describe, alter, delete and move topics.", "topic.command"),
        "produce": ("Send records to a topic.", "records.produce"),
        "consume": ("Print records of topics.", "records.consume"),
        "perf": ("Measure how fast a cluster can write and read records.", "records.perf"),
    },
    "Groups and transactions": {
        "group": ("List, describe, delete and reset consumer groups.", "group.command"),
        "share-group": ("List, describe, delete and reset share groups.", "group.share"),
        "streams-group": ("List, describe, delete and reset Streams groups.", "group.streams"),
        "transaction": (
            "Show transactions; find and abort those that hang.",
            "transaction",
        ),
    },
    "Cluster": {
        "cluster": ("Show the nodes of a cluster; add, drain and remove nodes.", "cluster.command"),
        "rebalance": ("Spread replicas and leaders evenly over the nodes.", "cluster.rebalance"),
        "quorum": ("Show the metadata quorum; add and remove voters.", "cluster.quorum"),
        "feature": ("Show, upgrade and downgrade feature levels.", "cluster.feature"),
        "config": ("Describe and change settings of topics, brokers, groups.", "config"),
        "log": ("Inspect log files and the log directories of brokers.", "log"),
        "metrics": ("Write dashboards for Grafana and alerts for Prometheus.", "metrics.command"),
        "doctor": ("Check a cluster and the machine for common faults.", "doctor.command"),
    },
    "Security": {
        "user": ("List, create and delete users; change passwords.", "security.user"),
        "acl": ("List, add and remove ACLs: who may do what.", "security.acl"),
        "quota": ("List, set and remove quotas of users and clients.", "security.quota"),
        "token": ("Create, list, renew and expire delegation tokens.", "security.token"),
        "cert": ("Create and inspect certificates for development.", "security.cert"),
    },
    "Platform": {
        "registry": ("Run a schema registry; register and compare schemas.", "registry.command"),
        "sql": ("Run a SQL server, or query one: shell, scripts, tests.", "sql.command"),
        "connect": ("Run a Connect worker; create and watch connectors.", "connect.command"),
        "console": ("Run a web console for a cluster and its services.", "console"),
        "pipeline": ("Run a data pipeline written in Python, on Spark.", "pipeline"),
    },
    "Shell": {
        "completion": ("Print the completion script for a shell.", "completion"),
    },
}
"""Summary and module of each command, as `barnabas --help` groups them."""
COMMANDS: dict[str, tuple[str, str]] = {
    name: found for section in SECTIONS.values() for name, found in section.items()
}
TRACEBACK_VARIABLE = "BARNABAS_TRACEBACK"
EPILOG = """\b
Examples:
  barnabas dev
  barnabas topic create orders --partitions 3
  echo hello | barnabas produce orders
  barnabas consume orders --follow

\b
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no broker answers,
4 not found, 5 a check found problems, 70 an internal error, 130 interrupted.
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"barnabas.cli.{COMMANDS[cmd_name][1]}")
        command: click.Command = module.command
        use_colours(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_sections(
            formatter,
            {
                heading: [(name, summary) for name, (summary, _) in section.items()]
                for heading, section in SECTIONS.items()
            },
        )

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            return ExitCode.DONE

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="barnabas")
def cli() -> None:
    """Event streaming that speaks Apache Kafka's protocol."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    _flush()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line; returns the exit code. Failures are one line on standard error.

    A group without a command shows its help there.
    """
    try:
        result: Any = cli.main(arguments, prog_name="barnabas", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # of click 8.2 and later
            click.echo(error.format_message(), err=True)
            return ExitCode.USAGE
        return _report(CliError(_usage_text(error), ExitCode.USAGE), arguments)
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except Exception as error:  # the last place: one line, never a traceback
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        known = from_exception(error)
        if known is None:
            known = CliError(
                f"internal error: {type(error).__name__}: {error}",
                ExitCode.INTERNAL,
                f"set {TRACEBACK_VARIABLE}=1 to see where",
            )
        return _report(known, arguments)
    return result if isinstance(result, int) else ExitCode.DONE


def _usage_text(error: click.ClickException) -> str:
    text = error.format_message()
    context = getattr(error, "ctx", None)
    return f"{text} See {context.command_path} --help." if context is not None else text


def _report(error: CliError, arguments: list[str]) -> int:
    _flush()
    use_kafkas_words(error)
    if "--json" in arguments:
        shown = {"error": error.message, "exit_code": int(error.code)}
        if error.hint:
            shown["hint"] = error.hint
        print(json.dumps(shown), file=sys.stderr)
    else:
        text, hint = error.parts()
        prefix = styled("barnabas:", fg="red", bold=True)
        click.echo(f"{prefix} {text}{styled(hint, fg='yellow')}", err=True)
    return error.code


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
