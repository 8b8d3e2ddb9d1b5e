"""Ids that the metadata hands out, and the directory ids that mean something by themselves."""

from typing import Final, Protocol

from barnabas.base.ids import ZERO_UUID, Uuid, uuid_to_text

DIRECTORY_MIGRATING: Final = ZERO_UUID
"""The replica is in some directory; which one was never recorded."""
DIRECTORY_UNASSIGNED: Final = Uuid(bytes(15) + b"\x01")
"""The broker has yet to choose a directory."""
DIRECTORY_LOST: Final = Uuid(bytes(15) + b"\x02")
"""The replica's directory is offline, whichever it was."""

_RESERVED_MAX: Final = 99


class RandomSource(Protocol):
    """Randomness as an argument: `random.Random` and `random.SystemRandom` are such sources."""

    def randrange(self, stop: int, /) -> int:
        """An integer in [0, stop)."""

    def randbytes(self, n: int, /) -> bytes:
        """`n` random bytes."""

    def shuffle(self, x: list[int], /) -> None:
        """Reorder a list in place."""


def is_reserved(uuid: Uuid) -> bool:
    """Return whether Kafka keeps this id for itself: the first hundred (DirectoryId.reserved)."""
    return int.from_bytes(uuid, "big") <= _RESERVED_MAX


def random_uuid(random: RandomSource) -> Uuid:
    """A version 4 id that is neither reserved nor starts with `-` in text, as Kafka's are.

    A leading dash would be taken for an option on a command line.
    """
    while True:
        raw = bytearray(random.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = Uuid(bytes(raw))
        if not is_reserved(uuid) and not uuid_to_text(uuid).startswith("-"):
            return uuid
