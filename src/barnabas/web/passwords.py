"""Accounts for logins, from a password file in the format of Jetty's PropertyFileLoginModule.

    name: password[,role …]

A password is plain text, `MD5:<hash>` or `OBF:<obfuscated>`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.base.config.properties import parse_properties
from barnabas.base.errors import ConfigError
from barnabas.base.jaas import JaasError, jaas_options, jaas_sections

METHOD = "authentication.method"
REALM = "authentication.realm"
ROLES = "authentication.roles"
SKIP_PATHS = "authentication.skip.paths"
JAAS_FILE = "java.security.auth.login.config"
"""The login configuration; for ksqlDB it is a property of Java's with this name."""
_MODULE = "PropertyFileLoginModule"
_OBF_BASE = 36
_OBF_WIDE = 256


@dataclass(frozen=True)
class Account:
    """A user's entry in a password file."""

    password: str
    roles: frozenset[str]

    def is_password(self, given: str) -> bool:
        """Return whether it is this user's password; takes as long for each that is not."""
        kind, colon, rest = self.password.partition(":")
        expected, actual = self.password, given
        if colon and kind == "MD5":
            actual = hashlib.md5(given.encode(), usedforsecurity=False).hexdigest()
            expected = rest.lower()
        elif colon and kind == "OBF":
            expected = deobfuscated(rest)
        return hmac.compare_digest(expected.encode(), actual.encode())


class Passwords:
    """The accounts of a file, which is read again when it has changed."""

    def __init__(self, path: str, key: str = JAAS_FILE) -> None:
        """Read it; `key` is what names it. Raises ConfigError."""
        self._path = path
        self._key = key
        self._accounts: Mapping[str, Account] = {}
        self._version: tuple[int, int] | None = None
        self._read()

    def _read(self) -> None:
        try:
            stat = os.stat(self._path)
            version = stat.st_mtime_ns, stat.st_ino
            if version == self._version:
                return
            with open(self._path, encoding="utf-8") as file:
                self._accounts = accounts(file.read())
        except OSError as error:
            raise ConfigError(self._key, f"{self._path}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(self._key, f"{self._path}: {error}") from error
        self._version = version

    def account(self, name: str) -> Account | None:
        """Return a user's account as the file has it now. Raises ConfigError as `roles` does."""
        self._read()
        return self._accounts.get(name)

    def roles(self, name: str, password: str) -> frozenset[str] | None:
        """Return what the user may be called, their own name too; None if they may not log in.

        Raises ConfigError where the file has become unreadable.
        """
        account = self.account(name)
        if account is None:
            hmac.compare_digest(password.encode(), password.encode())
            return None
        return account.roles | {name} if account.is_password(password) else None


def accounts(text: str) -> dict[str, Account]:
    """The users of a password file. Raises ValueError, which names the user only."""
    found = {}
    for name, entry in parse_properties(text).items():
        password, *roles = (part.strip() for part in entry.split(","))
        if password.startswith("CRYPT:"):
            raise ValueError(f"the password of {name} is hashed with CRYPT, which is not supported")
        if not password:
            raise ValueError(f"{name} has no password")
        if password.startswith("OBF:"):
            try:
                deobfuscated(password.removeprefix("OBF:"))
            except ValueError:
                raise ValueError(f"the obfuscated password of {name} cannot be read") from None
        found[name] = Account(password, frozenset(role for role in roles if role))
    return found


def deobfuscated(text: str) -> str:
    """Return what Jetty's tool made unreadable. Raises ValueError.

    Four digits of base 36 hold a byte's sum with and difference from the byte at the other end.
    """
    data = bytearray()
    while text:
        if text[0] == "U":
            data.append(int(text[1:5], _OBF_BASE) >> 8)
            text = text[5:]
            continue
        first, second = divmod(int(text[:4], _OBF_BASE), _OBF_WIDE)
        data.append(((first + second - 254) // 2) % _OBF_WIDE)
        text = text[4:]
    return data.decode()


def of_properties(values: Mapping[str, Any], file_key: str) -> Passwords | None:
    """The accounts that listeners ask for; None without authentication. Raises ConfigError.

    `file_key` names the password file itself, where there is no login configuration.
    """
    method = str(values.get(METHOD) or "NONE").upper()
    if method == "NONE":
        return None
    if method != "BASIC":
        raise ConfigError(METHOD, f"{method} is not supported: choose NONE or BASIC")
    path = str(values.get(file_key) or "")
    return Passwords(path, file_key) if path else Passwords(_file_of_realm(values, file_key))


def _file_of_realm(values: Mapping[str, Any], file_key: str) -> str:
    path, realm = str(values.get(JAAS_FILE) or ""), str(values.get(REALM) or "")
    if not path:
        raise ConfigError(
            JAAS_FILE,
            f"must name the login configuration with {METHOD}=BASIC, or {file_key} the "
            "password file",
        )
    try:
        with open(path, encoding="utf-8") as file:
            sections = jaas_sections(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(JAAS_FILE, f"{path} cannot be read: {error}") from error
    if realm not in sections:
        raise ConfigError(REALM, f"{path} has no section {realm!r}")
    section = sections[realm]
    if _MODULE not in section.split("required")[0]:
        raise ConfigError(JAAS_FILE, f"section {realm} of {path} is not of a {_MODULE}")
    try:
        file_name = jaas_options(section).get("file")
    except JaasError as error:
        raise ConfigError(JAAS_FILE, f"section {realm} of {path}: {error}") from None
    if not file_name:
        raise ConfigError(JAAS_FILE, f"section {realm} of {path} names no file")
    return file_name
