"""Values from flags and the environment on top of a file's.

Order, the last winning: the file, the environment, `--override key=value`.

The environment follows the rule of Kafka's Docker images under our own prefix:
BARNABAS_LOG_RETENTION_MS is log.retention.ms; `__` stands for `_` and `___` for `-`.
"""

import re
from collections.abc import Mapping

from barnabas.node.config.definitions import BROKER_KEYS

PREFIX = "BARNABAS_"
_UNDERSCORES = re.compile(r"___|__|_")
_STANDS_FOR = {"_": ".", "__": "_", "___": "-"}


def key_of_variable(variable: str) -> str:
    """The key that an environment variable sets."""
    name = variable.removeprefix(PREFIX).lower()
    return _UNDERSCORES.sub(lambda match: _STANDS_FOR[match[0]], name)


def variable_of_key(key: str) -> str:
    """The environment variable that sets a key."""
    spelled = key.replace("_", "__").replace("-", "___").replace(".", "_")
    return PREFIX + spelled.upper()


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Broker keys among the variables; others of our prefix belong to the command line."""
    overrides: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX):
            continue
        key = key_of_variable(variable)
        if key in BROKER_KEYS or key.startswith("listener.name."):
            overrides[key] = value
    return overrides
