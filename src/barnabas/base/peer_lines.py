"""Bounds the lines that peers can have a node write: failed handshakes and logins, broken frames.

Anyone who connects can cause them as fast as requests are sent, and so fill the disk. Of each kind
of line a limited number is written a minute; the others are counted, and the next line that is
written says how many they were. A format string is a kind, and so is each reason that its lines
give (`because`), so that one reason does not hide another. Where clients ask again and again for
what cannot be done (`repeating_logger`), the same text is written once a minute.
"""

import logging
from typing import Final

LINES_MAX: Final = 60
"""Of one kind, in a window."""
WINDOW_S: Final = 60.0
REASONS_MAX: Final = 20
"""Reasons of one format string that are kinds of their own. Peers may have a part in the words."""
_REASON: Final = "peer_reason"


class PeerLines(logging.Filter):
    """A filter of loggers whose warnings are caused by peers. Time is that of the records."""

    def __init__(self, *, repeats: bool = True) -> None:
        super().__init__()
        self._repeats = repeats
        """True if the same text may be written several times in a window."""
        self._kinds: dict[tuple[str, str], _Kind] = {}
        """By format string and reason."""
        self._reasons: dict[str, int] = {}
        """By format string, the number of its reasons that are limited separately."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written; it then says what was left out before it."""
        if record.levelno < logging.WARNING or not isinstance(record.msg, str):
            return True
        kind = self._kind(record.msg, getattr(record, _REASON, ""), record.created)
        if not 0 <= record.created - kind.begun_s < WINDOW_S:
            kind.begun_s = record.created
            kind.written = 0
            kind.texts.clear()
        text = "" if self._repeats else record.getMessage()
        if kind.written >= LINES_MAX or text in kind.texts:
            kind.left_out += 1
            return False
        kind.written += 1
        if text:
            kind.texts.add(text)
        if kind.left_out:
            record.msg += f" ({kind.left_out} lines like this were left out before)"
            kind.left_out = 0
        return True

    def _kind(self, form: str, reason: str, now_s: float) -> "_Kind":
        kind = self._kinds.get((form, reason))
        if kind is None and reason:
            count = self._reasons.get(form, 0)
            if count == REASONS_MAX:
                return self._kind(form, "", now_s)
            self._reasons[form] = count + 1
        if kind is None:
            kind = self._kinds[form, reason] = _Kind(now_s)
        return kind

    def forget(self) -> None:
        """Begin again."""
        self._kinds.clear()
        self._reasons.clear()


def because(reason: object) -> dict[str, str]:
    """The `extra` of a line that is bounded by its reason too."""
    return {_REASON: str(reason)}


class _Kind:
    """The recent lines of one kind."""

    __slots__ = ("begun_s", "left_out", "texts", "written")

    def __init__(self, begun_s: float) -> None:
        self.begun_s = begun_s
        self.written = 0
        self.texts: set[str] = set()
        """Texts written in this window, if none may be repeated."""
        self.left_out = 0


PEER_LINES: Final = PeerLines()
"""The filter of this process."""
REPEATED_LINES: Final = PeerLines(repeats=False)
"""The same, for lines that clients cause again and again."""


def peer_logger(name: str) -> logging.Logger:
    """The logger of a module whose warnings peers cause."""
    logger = logging.getLogger(name)
    logger.addFilter(PEER_LINES)
    return logger


def repeating_logger(name: str) -> logging.Logger:
    """The logger of a module whose warnings clients cause again and again, in the same words."""
    logger = logging.getLogger(name)
    logger.addFilter(REPEATED_LINES)
    return logger
