"""CRC-32C, from the `crc32c` package's extension alone.

The package itself imports what only its command line needs, and the metadata of installed
packages to tell its version: two megabytes in every node.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import cast

from barnabas.base.disk import Buffer

EXTENSION = "_crc32c"

Checksum = Callable[[Buffer], int]


def load_crc32c() -> Checksum:
    """The package's function, wherever it keeps it."""
    package = PathFinder.find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    spec = None if places is None else PathFinder.find_spec(EXTENSION, places)
    if spec is not None and spec.loader is not None:
        extension = module_from_spec(spec)
        spec.loader.exec_module(extension)
        if hasattr(extension, "crc32c"):
            return cast("Checksum", extension.crc32c)
    from crc32c import crc32c as packaged

    return packaged


crc32c = load_crc32c()
