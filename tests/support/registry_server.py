"""A registry with its sockets, whose interface answers every request with its subjects.

`python -m support.registry_server BOOTSTRAP TOPIC [key=value…]`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from barnabas.base.config.overrides import from_flags
from barnabas.registry.config import RegistryConfig
from barnabas.registry.kafka.store import KafkaStore
from barnabas.registry.server import RegistryServer, run_registry
from barnabas.registry.service import Service
from support.registry_format import PlainFormats
from support.registry_member import SETTINGS


class SubjectsInterface:
    """GET anything: subjects, and where the leader is."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = {
            "subjects": self.service.view.state.subjects(),
            "leader": self.service.leader_url,
        }
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    async def close(self) -> None:
        """Nothing."""


def new_interface(store: KafkaStore, config: RegistryConfig) -> SubjectsInterface:
    return SubjectsInterface(store)


def say_ready(server: RegistryServer) -> None:
    print(server.listeners[0], flush=True)  # noqa: T201 - it is a protocol


if __name__ == "__main__":
    values = SETTINGS | {
        "kafkastore.bootstrap.servers": sys.argv[1],
        "kafkastore.topic": sys.argv[2],
        "listeners": "http://127.0.0.1:0",
        **from_flags(sys.argv[3:]),
    }
    sys.exit(run_registry(RegistryConfig(values), PlainFormats(), new_interface, say_ready))
