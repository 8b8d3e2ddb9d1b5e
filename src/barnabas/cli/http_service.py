"""A client of a REST interface (a registry, a Connect worker), and the options that say which."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

import click

from barnabas.cli.connection import Seconds
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, with_options
from barnabas.cli.output import json_option

if TYPE_CHECKING:
    from ssl import SSLContext

SHOWN_MAX = 200
"""Number of characters shown of an answer that is not the service's."""


@dataclass(frozen=True, slots=True)
class HttpService(ABC):
    """Which service (its addresses, tried in turn), and how it is spoken to."""

    NAME: ClassVar[str]
    URL_VARIABLES: ClassVar[tuple[str, ...]]
    USER_VARIABLE: ClassVar[str]
    DEFAULT_URL: ClassVar[str]
    CONTENT_TYPE: ClassVar[str] = "application/json"

    urls: tuple[str, ...]
    user: str | None = None
    """Name and password with a colon between, for HTTP's basic authentication."""
    ca_file: str | None = None
    timeout_s: float = 15.0
    cert_file: str | None = None
    """PEM file with the certificate to show to a service that asks for one."""
    key_file: str | None = None
    """PEM file with its key, where that is not in the same file."""

    @abstractmethod
    def refused(self, url: str, status: int, number: int, message: str) -> CliError:
        """The error for an answer with a service's own number and text."""

    def get(self, *path: str | int, **query: Any) -> Any:
        """The answer to GET. Raises as `ask` does."""
        return self.ask("GET", path, query)

    def ask(
        self,
        method: str,
        path: Sequence[str | int],
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """The decoded answer to a request. Of the query, None and False are left out.

        Raises CliError; that of `refused` if the service refuses.
        """
        from urllib.parse import quote, urlencode

        from barnabas.base.rest import split_user

        parts = [quote(str(part), safe="") for part in path]
        if "" in parts:
            raise CliError("the name is empty", ExitCode.USAGE)
        given = {
            name: "true" if value is True else value
            for name, value in (query or {}).items()
            if value not in (None, False)
        }
        target = "/" + "/".join(parts) + ("?" + urlencode(given, doseq=True) if given else "")
        reasons = []
        for url in self.urls:
            try:
                return self._ask_one(url, method, target, body)
            except OSError as error:
                reasons.append(f"{split_user(url)[0]} ({_why(error)})")
        raise CliError(
            f"no {self.NAME} answers at {', '.join(reasons)}",
            ExitCode.UNREACHABLE,
            "give its address with --url",
        )

    def _ask_one(self, url: str, method: str, target: str, body: Any) -> Any:
        from urllib.parse import unquote

        from barnabas.base.rest import ask, basic_login, split_user

        base, user = split_user(url)
        accepted = dict.fromkeys((self.CONTENT_TYPE, "application/json"))
        headers = {"Accept": ", ".join(accepted), "User-Agent": "barnabas"}
        if self.user is not None or user is not None:
            headers["Authorization"] = basic_login(self.user or unquote(user or ""))
        if body is not None:
            headers["Content-Type"] = self.CONTENT_TYPE
        status, data = ask(
            base.rstrip("/") + target,
            headers=headers,
            timeout_s=self.timeout_s,
            method=method,
            body=body,
            tls=self._tls,
        )
        return self._decoded(base, status, data)

    @property
    def _tls(self) -> "SSLContext | None":
        """None is what Python does by itself. Raises CliError for unfit files."""
        if self.ca_file is None and self.cert_file is None:
            return None
        from barnabas.base.tls.contexts import client_context
        from barnabas.base.tls.key_stores import key_of_files

        try:
            context = client_context(authorities_path=self.ca_file)
        except OSError as error:
            raise CliError(f"--ca-file: {self.ca_file}: {_why(error)}", ExitCode.USAGE) from error
        if self.cert_file is not None:
            try:
                own = key_of_files(self.cert_file, self.key_file)
                context = client_context(authorities_path=self.ca_file, own=own)
            except OSError as error:
                files = " and ".join(filter(None, (self.cert_file, self.key_file)))
                raise CliError(
                    f"--cert-file: {files}: {_why(error)}",
                    ExitCode.USAGE,
                    "give PEM files with a certificate and its key, without a password",
                ) from error
        return context

    def _decoded(self, url: str, status: int, data: bytes) -> Any:
        """The JSON of an answer. Raises CliError, also for what no such service says."""
        try:
            value = json.loads(data) if data.strip() else None
        except ValueError:
            value = data.decode(errors="replace")
            is_json = False
        else:
            is_json = True
        if status < HTTPStatus.BAD_REQUEST and is_json:
            return value
        if isinstance(value, dict) and isinstance(value.get("error_code"), int):
            message = str(value.get("message") or "refused")
            raise self.refused(url, status, value["error_code"], message)
        shown = " ".join(str(value or "").split())[:SHOWN_MAX]
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise CliError(
                f"{url} refuses the user: HTTP status {status} {shown}".rstrip(), hint="give --user"
            )
        raise CliError(
            f"{url} does not answer as a {self.NAME} does: HTTP status {status} {shown}".rstrip()
        )

    @classmethod
    def read_urls(cls, text: str | None, option: str) -> tuple[str, ...]:
        """The addresses that an option gives, or the environment. Raises CliError."""
        from urllib.parse import urlsplit

        if text is None:
            found = (os.environ.get(variable) for variable in cls.URL_VARIABLES)
            text = next((url for url in found if url), cls.DEFAULT_URL)
        urls = tuple(url.strip() for url in text.split(",") if url.strip())
        for url in urls:
            try:
                parts = urlsplit(url)
                is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
                _ = parts.port
            except ValueError:
                is_url = False
            if not is_url:
                raise CliError(f"{option}: {url} is not http://host:port", ExitCode.USAGE)
        if not urls:
            raise CliError(f"{option}: no address is given", ExitCode.USAGE)
        return urls

    @classmethod
    def options(
        cls, argument: str, *, of: str, more: str = "", timeout_s: float, patience: str
    ) -> Callable[[Function], Function]:
        """A decorator that gives a command --json, and the service's options as that argument."""
        variables = ", then ".join(cls.URL_VARIABLES)
        table: Sequence[Callable[[Any], Any]] = (
            json_option,
            click.option(
                "--url",
                "urls",
                metavar="URL,...",
                help=f"{of}; by default {variables}, then {cls.DEFAULT_URL}.{more}",
            ),
            click.option(
                "--user",
                envvar=cls.USER_VARIABLE,
                metavar="NAME:PASSWORD",
                help=f"For a {cls.NAME.rpartition(' ')[2]} that asks for a password; by default "
                f"{cls.USER_VARIABLE}.",
            ),
            click.option(
                "--ca-file",
                type=click.Path(exists=True, dir_okay=False),
                help="PEM file with the authorities to trust for https.",
            ),
            click.option(
                "--cert-file",
                type=click.Path(exists=True, dir_okay=False),
                help=f"PEM file with a certificate, for a {cls.NAME.rpartition(' ')[2]} that asks "
                "for one; with its key, or see --key-file.",
            ),
            click.option(
                "--key-file",
                type=click.Path(exists=True, dir_okay=False),
                help="PEM file with the certificate's key.",
            ),
            click.option(
                "--timeout",
                type=Seconds(least=0, is_open=True),
                default=timeout_s,
                show_default=True,
                metavar="SECONDS",
                help=patience,
            ),
        )

        def decorate(function: Function) -> Function:
            def wrapped(
                urls: str | None,
                user: str | None,
                ca_file: str | None,
                cert_file: str | None,
                key_file: str | None,
                timeout: float,
                **rest: Any,
            ) -> Any:
                if key_file is not None and cert_file is None:
                    raise CliError("--key-file is that of a --cert-file", ExitCode.USAGE)
                found = cls.read_urls(urls, "--url")
                service = cls(found, user, ca_file, timeout, cert_file, key_file)
                return function(**{argument: service}, **rest)

            return with_options(function, wrapped, table)

        return decorate


def _why(error: OSError) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer"
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return str(text).lower()
