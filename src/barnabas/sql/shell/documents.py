"""Reads the JSON objects of an array, or of lines, while they arrive."""

from __future__ import annotations

import json
from typing import Any

_BETWEEN = " \t\r\n[],"
_DECODER = json.JSONDecoder()


class DocumentReader:
    """Takes text in pieces of any size and gives back each object as soon as it is whole."""

    def __init__(self) -> None:
        self._text = ""

    def feed(self, text: str) -> list[dict[str, Any]]:
        """The objects that the piece ends."""
        self._text += text
        found, position = [], 0
        while True:
            while position < len(self._text) and self._text[position] in _BETWEEN:
                position += 1
            if position == len(self._text):
                break
            try:
                value, position = _DECODER.raw_decode(self._text, position)
            except ValueError:
                break  # the rest has not arrived yet
            found.append(value)
        self._text = self._text[position:]
        return found

    @property
    def rest(self) -> str:
        """What has arrived and is no whole object."""
        return self._text
