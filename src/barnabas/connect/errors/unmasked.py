"""Errors of plugins that see a record before its fields are masked: texts may quote the fields.

Status and log have such an error without its text, but with its kind, its place in the code and the
record's place. Dead letters keep the text: they hold the record itself, as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas.connect.errors.reports import java_name
from barnabas.connect.record import RawRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError, kind_of
from barnabas.schemas.errors import RegistryError

_CAUSES_MAX: Final = 5


class Unmasked:
    """The part of a chain that sees what `masks`, transforms by their aliases, will mask."""

    def __init__(self, masks: Sequence[str] = (), plugins: Sequence[Any] = ()) -> None:
        self._masks = ", ".join(f"transforms.{alias}" for alias in masks)
        self._plugins = plugins

    def __bool__(self) -> bool:
        return bool(self._masks)

    def shown(self, plugin: Any, error: BaseException, original: Any = None) -> BaseException:
        """Return an error of a plugin as status and log may have it."""
        if not any(plugin is one for one in self._plugins):
            return error
        return self.without_text(error, original)

    def without_text(self, error: BaseException, original: Any = None) -> BaseException:
        """Return an error as status and log may have it: itself, if nothing is masked."""
        if not self:
            return error
        where = ""
        if isinstance(original, RawRecord):
            where = f"; the record is {original.topic}-{original.partition}@{original.offset}"
        return self._without_text(error, where, _CAUSES_MAX)

    def _without_text(self, error: BaseException, where: str, causes: int) -> BaseException:
        if isinstance(error, ConfigError | RegistryError):
            return error  # of settings and of schemas: they quote no record
        kind = kind_of(error)
        text = f"[the text may quote fields that are masked by {self._masks}{where}]"
        if isinstance(error.__cause__, RegistryError):
            text = str(error)
        elif kind is None:
            text = f"{java_name(error)}: {text}"
        made: BaseException = (kind or ConnectError)(text).with_traceback(error.__traceback__)
        if error.__cause__ is not None and causes > 1:
            made.__cause__ = self._without_text(error.__cause__, "", causes - 1)
        made.__suppress_context__ = True
        return made
