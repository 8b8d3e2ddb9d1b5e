"""Starts Keycloak on loopback, from the directory that KEYCLOAK_HOME names.

It has one realm with groups, users and a client for a console. It runs in a copy of that directory,
since a start builds the program that it then runs, and writes its database beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.apache_kafka import JAVA, QUICK_JVM
from support.node_process import wait_until
from support.ports import free_port

HOME = os.environ.get("KEYCLOAK_HOME")
needs_keycloak = pytest.mark.skipif(
    not HOME or JAVA is None, reason="needs java and Keycloak's directory in KEYCLOAK_HOME"
)
REALM = "company"
SECRET = "the console's own"
ID_TOKEN_S = 5
PATIENCE_S = 900.0
_SLOW_MACHINES = ("-Dquarkus.transaction-manager.default-transaction-timeout=3600s",)
"""Keycloak imports a realm in one transaction, which otherwise ends after five minutes."""
_ADMIN = "admin"
_COPIED = ("bin", "conf", "lib", "providers", "themes", "version.txt")


class Keycloak:
    """Its address, and what an administrator does there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.issuer = f"{url}/realms/{REALM}"
        self.http = httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False)

    def log_out(self, name: str) -> None:
        """End all sessions of a user."""
        self._asked("POST", f"{self._user(name)}/logout")

    def used_ms(self, name: str) -> int:
        """When a user's only session last gave tokens."""
        (session,) = self._asked("GET", f"{self._user(name)}/sessions").json()
        return int(session["lastAccess"])

    def _user(self, name: str) -> str:
        users = f"/admin/realms/{REALM}/users"
        (user,) = self._asked("GET", users, params={"username": name, "exact": "true"}).json()
        return f"{users}/{user['id']}"

    def _asked(self, method: str, path: str, **more: Any) -> httpx.Response:
        form = {"grant_type": "password", "client_id": "admin-cli"}
        form |= {"username": _ADMIN, "password": _ADMIN}
        token = self.http.post("/realms/master/protocol/openid-connect/token", data=form).json()
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        answer = self.http.request(method, path, headers=headers, **more)
        answer.raise_for_status()
        return answer


@contextmanager
def keycloak(directory: Path, console_url: str) -> Iterator[Keycloak]:
    """Keycloak with the realm of a console at an address."""
    assert HOME is not None
    home = directory / "keycloak"
    home.mkdir()
    for name in _COPIED:
        source = Path(HOME, name)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, home / name)
    imported = home / "data" / "import"
    imported.mkdir(parents=True)
    (imported / f"{REALM}.json").write_text(json.dumps(_realm(console_url)))
    port = free_port()
    command = [str(home / "bin" / "kc.sh"), "start-dev", "--import-realm"]
    command += ["--http-host=127.0.0.1", f"--http-port={port}"]
    environment = {
        **os.environ,
        "JAVA_OPTS": " ".join(("-Xmx512m", *QUICK_JVM, *_SLOW_MACHINES)),
        "KC_BOOTSTRAP_ADMIN_USERNAME": _ADMIN,
        "KC_BOOTSTRAP_ADMIN_PASSWORD": _ADMIN,
    }
    log = directory / "keycloak.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    found = Keycloak(f"http://127.0.0.1:{port}")

    def answers() -> bool:
        assert process.poll() is None, f"Keycloak ended: {log.read_text()[-3000:]}"
        try:
            return found.http.get(f"/realms/{REALM}").status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_until(answers, "Keycloak's realm", PATIENCE_S, lambda: log.read_text()[-3000:])
        yield found
    finally:
        found.http.close()
        process.terminate()
        process.wait(PATIENCE_S)


def _realm(console_url: str) -> dict[str, Any]:
    return {
        "realm": REALM,
        "enabled": True,
        "sslRequired": "none",
        "passwordPolicy": "hashAlgorithm(pbkdf2-sha256) and hashIterations(1)",
        "groups": [{"name": "kafka-admins"}, {"name": "kafka-users"}],
        "users": [_user("ann", "kafka-admins"), _user("vic", "kafka-users"), _user("nemo")],
        "clients": [_client(console_url)],
    }


def _user(name: str, *groups: str) -> dict[str, Any]:
    return {
        "username": name,
        "enabled": True,
        "email": f"{name}@example.org",
        "emailVerified": True,
        "firstName": name.title(),
        "lastName": "Example",
        "groups": [f"/{group}" for group in groups],
        "credentials": [{"type": "password", "value": f"{name}'s", "temporary": False}],
    }


def _client(console_url: str) -> dict[str, Any]:
    groups = {"claim.name": "groups", "full.path": "false", "id.token.claim": "true"}
    return {
        "clientId": "console",
        "secret": SECRET,
        "redirectUris": [f"{console_url}/api/login/oidc/callback"],
        "attributes": {
            "pkce.code.challenge.method": "S256",
            "post.logout.redirect.uris": f"{console_url}/*",
            "access.token.lifespan": str(ID_TOKEN_S),
        },
        "protocolMappers": [
            {
                "name": "groups",
                "protocol": "openid-connect",
                "protocolMapper": "oidc-group-membership-mapper",
                "config": groups,
            }
        ],
    }
