"""Requests of one worker to another: task configurations to the leader, a wish to fence.

They are signed where the group's protocol says so. Kafka's workers take them, and send the same.

Source: org.apache.kafka.connect.runtime.rest.RestClient (Kafka 4.3).
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from barnabas.connect.errors.requests import RequestError
from barnabas.connect.record import json_bytes
from barnabas.connect.worker.distributed.records import SessionKey
from barnabas.connect.worker.distributed.signatures import sign

_TIMEOUT_S: Final = 90.0


class Forwarding:
    """`verify` is what other workers' certificates are checked with."""

    def __init__(self, verify: ssl.SSLContext | bool = True) -> None:
        self._client = httpx.Client(timeout=_TIMEOUT_S, verify=verify, trust_env=False)

    def put_tasks(
        self, url: str, connector: str, configs: Any, key: SessionKey | None, algorithm: str
    ) -> None:
        """Send task configurations to the leader at a URL. Raises RequestError."""
        self._send("POST", _path(url, connector, "tasks"), json_bytes(configs), key, algorithm)

    def fence(self, url: str, connector: str, key: SessionKey | None, algorithm: str) -> None:
        """Ask the leader at a URL to fence older tasks. Raises RequestError."""
        self._send("PUT", _path(url, connector, "fence"), b"", key, algorithm)

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _send(
        self, method: str, url: str, body: bytes, key: SessionKey | None, algorithm: str
    ) -> None:
        headers = {"Accept": "application/json", "User-Agent": "kafka-connect"}
        if body:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers |= sign(key, algorithm, body)
        try:
            answer = self._client.request(method, url, content=body, headers=headers)
        except httpx.HTTPError as error:
            text = f"IO Error trying to forward REST request: {error}"
            raise RequestError(text, 500) from error
        if answer.status_code >= 400:
            raise RequestError(_message(answer), answer.status_code)


def _path(url: str, connector: str, what: str) -> str:
    return f"{url.rstrip('/')}/connectors/{quote(connector, safe='')}/{what}"


def _message(answer: httpx.Response) -> str:
    try:
        body = json.loads(answer.content)
    except ValueError:
        return answer.text[:200]
    return str(body.get("message")) if isinstance(body, Mapping) else answer.text[:200]
