"""Our registry as a process. `python -m bench.registry.own schema-registry.properties`."""

import logging
import sys
from pathlib import Path

from barnabas.base.config.properties import parse_properties
from barnabas.registry.config import RegistryConfig
from barnabas.registry.server import run_registry
from barnabas.schemas.formats import all_formats

if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    properties = parse_properties(Path(sys.argv[1]).read_text())
    sys.exit(run_registry(RegistryConfig(properties), all_formats()))
