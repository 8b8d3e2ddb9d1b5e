"""`python -m barnabas.demo.registry_server FILE`: the schema registry until SIGTERM."""

from __future__ import annotations

import logging
import sys

from barnabas.registry.config import RegistryConfig
from barnabas.registry.formats import all_formats
from barnabas.registry.kafka.faults import StoreError
from barnabas.registry.server import CannotListenError, run_registry


def main(path: str) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    with open(path, encoding="utf-8") as source:
        config = RegistryConfig.from_text(source.read())
    try:
        return run_registry(
            config,
            all_formats(),
            lambda server: print(f"schema registry on {server.listeners[0]}", flush=True),
        )
    except (CannotListenError, StoreError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
