"""What `barnabas dev` was asked for, for one node or several, secured or not."""

from collections.abc import Mapping
from dataclasses import dataclass

PORT_HINT = "choose others with --port, or take free ones with --port 0"


@dataclass(frozen=True, slots=True)
class DevWishes:
    """The requested nodes."""

    count: int
    directory: str
    is_temporary: bool
    host: str
    port: int
    controller_port: int | None
    racks: tuple[str, ...]
    overrides: Mapping[str, str]
    log_level: str
    as_json: bool
    is_secure: bool = False
