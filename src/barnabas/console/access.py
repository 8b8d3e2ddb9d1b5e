"""Access to the console: users, roles, sessions, the limit on password guesses, the audit log.

Users are those of a password file (`web/passwords.py`), or of an identity provider (`oidc/`). A
role has rights, on topics, groups, subjects, connectors and queries whose names match its patterns.
What concerns a whole cluster or service needs the right *everywhere*, of a role without patterns.
Sessions are kept here, and a browser has only a random token: no cookie can be forged. Without a
password file and a provider everybody may do everything, on loopback alone.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import logging
import os
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from barnabas.base.backoff import doubled
from barnabas.base.errors import ConfigError
from barnabas.web.passwords import Account

RIGHTS: Final = ("view", "read", "unmasked", "produce", "edit", "admin")
"""See metadata; read records; see masked fields; write records; change; delete, and see the log."""
KINDS: Final = ("topics", "groups", "subjects", "connectors", "queries")
"""Kinds of things that patterns of a role name."""
_KIND_OF: Final = {
    "topic": "topics",
    "group": "groups",
    "subject": "subjects",
    "connector": "connectors",
    "query": "queries",
}
_ALL: Final = ("*",)
ROLE_PREFIX: Final = "console.roles."
SESSION_S: Final = 8 * 3600.0
SESSIONS_MAX: Final = 10_000
SESSIONS_OF_USER_MAX: Final = 50
FREE_TRIES: Final = 5
WAIT_S_MAX: Final = 60.0
GUESSERS_MAX: Final = 10_000
AUDIT_SHOWN_MAX: Final = 1_000
ANONYMOUS: Final = "anonymous"

_log = logging.getLogger(__name__)


class ForbiddenError(Exception):
    """The user lacks a right; `right` is its name, or `read-only`."""

    def __init__(self, right: str, what: str, *, everywhere: bool = False) -> None:
        if right == "read-only":
            message = "the console is in read-only mode"
        else:
            where = " everywhere, from a role without patterns" if everywhere else ""
            message = f"{what} needs the right '{right}'{where}"
        super().__init__(message)
        self.right = right


@dataclass(frozen=True, slots=True)
class Role:
    """Rights on what matches patterns (`orders-*`)."""

    name: str
    rights: frozenset[str]
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each of KINDS; all names of a kind that has none here."""

    def allows(self, right: str, *, everywhere: bool = False, **names: str | None) -> bool:
        """Return whether it has a right, on everything that is named.

        Names are `topic=`, `group=`, `subject=`, `connector=` and `query=`; None is not a name.
        `everywhere`: no pattern limits the role.
        """
        if right not in self.rights or (everywhere and not self.is_everywhere):
            return False
        return all(
            _fits(name, self.patterns.get(_KIND_OF[kind], _ALL))
            for kind, name in names.items()
            if name is not None
        )

    @property
    def is_everywhere(self) -> bool:
        """True if its rights hold for everything in the cluster and the services."""
        return all("*" in patterns for patterns in self.patterns.values())


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def named(path: Mapping[str, str]) -> dict[str, str]:
    """Names in a request's path that patterns of roles are about."""
    return {kind: path[kind] for kind in _KIND_OF if kind in path}


BUILT_IN: Final[Mapping[str, Role]] = {
    "admin": Role("admin", frozenset(RIGHTS)),
    "editor": Role("editor", frozenset({"view", "read", "produce", "edit"})),
    "viewer": Role("viewer", frozenset({"view", "read"})),
}
"""Roles that a configuration may use, and may define otherwise."""


def roles_of(values: Mapping[str, str]) -> dict[str, Role]:
    """The roles that properties define, and the built-in ones. Raises ConfigError."""
    parts: dict[str, dict[str, str]] = {}
    for key, text in values.items():
        if not key.startswith(ROLE_PREFIX):
            continue
        name, dot, what = key.removeprefix(ROLE_PREFIX).rpartition(".")
        if not dot or what not in ("rights", *KINDS):
            kinds = ", .".join(KINDS)
            raise ConfigError(key, f"write {ROLE_PREFIX}NAME.rights, or .{kinds}")
        parts.setdefault(name, {})[what] = text
    found = dict(BUILT_IN)
    for name, given in parts.items():
        rights = frozenset(_words(given.get("rights", "view")))
        if unknown := rights - set(RIGHTS):
            key = f"{ROLE_PREFIX}{name}.rights"
            raise ConfigError(key, f"{min(unknown)} is none of {', '.join(RIGHTS)}")
        found[name] = Role(name, rights, _patterns(given))
    return found


def _patterns(given: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The patterns of a role.

    A role that is limited to some topics or groups reaches only the subjects, connectors and
    queries that it names: they may read and write any topic.
    """
    found = {kind: tuple(_words(given[kind])) for kind in KINDS if kind in given}
    if any("*" not in patterns for patterns in found.values()):
        for kind in ("subjects", "connectors", "queries"):
            found.setdefault(kind, ())
    return found


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who is logged in."""

    name: str
    roles: tuple[Role, ...]
    is_read_only: bool = False
    """True if the whole console changes nothing."""

    def may(self, right: str, *, everywhere: bool = False, **names: str | None) -> bool:
        """Return whether one of the roles has the right; arguments as those of `Role.allows`."""
        if self.is_read_only and right in ("produce", "edit", "admin"):
            return False
        return any(role.allows(right, everywhere=everywhere, **names) for role in self.roles)

    def need(self, right: str, what: str, *, everywhere: bool = False, **names: str | None) -> None:
        """Raise ForbiddenError without the right."""
        if self.is_read_only and right in ("produce", "edit", "admin"):
            raise ForbiddenError("read-only", what)
        if not self.may(right, everywhere=everywhere, **names):
            is_pattern = everywhere and self.may(right, everywhere=False, **names)
            raise ForbiddenError(right, what, everywhere=is_pattern)


@dataclass(frozen=True, slots=True)
class Vouched:
    """A user as the identity provider last described them."""

    roles: frozenset[str]
    subject: str
    """The provider's own name of the user, which does not change."""
    id_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    """Asks the provider again, once `id_token` has expired."""


@dataclass(slots=True)
class _Session:
    user: str
    account: Account | Vouched
    until_s: float
    """The end of the session at the latest."""
    known_until_s: float
    """The time until which the account holds."""

    def is_over(self, now_s: float) -> bool:
        """Return whether nothing can go on with it."""
        can_renew = isinstance(self.account, Vouched) and self.account.refresh_token is not None
        return self.until_s < now_s or (self.known_until_s < now_s and not can_renew)


class Sessions:
    """Users who are logged in, by the hash of the token that their browser has."""

    def __init__(
        self, lasts_s: float = SESSION_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._lasts_s, self._now_s = lasts_s, now_s
        self._found: OrderedDict[bytes, _Session] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, user: str, account: Account | Vouched, lasts_s: float = float("inf")) -> str:
        """Log a user in, with the account as it is now; returns the token.

        `lasts_s`: how long the account holds. The session ends with it, unless it can be renewed.
        """
        token = secrets.token_urlsafe(32)
        now_s = self._now_s()
        session = _Session(user, account, now_s + self._lasts_s, now_s + lasts_s)
        with self._lock:
            own = [key for key, one in self._found.items() if one.user == user]
            for key in own[: max(0, len(own) - SESSIONS_OF_USER_MAX + 1)]:
                del self._found[key]
            while len(self._found) >= SESSIONS_MAX:
                self._found.popitem(last=False)
            self._found[_hashed(token)] = session
        return token

    def find(self, token: str) -> tuple[str, Account | Vouched] | None:
        """The name and last known account of the token's user; None without a session."""
        found = self._at(token)
        if found is None or found.known_until_s < self._now_s():
            return None
        return found.user, found.account

    def expired(self, token: str) -> Vouched | None:
        """The account of a session that goes on if the provider confirms it."""
        found = self._at(token)
        if found is None or found.known_until_s >= self._now_s():
            return None
        assert isinstance(found.account, Vouched), "others are over"
        return found.account

    def renew(self, token: str, account: Vouched, lasts_s: float) -> None:
        """Go on with a session, if it has not ended since, as its provider confirms it."""
        with self._lock:
            found = self._found.get(_hashed(token))
            if found is not None:
                found.account, found.known_until_s = account, self._now_s() + lasts_s

    def keep(self, token: str, refresh_token: str) -> None:
        """Replace a session's refresh token; the account is not confirmed yet."""
        with self._lock:
            found = self._found.get(_hashed(token))
            if found is not None and isinstance(found.account, Vouched):
                found.account = replace(found.account, refresh_token=refresh_token)

    def _at(self, token: str) -> _Session | None:
        key = _hashed(token)
        with self._lock:
            found = self._found.get(key)
            if found is not None and found.is_over(self._now_s()):
                del self._found[key]
                return None
        return found

    def end(self, token: str) -> None:
        """Log out."""
        with self._lock:
            self._found.pop(_hashed(token), None)


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class Guesses:
    """Slows down password guessing, by user and address, with pauses that double."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, user: str, address: str) -> float:
        """Return how long until the next try is taken; 0 if it is now."""
        with self._lock:
            until = [self._failures.get(key, (0, 0.0))[1] for key in _guessers(user, address)]
        return max(0.0, max(until) - self._now_s())

    def failed(self, user: str, address: str) -> None:
        """Count a wrong password."""
        with self._lock:
            for key, free in _guessers(user, address).items():
                count = self._failures.pop(key, (0, 0.0))[0] + 1
                pause_s = 0.0 if count < free else doubled(1.0, WAIT_S_MAX, count - free)
                self._failures[key] = count, self._now_s() + pause_s
            while len(self._failures) > GUESSERS_MAX:
                self._failures.popitem(last=False)

    def succeeded(self, user: str, address: str) -> None:
        """Forget the failures of a user at an address."""
        with self._lock:
            self._failures.pop(f"{user}@{address}", None)


def _guessers(user: str, address: str) -> dict[str, int]:
    """Whose failures count, each with the number that is free.

    A user from all addresses, too, but later: else strangers could lock a user out.
    """
    return {f"{user}@{address}": FREE_TRIES, f"@{address}": 4 * FREE_TRIES, user: 20 * FREE_TRIES}


@dataclass(frozen=True, slots=True)
class Deed:
    """An action that a user did or attempted, for the audit log."""

    time: str
    user: str
    address: str
    action: str
    target: str
    outcome: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Audit:
    """The audit log: lines of JSON in a file of mode 0600, and the last ones in memory."""

    def __init__(self, path: str | None = None) -> None:
        """Raises ConfigError for a file that cannot be written."""
        self._recent: deque[Deed] = deque(maxlen=AUDIT_SHOWN_MAX)
        self._lock = threading.Lock()
        self._file: int | None = None
        if path:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise ConfigError("console.audit.file", f"{path}: {error.strerror}") from error

    def note(
        self,
        user: str,
        address: str,
        action: str,
        target: str,
        outcome: str,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write what was done."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        deed = Deed(now, user, address, action, target, outcome, details or {})
        line = json.dumps(
            {
                "time": deed.time,
                "user": deed.user,
                "address": deed.address,
                "action": deed.action,
                "target": deed.target,
                "outcome": deed.outcome,
                **({"details": deed.details} if deed.details else {}),
            },
            default=str,
        )
        with self._lock:
            self._recent.append(deed)
            if self._file is not None:
                try:
                    os.write(self._file, line.encode() + b"\n")
                except OSError as error:
                    _log.error("the audit log cannot be written: %s", error)

    def recent(self, fits: Callable[[str], bool] = lambda _: True) -> Sequence[Deed]:
        """The last deeds whose texts fit, the newest first."""
        with self._lock:
            found = list(self._recent)
        found.reverse()
        return [
            deed
            for deed in found
            if fits(f"{deed.user} {deed.action} {deed.target} {deed.outcome}")
        ]

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(OSError):
            if self._file is not None:
                os.close(self._file)
                self._file = None
