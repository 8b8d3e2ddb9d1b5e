"""Deletion of versions, subjects and contexts: soft first, then for good."""

from barnabas.registry.core.decision import Decision, View


def delete_version(
    view: View, subject: str, version: str | int, *, permanent: bool = False
) -> Decision[int]:
    """Delete one version (a number, 'latest' or -1); the answer is its number.

    Raises RegistryError: 40401, 40402, 40406 and 40407, 42202, 42205, 42206.
    """
    raise NotImplementedError


def delete_subject(view: View, subject: str, *, permanent: bool = False) -> Decision[list[int]]:
    """Delete all versions of a subject; the answer is their numbers.

    Raises RegistryError: 40401, 40404, 40405, 42205, 42206.
    """
    raise NotImplementedError


def delete_context(view: View, context: str) -> Decision[None]:
    """Delete a context that has no schemas.

    Raises RegistryError: 42211 if it has schemas, 42205 in a mode that forbids it.
    """
    raise NotImplementedError
