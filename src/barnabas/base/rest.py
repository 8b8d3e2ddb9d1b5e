"""Requests to a REST service over HTTP: a registry, a Connect worker.

A redirection to another server does not get the login. Proxies of the environment are used, but not
for an address of this machine.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""The rest of a longer answer is not read."""


def ask(
    url: str,
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    method: str | None = None,
    body: Any = None,
    tls: ssl.SSLContext | None = None,
    follows: bool = True,
) -> tuple[int, bytes]:
    """Return the status and the body of an answer; `body` is sent as JSON.

    The method is GET, or POST where there is a body. `follows`: a redirection is followed;
    otherwise it is the answer. Raises OSError and HTTPException where no answer comes, and
    ValueError for an address or a header that HTTP does not allow.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, dict(headers), method=method)
    host = urlsplit(url).hostname or ""
    try:
        with _opener(tls, _is_here(host), follows).open(request, timeout=timeout_s) as answer:
            return int(answer.status), answer.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(ANSWER_BYTES_MAX)


def basic_login(user: str) -> str:
    """The header Authorization of `name:password`."""
    return "Basic " + base64.b64encode(user.encode()).decode()


def split_user(url: str) -> tuple[str, str | None]:
    """A URL without its `name:password`, and that, as it is written."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return (urlunsplit(parts._replace(netloc=host)), user) if at else (url, None)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections, without the login where they lead to another server."""

    def redirect_request(self, req: Any, *about: Any) -> urllib.request.Request | None:
        made = super().redirect_request(req, *about)
        if made is not None and _server(made.full_url) != _server(req.full_url):
            made.remove_header("Authorization")
        return made


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves redirections to the caller."""

    def redirect_request(self, req: Any, *about: Any) -> urllib.request.Request | None:
        return None


@lru_cache(maxsize=64)
def _opener(
    tls: ssl.SSLContext | None, is_here: bool, follows: bool
) -> urllib.request.OpenerDirector:
    """Return what sends requests. Making one may read the system's certificates, which is slow."""
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPSHandler(context=tls),
        _Redirects() if follows else _NoRedirects(),
    ]
    if is_here:
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
