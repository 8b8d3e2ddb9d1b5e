"""Compatibility: which versions a new schema is held against, and the words when it fails."""

from dataclasses import dataclass

from barnabas.registry.core.decision import View
from barnabas.registry.core.registration import SchemaRequest


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a schema is compatible, and if not the lines that say why."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


def check_version(
    view: View,
    subject: str,
    version: str | int,
    request: SchemaRequest,
    *,
    normalize: bool = False,
) -> Verdict:
    """Hold a schema against one version. Raises RegistryError 40401, 40402, 42201, 42202."""
    raise NotImplementedError


def check_all(
    view: View, subject: str, request: SchemaRequest, *, normalize: bool = False
) -> Verdict:
    """Hold a schema against the versions that registration would. Raises RegistryError 42201."""
    raise NotImplementedError
