"""Workers that speak https only, each with a certificate: with users, and with each other."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from barnabas.connect.rest.settings import ADMIN, REGULAR
from support.certificates import Authority
from support.connect.side_by_side import FILE_SOURCE
from support.connect.worker import PATIENCE_S, OurWorker
from support.node_process import wait_until
from support.ports import free_port

pytestmark = pytest.mark.slow


def tls_settings(authority: Authority, prefix: str, name: str) -> dict[str, str]:
    """A worker's: it asks everyone for a certificate of the authority."""
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.location": authority.issue(name),
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.location": authority.file,
        f"{prefix}ssl.client.auth": "required",
    }


@pytest.fixture
def user(tmp_path: Path) -> tuple[Authority, ssl.SSLContext]:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(cafile=authority.file)
    context.load_cert_chain(authority.issue("user"))
    return authority, context


@pytest.fixture
def workers(
    tmp_path: Path, user: tuple[Authority, ssl.SSLContext], kafka_bootstrap_servers: str
) -> Iterator[list[OurWorker]]:
    authority, context = user
    made = []
    for name in ("one", "two"):
        settings = {
            **tls_settings(authority, REGULAR, name),
            **tls_settings(authority, ADMIN, f"admin-{name}"),
            "admin.listeners": f"https://127.0.0.1:{free_port()}",
            "rest.advertised.host.name": "127.0.0.1",
        }
        worker = OurWorker(
            tmp_path / name, kafka_bootstrap_servers, name, group="https", settings=settings
        )
        worker.url = "https://127.0.0.1:0"
        worker.client.close()
        worker.client = httpx.Client(trust_env=False, timeout=PATIENCE_S, verify=context)
        made.append(worker)
    try:
        for worker in made:
            worker.launch()
        for worker in made:
            worker.url = worker.wait()
        yield made
    finally:
        for worker in made:
            worker.close()


def test_workers_speak_https_with_each_other(
    tmp_path: Path, workers: list[OurWorker], user: tuple[Authority, ssl.SSLContext]
) -> None:
    authority, _ = user
    (tmp_path / "in.txt").write_text("one\n")
    names = [f"lines{number}" for number in range(4)]
    for number, name in enumerate(names):
        config = {"connector.class": FILE_SOURCE, "file": tmp_path / "in.txt", "topic": "https"}
        body = {"name": name, "config": {key: str(value) for key, value in config.items()}}
        worker = workers[number % 2]  # one of them does not lead, and asks who does
        ask_until(worker, "POST", "/connectors", 201, body)
    # Owners that do not lead send their tasks' configurations to who does.
    for name in names:
        ask_until(workers[0], "GET", f"/connectors/{name}/tasks/0/status", 200)
    found = [worker.ask("GET", f"/connectors/{name}/status")[1] for name in names]
    assert len({status["connector"]["worker_id"] for status in found}) == 2
    admin = workers[0].properties.read_text().partition("admin.listeners=")[2].partition("\n")[0]
    assert workers[0].client.get(f"{admin}/admin/loggers").status_code == 200
    assert workers[0].ask("GET", "/admin/loggers")[0] == 404
    stranger = ssl.create_default_context(cafile=authority.file)
    for url in (workers[0].url, admin):
        with (
            httpx.Client(trust_env=False, verify=stranger) as client,
            pytest.raises(httpx.TransportError),
        ):
            client.get(url)


def ask_until(worker: OurWorker, method: str, path: str, status: int, body: object = None) -> None:
    """Ask until the status comes: until then the group may be rebalancing."""
    answers: list[tuple[int, object]] = []

    def is_answered() -> bool:
        answers.append(worker.ask(method, path, body))
        assert answers[-1][0] in (status, 404, 409), answers[-1]
        return answers[-1][0] == status

    wait_until(is_answered, f"{method} {path}", PATIENCE_S, lambda: answers[-1:])
