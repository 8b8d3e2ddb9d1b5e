"""Our registry as a process. `python -m bench.registry.own schema-registry.properties`."""

import logging
import sys
from pathlib import Path

from barnabas.registry.config import RegistryConfig
from barnabas.registry.server import run_registry
from barnabas.schemas.formats import all_formats

if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    sys.exit(run_registry(RegistryConfig.from_text(Path(sys.argv[1]).read_text()), all_formats()))
