"""The two requests of a login by an identity provider, and the page that says why one failed.

Browsers come to both by following links and redirects. All addresses that they are sent to are the
provider's, from its own document, or places in the console's page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from html import escape
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.access import Audit, Sessions, Vouched
from barnabas.console.oidc.logins import LASTS_S, Identity, LoginError, Logins
from barnabas.console.oidc.provider import CodeError, ProviderError
from barnabas.console.oidc.settings import CALLBACK

COOKIE: Final = "console_login"
BEGIN: Final = "/api/login/oidc"
NAME_PREFIX: Final = "oidc:"
"""Before the names of the provider's users, which may be those of the password file too."""
_PAGE: Final = """<!doctype html>
<html lang="en" data-theme="light">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Login failed – Barnabas console</title>
    <link rel="icon" href="{root}icon.svg" />
    <link rel="stylesheet" href="{root}style.css" />
  </head>
  <body>
    <main>
      <section class="card bad login">
        <h1>The login failed</h1>
        <p>{message}</p>
        <p class="advice">{advice}</p>
        <p><a href="{root}">Back to the login</a></p>
      </section>
    </main>
  </body>
</html>
"""
_ROOTS: Final = {BEGIN: "../../", CALLBACK: "../../../"}
"""The console's page as seen from a path: a proxy may have a prefix before both."""
_NOT_KEPT: Final = {"cache-control": "no-store"}

THREADS: Final = 8
"""Threads of their own: a provider that does not answer keeps no other request waiting."""
UNDER_WAY_MAX: Final = 32
"""Requests about logins at a time; anybody can send them."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class _TooManyLoginsError(LoginError):
    pass


class SingleSignOn:
    """Begins and finishes logins."""

    def __init__(
        self,
        logins: Logins,
        sessions: Sessions,
        audit: Audit,
        set_session: Callable[[Response, str, bool], None],
        address: Callable[[Request], str],
    ) -> None:
        """`address` tells where a request comes from."""
        self._address = address
        self._logins, self._sessions, self._audit = logins, sessions, audit
        self._set_session = set_session
        self._threads = ThreadPoolExecutor(THREADS, "console-logins")
        self._under_way = 0
        self._renewals: dict[str, asyncio.Future[None]] = {}
        """By session, the requests to the provider that are under way."""

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def label(self) -> str:
        """The provider's name on the login page."""
        return self._logins.label

    async def begin(self, request: Request) -> Response:
        """Send a browser to the provider."""
        place = request.query_params.get("to", "")
        try:
            address = self._address(request)
            begun = await self._run(lambda: self._logins.begin(place, address))
        except LoginError as error:
            return self._failed(request, error, BEGIN)
        response = _redirect(begun.url)
        # Not strict: the browser comes back from the provider's site.
        response.set_cookie(
            COOKIE,
            begun.cookie,
            max_age=int(LASTS_S),
            httponly=True,
            samesite="lax",
            secure=self._is_secure,
            path="/",
        )
        return response

    async def finish(self, request: Request) -> Response:
        """Log in a browser that the provider sends back."""
        answer = request.query_params.multi_items()
        cookie = request.cookies.get(COOKIE, "")
        try:
            found = await self._run(lambda: self._logins.finish(cookie, answer))
        except LoginError as error:
            response: Response = self._failed(request, error, CALLBACK)
        else:
            name = f"{NAME_PREFIX}{found.name}"
            token = self._sessions.begin(name, _vouched(found), found.lasts_s)
            roles = sorted(found.roles)
            self._audit.note(name, self._address(request), "log in", "", "done", {"roles": roles})
            response = _redirect(f"{_ROOTS[CALLBACK]}#{found.place or '/'}")
            self._set_session(response, token, self._is_secure)
        response.delete_cookie(COOKIE, path="/")
        return response

    async def renew(self, token: str) -> None:
        """Ask the provider again about a session whose ID token has expired.

        Requests that come at the same time share one answer: a refresh token may work once only.
        """
        if self._sessions.expired(token) is None:
            return
        task = self._renewals.get(token)
        if task is None:
            task = self._renewals[token] = asyncio.ensure_future(self._renewed(token))
            task.add_done_callback(lambda _: self._renewals.pop(token))
        await asyncio.shield(task)

    async def _renewed(self, token: str) -> None:
        account = self._sessions.expired(token)
        if account is None or account.refresh_token is None:
            return
        refresh_token, subject = account.refresh_token, account.subject

        def keep(successor: str) -> None:
            self._sessions.keep(token, successor)

        try:
            found = await self._run(lambda: self._logins.renew(refresh_token, subject, keep))
        except _TooManyLoginsError as error:  # the next request asks again
            _log.warning("the provider could not be asked about a session: %s", error)
        except (CodeError, LoginError) as error:
            _log.info("the identity provider has ended a session: %s", error)
            self._sessions.end(token)
        except ProviderError as error:  # likewise
            _log.warning("the provider could not be asked about a session: %s", error)
        else:
            self._sessions.renew(token, _vouched(found), found.lasts_s)

    async def end_url(self, id_token: str) -> str | None:
        """The address at which a browser logs out of the provider too; None without one."""
        try:
            return await self._run(lambda: self._logins.end_url(id_token))
        except LoginError:
            return None

    async def _run(self, work: Callable[[], T]) -> T:
        """Raises LoginError where too many wait."""
        if self._under_way >= UNDER_WAY_MAX:
            raise _TooManyLoginsError("Too many logins are under way.", "Log in again in a moment.")
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._under_way -= 1

    @property
    def _is_secure(self) -> bool:
        return self._logins.redirect_uri.startswith("https://")

    def _failed(self, request: Request, error: LoginError, path: str) -> Response:
        _log.warning("a login through the identity provider failed: %s", error.reason)
        if error.name:  # others are not in the audit log: anybody could fill it with them
            name = f"{NAME_PREFIX}{error.name}"
            self._audit.note(name, self._address(request), "log in", "", f"failed: {error}")
        text = _PAGE.format(
            root=_ROOTS[path], message=escape(str(error)), advice=escape(error.advice)
        )
        return Response(text, 403, _NOT_KEPT, "text/html; charset=utf-8")


def _vouched(found: Identity) -> Vouched:
    tokens = found.tokens
    return Vouched(found.roles, found.subject, tokens.id_token, tokens.refresh_token)


def _redirect(to: str) -> Response:
    headers: Mapping[str, str] = {**_NOT_KEPT, "location": to}
    return Response(b"", 303, headers)
