"""Limits HTTP/2 frames that carry no data: each costs the server work without a request.

Floods of these have names of their own: rapid reset, ping, settings and empty-frame flood
(CVE-2023-44487, CVE-2019-9512 to 9518). The library bounds header lists and continuations itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

WINDOW_S: Final = 10.0
RESETS_MAX: Final = 200
"""Streams that a client may open and reset within the window."""
IDLE_FRAMES_MAX: Final = 1_000
"""Settings, pings, priorities, empty and unknown frames within the window.

An empty frame that ends a request's body is none of these: many clients end each request by one.
"""
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD_BYTES = 9
_END_STREAM = 0x1
_DATA, _PRIORITY, _RESET, _SETTINGS, _PING, _CONTINUATION = 0, 2, 3, 4, 6, 9
_LAST_KNOWN = _CONTINUATION


class TooManyFramesError(Exception):
    """A client sends frames that carry nothing faster than it may."""


class FrameBudget:
    """Counts the frames of one connection, whose bytes it is given from the preface on."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._began_s = now_s()
        self._resets = self._idle_frames = 0
        self._held = b""
        self._to_skip = 0
        self._has_preface = False

    def take(self, data: bytes, *, is_http2: bool) -> None:
        """Count what begins in these bytes. Raises TooManyFramesError.

        Until it is known that they are HTTP/2, bytes without its preface are let pass.
        """
        held = self._held + data
        if self._has_preface and not is_http2:
            self._has_preface = False  # it stood in the body of a request
            self._to_skip, held = 0, data
        if not self._has_preface:
            if not held.startswith(PREFACE):
                if PREFACE.startswith(held):
                    self._held = held
                elif is_http2:
                    raise TooManyFramesError("frames before the preface")
                else:
                    self._held = b""
                return
            self._has_preface = True
            held = held[len(PREFACE) :]
        place = self._to_skip
        while place + _HEAD_BYTES <= len(held):
            size = int.from_bytes(held[place : place + 3])
            self._count(held[place + 3], held[place + 4], size)
            place += _HEAD_BYTES + size
        self._to_skip = max(0, place - len(held))
        self._held = held[place:]

    def _count(self, kind: int, flags: int, size: int) -> None:
        if kind == _RESET:
            self._resets += 1
        elif (
            kind in (_PRIORITY, _SETTINGS, _PING)
            or kind > _LAST_KNOWN
            or (size == 0 and kind == _CONTINUATION)
            or (size == 0 and kind == _DATA and not flags & _END_STREAM)
        ):
            self._idle_frames += 1
        else:
            return
        if self._resets <= RESETS_MAX and self._idle_frames <= IDLE_FRAMES_MAX:
            return
        now_s = self._now_s()
        if now_s - self._began_s < WINDOW_S:
            raise TooManyFramesError(
                f"{self._resets} resets and {self._idle_frames} frames that carry nothing"
            )
        self._began_s, self._resets, self._idle_frames = now_s, 0, 0
