"""Settings and variables of a request, which apply to its statements only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.sql.engine.config import checked, full_name
from barnabas.sql.syntax.tree import (
    DefineVariable,
    SetProperty,
    Statement,
    UndefineVariable,
    UnsetProperty,
)


@dataclass
class Session:
    """`server`: the server's settings; `overrides`: the request's, by their full names."""

    server: Mapping[str, Any]
    overrides: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_request(
        cls,
        server: Mapping[str, Any],
        properties: Mapping[str, Any] | None,
        variables: Mapping[str, Any] | None = None,
    ) -> Session:
        """The session of a request; raises PropertyError for a property it may not set."""
        session = cls(server)
        for name, value in (properties or {}).items():
            session.set(name, value)
        session.variables = {name: str(value) for name, value in (variables or {}).items()}
        return session

    @property
    def settings(self) -> dict[str, Any]:
        """All settings as the statements see them."""
        return {**self.server, **self.overrides}

    def set(self, name: str, value: Any) -> None:
        """Set a property; raises PropertyError."""
        key, typed = checked(name, value, self.server)
        self.overrides[key] = typed

    def copy(self) -> Session:
        return Session(self.server, dict(self.overrides), dict(self.variables))

    def change(self, statement: Statement) -> bool:
        """Do what SET, UNSET, DEFINE or UNDEFINE says; gives whether it was one of them."""
        match statement:
            case SetProperty(name, value, False):
                self.set(name, value)
            case UnsetProperty(name):
                self.overrides.pop(full_name(name), None)
            case DefineVariable(name, value):
                self.variables[name] = value
            case UndefineVariable(name):
                self.variables.pop(name, None)
            case _:
                return False
        return True
