"""A registry as a process, with the small format of `registry_format`.

`python -m support.registry_server BOOTSTRAP TOPIC [key=value…]` says where it listens once it does.
"""

from __future__ import annotations

import sys

from barnabas.base.config.properties import from_flags
from barnabas.registry.config import RegistryConfig
from barnabas.registry.server import RegistryServer, run_registry
from support.registry_format import PlainFormats
from support.registry_member import SETTINGS


def say_ready(server: RegistryServer) -> None:
    print(server.listeners[0], flush=True)  # noqa: T201 - it is a protocol


if __name__ == "__main__":
    values = SETTINGS | {
        "kafkastore.bootstrap.servers": sys.argv[1],
        "kafkastore.topic": sys.argv[2],
        "schema.registry.group.id": f"group-of-{sys.argv[2]}",
        "listeners": "http://127.0.0.1:0",
        **from_flags(sys.argv[3:]),
    }
    sys.exit(run_registry(RegistryConfig(values), PlainFormats(), say_ready))
