"""Logging in over HTTP: basic authentication (RFC 7617) against the accounts of a file."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from barnabas.base.errors import ConfigError
from barnabas.web.guard import Refusal, basic_credentials

if TYPE_CHECKING:
    from starlette.types import Scope

_log = logging.getLogger(__name__)


class Accounts(Protocol):
    """The accounts that may log in."""

    def roles(self, name: str, password: str) -> frozenset[str] | None:
        """Return what the user may be called; None if they may not log in. Raises ConfigError."""


class BasicLogin:
    """Asks for name and password."""

    def __init__(
        self,
        accounts: Accounts,
        realm: str,
        roles: Iterable[str] = ("*",),
        open_paths: Iterable[str] = (),
        is_open: Callable[[Scope], bool] | None = None,
    ) -> None:
        """`roles`: the roles that are allowed; `*` is any. `open_paths` need no login, and a `*`
        in them matches anything; nor do requests for which `is_open` is true."""
        self._accounts = accounts
        shown = realm.replace("\\", "").replace('"', "")
        self.challenge = f'Basic realm="{shown}"'.encode("latin-1", "replace")
        wanted = frozenset(roles)
        self._roles = None if {"*", "**"} & wanted else wanted
        paths = list(open_paths)
        self._open = re.compile("|".join(map(_pattern, paths))) if paths else None
        self._is_open = is_open

    def refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is refused; None if it is allowed."""
        if self._open is not None and self._open.fullmatch(scope["path"]):
            return None
        if self._is_open is not None and self._is_open(scope):
            return None
        names = {name for name, _ in scope["headers"]}
        if b"origin" in names and scope.get("method") == "OPTIONS":
            return None  # a browser asks what a page may do, and logs in after that
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        user = basic_credentials(given)
        try:
            roles = None if user is None else self._accounts.roles(*user)
        except ConfigError as error:
            _log.error("nobody can log in: %s", error)
            roles = None
        if roles is None:
            return Refusal.NO_LOGIN
        if self._roles is not None and not self._roles & roles:
            return Refusal.NO_RIGHT
        return None


def _pattern(path: str) -> str:
    """A path in which `*` stands for anything."""
    return ".*".join(map(re.escape, path.split("*")))
