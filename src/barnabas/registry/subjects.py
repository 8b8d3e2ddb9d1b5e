"""Subjects and the contexts that they live in.

A qualified subject is `:.context:subject`. A subject without a context is in the default
context, `.`, and stays without one: `:.:orders` and `orders` are the same. Two more words have
a meaning: `:.__GLOBAL:` holds settings for all contexts, `:*:` in a query means every context.
Source: Confluent's QualifiedSubject.
"""

import re
from dataclasses import dataclass

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
ANY_CONTEXT = "*"
GLOBAL_SETTINGS = ":.__GLOBAL:"
"""The qualified name under which settings for all contexts are kept."""
EVERY_CONTEXT = ":*:"
"""The prefix that asks for subjects of all contexts."""

_RESERVED_SUBJECTS = frozenset({"__GLOBAL", "__EMPTY"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, order=True)
class QualifiedSubject:
    """A context (`.`, `.name`, or `*` in a query) and a subject in it.

    The subject is empty where a whole context is meant. Sorts by context, then by subject.
    """

    context: str
    subject: str

    def __str__(self) -> str:
        return context_prefix(self.context) + self.subject

    @property
    def is_context(self) -> bool:
        """True if a whole context is meant, not one subject in it."""
        return not self.subject


def parse(name: str) -> QualifiedSubject:
    """Split a name into context and subject. Every text is a name of something."""
    if name.startswith(":."):
        context, _, subject = name[1:].partition(":")
        return QualifiedSubject(context, subject)
    if name.startswith(EVERY_CONTEXT):
        return QualifiedSubject(ANY_CONTEXT, name[len(EVERY_CONTEXT) :])
    return QualifiedSubject(DEFAULT_CONTEXT, name)


def normal(name: str) -> str:
    """The one spelling of a name: no prefix for the default context."""
    return str(parse(name)) if name.startswith(":") else name


def context_of(name: str) -> str:
    """The context of a subject, `.` for one without a prefix."""
    return parse(name).context if name.startswith(":") else DEFAULT_CONTEXT


def context_prefix(context: str) -> str:
    """The prefix of the subjects of a context: `:.name:`, nothing for the default."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def context_named(text: str) -> str:
    """The context that a user names as `name`, `.name`, `:.name` or `:.name:`.

    Raises ValueError if the name has a colon inside.
    """
    context = text.removeprefix(":").removesuffix(":")
    if ":" in context:
        raise ValueError(f"context {context!r} has a colon in its name")
    return context if context.startswith(".") else "." + context


def in_context(context: str, subject: str) -> str:
    """A subject as it is called inside a context, qualified. One that is qualified stays."""
    if subject.startswith((":.", EVERY_CONTEXT)):
        return normal(subject)
    return context_prefix(context) + subject


def qualified_from(parent: str, subject: str) -> str:
    """A subject that `parent` refers to, qualified: in the parent's context if it says none."""
    place = parse(subject)
    if place.context == DEFAULT_CONTEXT:
        return context_prefix(context_of(parent)) + place.subject
    return str(place)


def has_prefix(name: str, prefix: str) -> bool:
    """Return whether a qualified subject has a qualified prefix.

    The prefix is of the default context unless it says another; `:*:` stands for all contexts,
    and `:.na` for those whose names begin so.
    """
    if prefix.startswith(":.") and ":" not in prefix[1:]:
        return name.startswith(prefix)
    wanted, found = parse(prefix), parse(name)
    if wanted.context not in (ANY_CONTEXT, found.context):
        return False
    return found.subject.startswith(wanted.subject)


def is_valid(name: str, *, settings: bool = False, may_be_context: bool = True) -> bool:
    """Return whether a name may be used for a subject.

    Control characters, `__GLOBAL` and `__EMPTY` are refused; the global context is for settings
    only. Without `may_be_context`, an empty subject and a bare `*` are refused as well.
    """
    if _CONTROL.search(name):
        return False
    place = parse(name)
    if place.subject in _RESERVED_SUBJECTS:
        return False
    if not may_be_context and place.subject in ("", "*"):
        return False
    return settings or place.context != GLOBAL_CONTEXT
