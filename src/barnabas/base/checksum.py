"""CRC-32C, from the `fastcrc` package: `docs/decisions` says why that one."""

from collections.abc import Callable
from typing import cast

from fastcrc.crc32 import iscsi

from barnabas.base.disk import Buffer

crc32c = cast("Callable[[Buffer], int]", iscsi)
