"""`barnabas cert`: an authority and certificates for development.

Below the directory: `ca.pem`, which clients and nodes trust, `ca-key.pem`, which signs, and a file
for each node and client with its private key and certificate, as Kafka's PEM stores are.
"""

import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from barnabas.base.config.values import parse_host_port
from barnabas.base.private_files import write_private
from barnabas.cli.errors import CliError, ExitCode, extra_packages
from barnabas.cli.option_sets import Function
from barnabas.cli.output import Output, Row, cell_text, json_option

if TYPE_CHECKING:
    from barnabas.node.security.development_ca import Description, Identity, Usage

CA_FILE, CA_KEY_FILE = "ca.pem", "ca-key.pem"
CA_DAYS, DAYS = 3650, 825
"""Apple's systems trust no certificate of a server for longer than 825 days."""
DAYS_MAX = 36_500
SHOW_TIMEOUT_S = 5.0


_directory_option = click.option(
    "--directory",
    "-d",
    default="certificates",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Directory of the authority and its certificates.",
)


def _days_option(default: int) -> Callable[[Function], Function]:
    return click.option(
        "--days",
        type=click.IntRange(1, DAYS_MAX),
        default=default,
        show_default=True,
        help="Days until it expires.",
    )


@click.group()
def command() -> None:
    """Create and inspect certificates for development."""


@command.command(
    "ca",
    epilog="\b\nExamples:\n  barnabas cert ca\n  barnabas cert ca -d ./tls --name 'Our test lab'\n",
)
@click.option("--name", default="Barnabas development", show_default=True, help="Its name.")
@_directory_option
@_days_option(CA_DAYS)
@click.option(
    "--replace",
    is_flag=True,
    help="Replace an existing one, whose certificates are then no longer trusted.",
)
@json_option
def ca_command(name: str, directory: str, days: int, replace: bool, as_json: bool) -> None:
    """Create an authority that signs certificates of nodes and clients."""
    with _security():
        from barnabas.node.security import development_ca

    path, key_path = os.path.join(directory, CA_FILE), os.path.join(directory, CA_KEY_FILE)
    for taken in (path, key_path):
        if os.path.lexists(taken) and not replace:
            raise CliError(
                f"{taken} exists", hint="use it, or give --replace: its certificates end with it"
            )
    with _named("the authority"):
        made = development_ca.new_authority(name, days=days, now=datetime.now(UTC))
    os.makedirs(directory, mode=0o700, exist_ok=True)
    write_private(key_path, made.key)
    write_private(path, made.certificates)
    os.chmod(path, 0o644)
    row: Row = {"certificate": path, "key": key_path}
    text = f"Authority: {path}  (clients: ssl.truststore.location, ssl.ca.location)\n"
    text += f"Its key:   {key_path}  (who has it can be anybody: keep it)"
    Output(as_json).result(row, text)


@command.command(
    "node",
    epilog="\b\nExamples:\n  barnabas cert node node-1\n"
    "  barnabas cert node kafka-1 --host kafka-1.example.com --host 10.0.0.7\n",
)
@click.argument("name")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="A host name or address that clients use; may be repeated. By default this machine's.",
)
@_directory_option
@_days_option(DAYS)
@click.option("--replace", is_flag=True, help="Replace an existing file; see also cert renew.")
@json_option
def node_command(
    name: str, hosts: tuple[str, ...], directory: str, days: int, replace: bool, as_json: bool
) -> None:
    """Create a node's key and certificate."""
    with _security():
        from barnabas.node.security.development_ca import Usage

    chosen = hosts or own_hosts()
    _issue(name, Usage.NODE, chosen, directory, days, replace, as_json)


@command.command("client", epilog="\b\nExample:\n  barnabas cert client alice\n")
@click.argument("name")
@_directory_option
@_days_option(DAYS)
@click.option("--replace", is_flag=True, help="Replace an existing file; see also cert renew.")
@json_option
def client_command(name: str, directory: str, days: int, replace: bool, as_json: bool) -> None:
    """Create a client's key and certificate.

    Its principal is User:CN=NAME.
    """
    with _security():
        from barnabas.node.security.development_ca import Usage

    _issue(name, Usage.CLIENT, (), directory, days, replace, as_json)


@command.command(
    "renew",
    epilog="\b\nExample:\n  barnabas cert renew certificates/node-1.pem\n",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@_directory_option
@_days_option(DAYS)
@json_option
def renew_command(files: tuple[str, ...], directory: str, days: int, as_json: bool) -> None:
    """Renew certificates; names, hosts and keys stay the same.

    Nodes notice the new file by themselves.
    """
    with _security():
        from barnabas.node.security import development_ca

    authority = _authority(directory)
    rows: list[Row] = []
    for path in files:
        with _named(path):
            old = development_ca.identity_of(_read(path))
            new = development_ca.renew(authority, old, days=days, now=datetime.now(UTC))
        write_private(path, new.text)
        rows.append({"file": path, **_row(development_ca.describe(new.certificates)[0])})
    Output(as_json).rows(rows, ("file", "subject", "not_after", "days_left"))


@command.command(
    "show",
    epilog="\b\nExamples:\n  barnabas cert show certificates/node-1.pem --host localhost\n"
    "  barnabas cert show localhost:9092 --within 30\n",
)
@click.argument("where", metavar="FILE|HOST:PORT")
@click.option(
    "--host", help="Check that it is valid for this host; by default the host of HOST:PORT."
)
@click.option(
    "--within",
    type=click.IntRange(0, DAYS_MAX),
    default=0,
    metavar="DAYS",
    help="Report certificates that expire within this many days.",
)
@json_option
def show_command(where: str, host: str | None, within: int, as_json: bool) -> int:
    """Show the certificates in a file or of a listener.

    Exit code 5 if one is not valid now, expires within --within days or is not for the host.
    """
    with _security():
        from barnabas.node.security import development_ca

    address = None if os.path.exists(where) else parse_host_port(where)
    text = _read(where) if address is None else _of_listener(*address)
    host = host or (address[0] if address is not None else None)
    with _named(where):
        described = development_ca.describe(text)
    rows = [_row(item) for item in described]
    problems = [text for item in described for text in _time_problems(item, within)]
    if host is not None and not described[0].fits(host):
        known = ", ".join(described[0].hosts) or "none"
        problems.append(f"{described[0].subject} does not fit {host}: its hosts are {known}")
    output = Output(as_json)
    if as_json:
        output.result({"certificates": rows, "problems": problems}, "")
    else:
        for index, row in enumerate(rows):
            click.echo(("\n" if index else "") + row["subject"])
            for key, value in row.items():
                if key != "subject":
                    click.echo(f"  {key.replace('_', ' '):12} {cell_text(value)}")
        for problem in problems:
            click.echo(f"problem: {problem}", err=True)
    return ExitCode.PROBLEMS if problems else ExitCode.DONE


# -- used by several


def own_hosts() -> tuple[str, ...]:
    """Names and addresses of this machine that clients on it use."""
    return tuple(dict.fromkeys(("localhost", "127.0.0.1", "::1", socket.gethostname())))


def _security() -> AbstractContextManager[None]:
    return extra_packages("security", "barnabas cert needs")


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Name what a CertificateError is about."""
    from barnabas.node.security.development_ca import CertificateError

    try:
        yield
    except CertificateError as error:
        raise CliError(f"{where}: {error}", ExitCode.USAGE) from error


def _read(path: str) -> str:
    try:
        with open(path, encoding="latin-1") as file:
            return file.read()
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.REFUSED
        raise CliError(f"{path}: {error.strerror}", code) from error


def _authority(directory: str) -> "Identity":
    """Raises CliError if none exists."""
    from barnabas.node.security.development_ca import identity_of

    path, key_path = os.path.join(directory, CA_FILE), os.path.join(directory, CA_KEY_FILE)
    if not os.path.exists(path) or not os.path.exists(key_path):
        raise CliError(
            f"there is no authority in {directory}",
            ExitCode.NOT_FOUND,
            f"make one: barnabas cert ca -d {directory}",
        )
    with _named(directory):
        return identity_of(_read(key_path) + _read(path))


def _issue(
    name: str,
    usage: "Usage",
    hosts: tuple[str, ...],
    directory: str,
    days: int,
    replace: bool,
    as_json: bool,
) -> None:
    from barnabas.node.security import development_ca

    path = os.path.join(directory, f"{name}.pem")
    if os.path.basename(path) != f"{name}.pem" or path.endswith((CA_FILE, CA_KEY_FILE)):
        raise CliError(f"{name}: the name cannot be a file's here", ExitCode.USAGE)
    authority = _authority(directory)
    with _named(name):
        made = development_ca.issue(authority, name, usage, hosts, days=days, now=datetime.now(UTC))
    try:
        write_private(path, made.text, replaces=replace)
    except FileExistsError as error:
        raise CliError(
            f"{path} exists",
            hint=f"barnabas cert renew {path} -d {directory}, or --replace for a new key",
        ) from error
    row = {"file": path, **_row(development_ca.describe(made.certificates)[0])}
    lines = [f"Key and certificate: {path}", "", "ssl.keystore.type=PEM"]
    lines += [f"ssl.keystore.location={os.path.abspath(path)}", "ssl.truststore.type=PEM"]
    lines += [f"ssl.truststore.location={os.path.abspath(os.path.join(directory, CA_FILE))}"]
    Output(as_json).result(row, "\n".join(lines))


def _row(item: "Description") -> Row:
    return {
        "subject": item.subject,
        "issuer": item.issuer,
        "hosts": list(item.hosts),
        "usages": ["authority"] if item.is_authority else list(item.usages),
        "not_before": item.not_before.isoformat(),
        "not_after": item.not_after.isoformat(),
        "days_left": item.days_left(datetime.now(UTC)),
        "sha256": item.fingerprint,
    }


def _time_problems(item: "Description", within_days: int) -> Iterator[str]:
    now = datetime.now(UTC)
    if now < item.not_before:
        yield f"{item.subject} is not valid before {item.not_before.isoformat()}"
    elif now > item.not_after:
        yield f"{item.subject} expired on {item.not_after.isoformat()}"
    elif item.days_left(now) < within_days:
        yield f"{item.subject} expires on {item.not_after.isoformat()}"


def _of_listener(host: str, port: int) -> str:
    """The certificate that a listener shows, trusted or not. Raises CliError."""
    from barnabas.base.tls.contexts import client_context

    context = client_context(checks_certificate=False)  # only to look at it
    where = f"{host}:{port}"
    try:
        with (
            socket.create_connection((host, port), timeout=SHOW_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as wrapped,
        ):
            shown = wrapped.getpeercert(binary_form=True)
    except ssl.SSLError as error:
        raise CliError(f"{where}: it does not speak TLS ({error.reason})") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise CliError(f"{where}: {reason.lower()}", ExitCode.UNREACHABLE) from error
    assert shown is not None, "a server shows one"
    return ssl.DER_cert_to_PEM_cert(shown)
