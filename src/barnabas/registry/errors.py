"""Errors of the registry's REST interface, by Confluent's numeric codes.

Messages of 404 and 409 are worded as Confluent's: clients look for "not found" in them. An
incompatible schema is 409 in the body too: clients compare it. Confluent's newest releases answer
40901.

Source: Errors, RestIncompatibleSchemaException.
"""

from collections.abc import Sequence

SUBJECT_NOT_FOUND = 40401
VERSION_NOT_FOUND = 40402
SCHEMA_NOT_FOUND = 40403
SUBJECT_SOFT_DELETED = 40404
SUBJECT_NOT_SOFT_DELETED = 40405
VERSION_SOFT_DELETED = 40406
VERSION_NOT_SOFT_DELETED = 40407
CONFIG_NOT_FOUND = 40408
MODE_NOT_FOUND = 40409
ASSOCIATION_NOT_FOUND = 40410
INCOMPATIBLE_SCHEMA = 409
ASSOCIATION_EXISTS = 40903
SUBJECT_HAS_ASSOCIATION = 40904
STRONG_ASSOCIATION_EXISTS = 40905
NO_ACTIVE_VERSION = 40907
ASSOCIATION_FROZEN = 40908
INVALID_SCHEMA = 42201
INVALID_VERSION = 42202
INVALID_COMPATIBILITY_LEVEL = 42203
INVALID_MODE = 42204
OPERATION_NOT_PERMITTED = 42205
REFERENCE_EXISTS = 42206
INVALID_SUBJECT = 42208
SCHEMA_TOO_LARGE = 42209
INVALID_RULE_SET = 42210
CONTEXT_NOT_EMPTY = 42211
INVALID_ASSOCIATION = 42212
UNPROCESSABLE = 422
STORE_ERROR = 50001
OPERATION_TIMEOUT = 50002
FORWARDING_FAILED = 50003
UNKNOWN_LEADER = 50004


class RegistryError(Exception):
    """An answer that refuses: the HTTP status, Confluent's code and one sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status: the first three digits of the code."""
        return self.code if self.code < 1000 else self.code // 100


def subject_not_found(subject: str) -> RegistryError:
    """No version of the subject is there, or all are soft-deleted and those were not asked for."""
    return RegistryError(SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    """The subject is there, this version of it is not."""
    return RegistryError(VERSION_NOT_FOUND, f"Version {version} not found.")


def schema_not_found(name: int | str | None = None) -> RegistryError:
    """No schema has this id or guid, or this content under the subject."""
    of = "" if name is None else f" {name}"
    return RegistryError(SCHEMA_NOT_FOUND, f"Schema{of} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """The subject is deleted already; only permanent deletion is left."""
    why = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
    return RegistryError(SUBJECT_SOFT_DELETED, why)


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """The same for one version."""
    why = f"Subject '{subject}' Version {version} was soft deleted."
    return RegistryError(VERSION_SOFT_DELETED, f"{why} Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """Permanent deletion needs a soft deletion first."""
    why = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return RegistryError(SUBJECT_NOT_SOFT_DELETED, why)


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """The same for one version."""
    why = f"Subject '{subject}' Version {version} was not deleted first"
    return RegistryError(VERSION_NOT_SOFT_DELETED, f"{why} before being permanently deleted")


def incompatible(subject: str, messages: Sequence[str]) -> RegistryError:
    """A schema breaks the compatibility that is configured; each message is one place of it."""
    why = f'Schema being registered is incompatible with an earlier schema for subject "{subject}"'
    return RegistryError(INCOMPATIBLE_SCHEMA, f"{why}, details: [{', '.join(messages)}]")


def invalid_schema(message: str) -> RegistryError:
    """The text is not a schema, or what it refers to is not there."""
    return RegistryError(INVALID_SCHEMA, message)


def invalid_version(version: str | int) -> RegistryError:
    """The error for a text that is not a version."""
    return RegistryError(
        INVALID_VERSION,
        f"{version!r} is not a version: give a number from 1 to 2147483647, or latest",
    )


def invalid_subject(subject: str) -> RegistryError:
    """The name may not be used for a subject."""
    return RegistryError(INVALID_SUBJECT, f"{subject!r} cannot be the name of a subject")


def not_permitted(message: str) -> RegistryError:
    """The mode, or the rules of an import, forbid it."""
    return RegistryError(OPERATION_NOT_PERMITTED, message)


def reference_exists(subject: str, version: int, by: str) -> RegistryError:
    """A schema cannot go because another one refers to it."""
    return RegistryError(
        REFERENCE_EXISTS, f"version {version} of subject {subject!r} is referred to by {by}"
    )
