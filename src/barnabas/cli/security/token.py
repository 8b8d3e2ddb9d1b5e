"""`barnabas token`: delegation tokens, with which a user lends its rights for a while."""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from barnabas.base.private_files import write_private
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.cli.output import Output, Row
from barnabas.cli.prompts import read_password
from barnabas.cli.reaching import reached

if TYPE_CHECKING:
    from barnabas.cli.admin import Admin
    from barnabas.protocol.schema import Message

    SpanParam = click.ParamType[int]  # generic to the type checker alone
else:
    SpanParam = click.ParamType

BROKERS_CHOICE_MS = -1
_SPAN = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MECHANISM = "SCRAM-SHA-512"
_JAVA_NAMES = {
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
}


class _Span(SpanParam):
    """A span of time, in milliseconds."""

    name = "span"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        match = _SPAN.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not a span such as 30m, 12h or 7d", param, ctx)
        return int(match[1]) * _UNITS_MS[match[2]]


@click.group()
def command() -> None:
    """Create, list, renew and expire delegation tokens."""


@command.command(
    "create",
    epilog="\b\nExamples:\n  barnabas token create --max-lifetime 7d --output job.properties\n"
    "  barnabas token create --renewer User:scheduler --json\n",
)
@click.option(
    "--owner", metavar="User:NAME", help="Principal whose rights it has; by default yours."
)
@click.option(
    "--renewer",
    "renewers",
    multiple=True,
    metavar="User:NAME",
    help="Another principal that may renew it.",
)
@click.option(
    "--max-lifetime",
    "lifetime_ms",
    type=_Span(),
    default=BROKERS_CHOICE_MS,
    metavar="SPAN",
    help="Maximum lifetime, such as 7d; by default the brokers' limit.",
)
@click.option(
    "--output",
    "path",
    type=click.Path(dir_okay=False),
    help="Write properties for clients there, mode 0600, and do not print the secret.",
)
@connection_options
def create_command(
    connection: Connection,
    owner: str | None,
    renewers: tuple[str, ...],
    lifetime_ms: int,
    path: str | None,
    as_json: bool,
) -> None:
    """Create a token. Clients log in by SCRAM with its id and secret (HMAC)."""
    from barnabas.protocol.messages.credentials import (
        CreatableRenewers,
        CreateDelegationTokenRequest,
    )

    kind, name = _principal(owner) if owner else (None, None)
    chosen = [_principal(text) for text in renewers]
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=[CreatableRenewers(principal_type=a, principal_name=b) for a, b in chosen],
        max_lifetime_ms=lifetime_ms,
    )
    with reached(connection) as admin:
        made = _ask(admin, request)
    secret = base64.b64encode(made.hmac).decode()
    row: Row = {
        "token_id": made.token_id,
        "owner": f"{made.principal_type}:{made.principal_name}",
        "expires": _time(made.expiry_timestamp_ms),
        "ends": _time(made.max_timestamp_ms),
    }
    if path is None:
        row["hmac"] = secret
    else:
        write_private(path, _properties(connection, made.token_id, secret))
        row["file"] = path
    Output(as_json).result(row, "\n".join(f"{key:9} {value}" for key, value in row.items()))


@command.command("list", epilog="\b\nExample:\n  barnabas token list --owner User:alice\n")
@click.option(
    "--owner", "owners", multiple=True, metavar="User:NAME", help="Only tokens of these owners."
)
@connection_options
def list_command(connection: Connection, owners: tuple[str, ...], as_json: bool) -> None:
    """List the tokens that you may see. Their secrets are not shown."""
    from barnabas.protocol.messages.credentials import (
        DescribeDelegationTokenOwner,
        DescribeDelegationTokenRequest,
    )

    pairs = [_principal(text) for text in owners]
    wanted = [DescribeDelegationTokenOwner(principal_type=a, principal_name=b) for a, b in pairs]
    with reached(connection) as admin:
        response = _ask(admin, DescribeDelegationTokenRequest(owners=wanted or None))
    rows: list[Row] = [
        {
            "token_id": item.token_id,
            "owner": f"{item.principal_type}:{item.principal_name}",
            "renewers": [f"{who.principal_type}:{who.principal_name}" for who in item.renewers],
            "expires": _time(item.expiry_timestamp),
            "ends": _time(item.max_timestamp),
        }
        for item in sorted(response.tokens, key=lambda item: item.token_id)
    ]
    columns = ("token_id", "owner", "renewers", "expires", "ends")
    Output(as_json).rows(rows, columns, "There are no tokens.")


@command.command("renew", epilog="\b\nExample:\n  barnabas token renew --for 12h < hmac\n")
@click.option(
    "--for",
    "span_ms",
    type=_Span(),
    default=BROKERS_CHOICE_MS,
    metavar="SPAN",
    help="New lifetime from now; by default the brokers' limit.",
)
@connection_options
def renew_command(connection: Connection, span_ms: int, as_json: bool) -> None:
    """Extend a token's life. Its secret is asked for, or read from standard input."""
    from barnabas.protocol.messages.credentials import RenewDelegationTokenRequest

    with reached(connection) as admin:
        request = RenewDelegationTokenRequest(hmac=_secret(), renew_period_ms=span_ms)
        response = _ask(admin, request)
    until = _time(response.expiry_timestamp_ms)
    Output(as_json).result({"expires": until}, f"renewed until {until}")


@command.command(
    "expire",
    epilog="\b\nExamples:\n  barnabas token expire < hmac\n"
    "  barnabas token expire --in 1h < hmac\n",
)
@click.option(
    "--in",
    "span_ms",
    type=_Span(),
    default=BROKERS_CHOICE_MS,
    metavar="SPAN",
    help="Expire it after this time; by default at once.",
)
@connection_options
def expire_command(connection: Connection, span_ms: int, as_json: bool) -> None:
    """End a token. Its secret is asked for, or read from standard input."""
    from barnabas.protocol.messages.credentials import ExpireDelegationTokenRequest

    with reached(connection) as admin:
        request = ExpireDelegationTokenRequest(hmac=_secret(), expiry_time_period_ms=span_ms)
        response = _ask(admin, request)
    until = _time(response.expiry_timestamp_ms)
    Output(as_json).result({"expires": until}, f"expires {until}")


def _ask(admin: "Admin", request: "Message") -> Any:
    from barnabas.protocol.errors import ErrorCode

    response = admin.retry(request, lambda answer: [answer.error_code])
    if response.error_code != ErrorCode.NONE:
        raise from_code(response.error_code, None, "delegation token")
    return response


def _principal(text: str) -> tuple[str, str]:
    from barnabas.cli.security.acl_entries import check_principal

    check_principal(text)
    kind, _, name = text.partition(":")
    return kind, name


def _secret() -> bytes:
    text = read_password("HMAC of the token", is_new=False)
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise CliError("the HMAC is not base64", ExitCode.USAGE) from error


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")


def _properties(connection: Connection, token_id: str, secret: str) -> str:
    """Properties with which clients log in with the token, over TLS where this one does."""
    kept = {
        _JAVA_NAMES[key]: value for key, value in connection.config.items() if key in _JAVA_NAMES
    }
    if kept:
        kept["ssl.truststore.type"] = "PEM"
    is_tls = connection.config.get("security.protocol", "").upper().endswith("SSL")
    values = {
        "bootstrap.servers": connection.bootstrap_servers,
        "security.protocol": "SASL_SSL" if is_tls else "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token_id}" password="{secret}" tokenauth="true";',
        **kept,
    }
    lines = (f"{key}={value}" for key, value in values.items())
    return "".join(line.replace("\n", "\\n") + "\n" for line in lines)
