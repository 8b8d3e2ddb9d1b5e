"""`barnabas acl`: who may do what, in the words of Kafka's `kafka-acls`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, with_options
from barnabas.cli.output import Output, Row, counted
from barnabas.cli.prompts import confirm
from barnabas.cli.reaching import reached

if TYPE_CHECKING:
    from barnabas.cli.security.acl_entries import AclWords
    from barnabas.kafka.acls import Acl

COLUMNS = ("resource_type", "name", "pattern", "principal", "permission", "operation", "host")
PATTERNS = ("literal", "prefixed")
OPERATION_WORDS = (
    *("All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
    *("DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens"),
    "TwoPhaseCommit",
)

_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option(
        "--allow-principal",
        "allow",
        multiple=True,
        metavar="User:NAME",
        help="Principal to allow; User:* is everybody. Like the other options, may be repeated.",
    ),
    click.option(
        "--deny-principal", "deny", multiple=True, metavar="User:NAME", help="Principal to deny."
    ),
    click.option(
        "--allow-host", "allow_hosts", multiple=True, metavar="IP", help="Host to allow them from."
    ),
    click.option(
        "--deny-host", "deny_hosts", multiple=True, metavar="IP", help="Host to deny them from."
    ),
    click.option(
        "--operation",
        "operations",
        multiple=True,
        type=click.Choice(OPERATION_WORDS, case_sensitive=False),
        metavar="OPERATION",
        help=f"Operation: {', '.join(OPERATION_WORDS)}; by default all.",
    ),
    click.option("--topic", "topics", multiple=True, help="A topic; * is all of them."),
    click.option("--group", "groups", multiple=True, help="A group."),
    click.option(
        "--transactional-id",
        "transactional_ids",
        multiple=True,
        help="A producer's transactional id.",
    ),
    click.option("--delegation-token", "tokens", multiple=True, help="A token's id."),
    click.option(
        "--user-principal", "users", multiple=True, help="A user whose tokens the ACL applies to."
    ),
    click.option("--cluster", is_flag=True, help="The cluster as a whole."),
)


def _words(function: Function) -> Function:
    """The options that name principals, operations and resources, as the argument `words`."""

    def wrapped(**given: Any) -> Any:
        from barnabas.cli.security.acl_entries import AclWords
        from barnabas.protocol.acls import Operation

        fields = {name: given.pop(name) for name in AclWords.__slots__ if name in given}
        pattern = given.pop("pattern_type")
        by_word = {item.name.replace("_", "").lower(): item for item in Operation}
        fields["operations"] = [by_word[word.lower()] for word in fields["operations"]]
        return function(words=AclWords(**fields, pattern=_pattern(pattern)), **given)

    return with_options(function, wrapped, _OPTIONS)


def _pattern(word: str) -> Any:
    from barnabas.protocol.acls import PatternType

    return PatternType[word.upper()]


def _pattern_option(
    words: Sequence[str], default: str, help_text: str
) -> Callable[[Function], Function]:
    return click.option(
        "--resource-pattern-type",
        "pattern_type",
        type=click.Choice(words, case_sensitive=False),
        default=default,
        show_default=True,
        help=help_text,
    )


@click.group()
def command() -> None:
    """List, add and remove ACLs: who may do what."""


@command.command(
    "list",
    epilog="\b\nExamples:\n  barnabas acl list\n  barnabas acl list --topic orders\n"
    "  barnabas acl list --allow-principal User:alice\n",
)
@_pattern_option(
    ("any", "match", *PATTERNS),
    "match",
    "match: all ACLs that apply to the names; any: ACLs with exactly these names.",
)
@connection_options
@_words
def list_command(connection: Connection, words: "AclWords", as_json: bool) -> None:
    """List ACLs: all, or those of resources and principals."""
    from barnabas.cli.security.acl_entries import filters_of
    from barnabas.kafka.acls import list_acls

    wanted = filters_of(words)
    with reached(connection) as admin:
        acls = admin.run(list_acls, wanted)
    Output(as_json).rows([_row(acl) for acl in acls], COLUMNS, "There are no such ACLs.")


@command.command(
    "add",
    epilog="\b\nExamples:\n"
    "  barnabas acl add --allow-principal User:alice --operation Read \\\n"
    "    --topic orders\n"
    "  barnabas acl add --allow-principal User:alice --producer --topic orders\n"
    "  barnabas acl add --allow-principal User:bob --consumer --topic shop. \\\n"
    "    --group reports --resource-pattern-type prefixed\n"
    "  barnabas acl add --deny-principal User:eve --deny-host 10.0.0.9 --topic '*'\n",
)
@click.option("--producer", is_flag=True, help="What a producer needs: Write, Describe, Create.")
@click.option(
    "--consumer", is_flag=True, help="What a consumer needs: Read, Describe; Read of its group."
)
@click.option(
    "--idempotent", is_flag=True, help="With --producer, for brokers older than Kafka 3.0."
)
@_pattern_option(PATTERNS, "literal", "prefixed: all names with this prefix.")
@connection_options
@_words
def add_command(connection: Connection, words: "AclWords", as_json: bool) -> None:
    """Add ACLs. Those that exist already stay."""
    from barnabas.cli.security.acl_entries import acls_of
    from barnabas.kafka.acls import add_acls

    acls = acls_of(words)
    with reached(connection) as admin:
        admin.run(add_acls, acls)
    Output(as_json).result([_row(acl) for acl in acls], _lines(acls))


@command.command(
    "remove",
    epilog="\b\nExamples:\n  barnabas acl remove --allow-principal User:alice --topic orders\n"
    "  barnabas acl remove --topic orders --yes\n",
)
@_pattern_option(
    ("any", "match", *PATTERNS), "literal", "any: literal and prefixed ACLs with these names."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@connection_options
@_words
def remove_command(connection: Connection, words: "AclWords", yes: bool, as_json: bool) -> None:
    """Remove the ACLs of the resources and principals named."""
    from barnabas.cli.security.acl_entries import filters_of
    from barnabas.kafka.acls import list_acls, remove_acls

    wanted = filters_of(words)
    if all(item.is_everything for item in wanted):
        raise CliError(
            "nothing is named", ExitCode.USAGE, "name a resource or a principal, such as --topic"
        )
    with reached(connection) as admin:
        acls = admin.run(list_acls, wanted)
        if not acls:
            raise CliError("there are no such ACLs", ExitCode.NOT_FOUND)
        if not yes:
            click.echo(_lines(acls), err=True)
        confirm(f"Remove {'this ACL' if len(acls) == 1 else f'these {len(acls)} ACLs'}?", yes)
        admin.run(remove_acls, acls)
    Output(as_json).result([_row(acl) for acl in acls], f"removed {counted(len(acls), 'ACL')}")


def _row(acl: "Acl") -> Row:
    return {
        "resource_type": acl.resource_type.name,
        "name": acl.name,
        "pattern": acl.pattern.name,
        "principal": acl.principal,
        "permission": acl.permission.name,
        "operation": acl.operation.name,
        "host": acl.host,
    }


def _lines(acls: Sequence["Acl"]) -> str:
    return "\n".join(acl.text for acl in acls)
