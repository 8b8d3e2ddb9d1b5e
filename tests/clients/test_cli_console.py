"""`barnabas console`, and `barnabas dev --console`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from support.console_world import Console
from support.foreground import BARNABAS, end, first_line, running
from support.identity_provider import SignOnProvider

SLOW = pytest.mark.slow


def test_a_console_without_a_cluster_says_so_on_its_page() -> None:
    with running("console", "-b", "127.0.0.1:1", "-l", "http://127.0.0.1:0", "--json") as process:
        ready = json.loads(first_line(process))
        assert ready["ready"]
        answer = httpx.get(f"{ready['listeners'][0]}/api/overview", timeout=60)
        assert (answer.status_code, answer.json()["kind"]) == (503, "away")
        assert end(process) == 0


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("-l", "http://0.0.0.0:0"), 2, "needs a login: set console.users.file"),
        (("-o", "console.colour=red"), 2, "console.colour"),
        (("-o", "console.users.file=/nowhere"), 2, "No such file"),
        (("--registry-url", "localhost"), 2, "schema.registry.url"),
        (("--connect-url", "localhost"), 2, "connect.url"),
        (("--sql-url", "localhost"), 2, "sql.url"),
        (("nowhere.properties",), 4, "nowhere.properties"),
    ],
)
def test_a_wrong_setting_is_one_line(flags: tuple[str, ...], code: int, words: str) -> None:
    command = [*BARNABAS, "console", "-l", "http://127.0.0.1:0", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_console_lets_in_users_of_an_identity_provider(tmp_path: Path) -> None:
    with SignOnProvider().serving() as provider:
        file = tmp_path / "console.properties"
        file.write_text(
            f"console.oidc.issuer={provider.url}\n"
            "console.oidc.client.id=console\n"
            "console.oidc.client.secret=top secret\n"
            "console.oidc.role.viewer=kafka-admins\n"
        )
        flags = ("-b", "127.0.0.1:1", "-l", "http://127.0.0.1:0", "--json")
        with running("console", str(file), *flags) as process:
            url = json.loads(first_line(process))["listeners"][0]
            with httpx.Client(base_url=url, timeout=60) as http:
                assert http.get("/api/overview").status_code == 401
                to = http.get("/api/login/oidc").headers["location"]
                back = httpx.get(to, timeout=60).headers["location"]
                assert http.get(back).headers["location"] == "../../../#/"
                me = http.get("/api/me").json()
                assert (me["user"], me["rights"]) == ("oidc:ann", ["view", "read"])
                assert http.get("/api/overview").status_code == 503  # the cluster's fault now
            assert end(process) == 0


@pytest.mark.parametrize("is_secure", [pytest.param(False, marks=pytest.mark.slow), True])
def test_dev_runs_a_console_too(is_secure: bool, tmp_path: Path) -> None:
    flags = ["--port", "0", "--console-port", "0", "--directory", str(tmp_path / "data")]
    flags += ["--secure"] if is_secure else ["--registry", "--registry-port", "0"]
    with running("dev", "--console", *flags, "--json") as process:
        ready = json.loads(first_line(process))
        page = Console(ready["console_url"])
        assert page.get("me")["services"] == ([] if is_secure else ["registry"])
        body = {"name": "made", "partitions": 2, "replication": 1}
        page.done("POST", "topics", body)
        written = page.done("POST", "topics/made/messages", {"key": "k", "value": "v"})
        assert written["offset"] == 0
        (record,) = page.get("topics/made/messages")["records"]
        assert record["value"]["text"] == "v"
        page.http.close()
        assert end(process, signal.SIGINT) == 0


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("nodes", "is_secure"), [(1, False), *(pytest.param(n, True, marks=SLOW) for n in (1, 3))]
)
def test_the_console_of_dev_reaches_all_services_beside_it(
    nodes: int, is_secure: bool, tmp_path: Path
) -> None:
    flags = ["--nodes", str(nodes), "--port", "0", "--directory", str(tmp_path / "data")]
    flags += ["--secure"] if is_secure else []
    for name in ("registry", "connect", "sql", "console"):
        flags += [f"--{name}", f"--{name}-port", "0"]
    with running("dev", *flags, "--json") as process:
        ready = json.loads(first_line(process))
        page = Console(ready["console_url"])
        assert page.get("me")["services"] == ["registry", "connect", "sql"]
        assert page.get("schemas")["url"] == ready["schema_registry_url"]
        assert page.get("connectors")["total"] == page.get("sql/queries")["total"] == 0
        page.http.close()
        assert end(process, signal.SIGINT) == 0
