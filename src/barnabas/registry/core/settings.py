"""Configuration and modes: who says what for a subject, and how they are changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.registry.core.decision import Decision, View
from barnabas.registry.store.records import ConfigValue

COMPATIBILITY_LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")


@dataclass(frozen=True, slots=True)
class ConfigUpdate:
    """The fields of ConfigValue that a request names; None takes one away."""

    changes: Mapping[str, Any]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "ConfigUpdate":
        """Read the body of PUT /config. Raises RegistryError 42203, 42210 or 422."""
        raise NotImplementedError


def config_json(config: ConfigValue, *, as_update: bool = False) -> dict[str, Any]:
    """Configuration as JSON; the level is `compatibility` in the answer to an update."""
    raise NotImplementedError


def get_config(
    view: View, subject: str | None = None, *, default_to_global: bool = False
) -> ConfigValue:
    """Configuration of a subject or context, None for the default one.

    Raises RegistryError 40408 if nothing is configured for it.
    """
    raise NotImplementedError


def config_in_scope(view: View, subject: str | None) -> ConfigValue:
    """The configuration that holds for a subject: its own, its context's, the global one."""
    raise NotImplementedError


def update_config(view: View, subject: str | None, update: ConfigUpdate) -> Decision[ConfigValue]:
    """Change configuration; the answer is all of it. Raises RegistryError 42205, 42208."""
    raise NotImplementedError


def delete_config(view: View, subject: str | None) -> Decision[ConfigValue]:
    """Take configuration away; the answer is what was there. Raises RegistryError 40401, 42205."""
    raise NotImplementedError


def resolve_alias(view: View, subject: str) -> str:
    """The subject that a subject stands for, itself if it has no alias."""
    raise NotImplementedError


def get_mode(view: View, subject: str | None = None, *, default_to_global: bool = False) -> str:
    """Mode of a subject or context, None for the default one. Raises RegistryError 40409."""
    raise NotImplementedError


def mode_in_scope(view: View, subject: str | None) -> str:
    """The mode that holds for a subject: its own, its context's, the global one."""
    raise NotImplementedError


def set_mode(
    view: View, subject: str | None, mode: str | None, *, force: bool = False
) -> Decision[str | None]:
    """Set a mode, or take it away with None. Raises RegistryError 42204, 42205, 42206, 42208."""
    raise NotImplementedError


def delete_mode(
    view: View, subject: str | None, *, recursive: bool = False
) -> Decision[str | None]:
    """Take a mode away; the answer is what it was. Raises RegistryError 40401, 42205.

    With `recursive`, those of the subjects of a context too.
    """
    raise NotImplementedError
