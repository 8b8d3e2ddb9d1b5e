"""Logging in to the SQL server: password files, roles, what is refused and how."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from barnabas.base.errors import ConfigError
from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.protection import PASSWORD_FILE, protected
from barnabas.web.passwords import (
    Passwords,
    accounts,
    deobfuscated,
    of_properties,
)
from support.sql_server_world import SqlWorld

MD5 = hashlib.md5(b"open", usedforsecurity=False).hexdigest()
FILE = f"""
# who may
harry: changeme,user,developer
tom: MD5:{MD5.upper()},admin
fred: OBF:1w8t1tvf1w261w8v1w1c1tvn1w8x,user,admin
ann: a:b\\:c
"""
JAAS = """
/* two realms; */ Other { a.b.Module required x="}"; };
KsqlServer-Props { // comment
  org.eclipse.jetty.security.jaas.spi.PropertyFileLoginModule required
  file="%s"
  debug="false";
};
"""


def properties(directory: Path, **others: str) -> dict[str, str]:
    (directory / "passwords").write_text(FILE)
    (directory / "jaas.conf").write_text(JAAS % (directory / "passwords"))
    return {
        "authentication.method": "BASIC",
        "authentication.realm": "KsqlServer-Props",
        "java.security.auth.login.config": str(directory / "jaas.conf"),
        **{name.replace("_", "."): value for name, value in others.items()},
    }


def test_a_password_stands_plain_hashed_or_obfuscated() -> None:
    found = accounts(FILE)
    assert found["harry"].roles == {"user", "developer"}
    assert deobfuscated("1w8t1tvf1w261w8v1w1c1tvn1w8x") == "letmein"
    passwords = {"harry": "changeme", "tom": "open", "fred": "letmein", "ann": "a:b:c"}
    for name, password in passwords.items():
        assert found[name].is_password(password)
        assert not found[name].is_password(password + "x")
    assert not found["tom"].is_password(f"MD5:{MD5}")
    assert deobfuscated("U12n8U0wjn") == "ä"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dick: CRYPT:adpexzg3FUZAk", "password of dick is hashed with CRYPT"),
        ("dick: ,user", "dick has no password"),
        ("dick: OBF:!!!!", "obfuscated password of dick cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named_without_the_secret(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        accounts(line)
    assert "adpex" not in str(caught.value)


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text("a: one")
    passwords = Passwords(str(file))
    assert passwords.roles("a", "one") == {"a"}
    file.write_text("a: two,role")
    os.utime(file, (1, 1))
    assert passwords.roles("a", "one") is None
    assert passwords.roles("a", "two") == {"a", "role"}
    assert passwords.roles("b", "two") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"authentication_method": "BEARER"}, "authentication.method: BEARER is not supported"),
        ({"authentication_realm": "No"}, "authentication.realm: .* has no section 'No'"),
        ({"authentication_realm": "Other"}, "section Other .* is not of a PropertyFileLoginModule"),
        ({"java_security_auth_login_config": ""}, "must name the login configuration"),
        ({"java_security_auth_login_config": "/none"}, "/none cannot be read"),
        ({"barnabas_sql_password_file": "/none"}, "barnabas.sql.password.file: /none"),
    ],
)
def test_properties_that_lead_nowhere(tmp_path: Path, changes: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        of_properties(properties(tmp_path, **changes), PASSWORD_FILE)


async def answers(values: dict[str, str], path: str, **options: Any) -> httpx.Response:
    world = SqlWorld()
    app = protected(KsqlApi(world.engine).app(), values)
    transport = httpx.ASGITransport(app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://sql") as client:
            return await client.get(path, **options)
    finally:
        await world.close()


async def test_who_does_not_log_in_gets_ksqldbs_error(tmp_path: Path) -> None:
    values = properties(tmp_path)
    answer = await answers(values, "/info")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="KsqlServer-Props"'
    error = {"@type": "generic_error", "error_code": 40100, "message": "Unauthorized"}
    assert answer.json() == error
    bad: list[str] = ["Basic", "Basic !", "Bearer x", "Basic " + _encoded("harry"), ""]
    bad += ["Basic " + _encoded("harry:changed"), "Basic " + _encoded("nobody:changeme")]
    for header in bad:
        answer = await answers(values, "/info", headers={"Authorization": header})
        assert answer.json() == error
    twice = [("Authorization", "Basic " + _encoded("harry:changeme"))] * 2
    assert (await answers(values, "/info", headers=twice)).status_code == 401


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_roles_decide_who_may_go_on(tmp_path: Path) -> None:
    harry, tom = ("harry", "changeme"), ("tom", "open")
    for roles, allowed in (("*", True), ("**", True), ("admin", False), ("x, developer", True)):
        values = properties(tmp_path, authentication_roles=roles)
        answer = await answers(values, "/info", auth=harry)
        assert answer.status_code == (200 if allowed else 403)
        if not allowed:
            assert answer.json()["error_code"] == 40300
            assert (await answers(values, "/info", auth=tom)).status_code == 200


async def test_some_paths_are_open(tmp_path: Path) -> None:
    values = properties(tmp_path, authentication_skip_paths="/info,/status*")
    for path in ("/healthcheck", "/v1/metadata", "/v1/metadata/id", "/info", "/status"):
        assert (await answers(values, path)).status_code == 200
    for path in ("/healthcheck/x", "/infos", "/clusterStatus", "/"):
        assert (await answers(values, path)).status_code == 401


async def test_a_web_socket_asks_for_the_password_too(tmp_path: Path) -> None:
    world = SqlWorld()
    app = protected(KsqlApi(world.engine).app(), properties(tmp_path))
    client = TestClient(app)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws/query?request={}"):
        pass
    headers = {"Authorization": "Basic " + _encoded("harry:changeme")}
    with client.websocket_connect("/ws/query?request={}", headers=headers) as socket:
        assert "must be populated" in socket.receive_json()["error"]
    await world.close()


async def test_without_the_method_nobody_is_asked(tmp_path: Path) -> None:
    assert (await answers({}, "/info")).status_code == 200
