"""The session of a shell: values of SET and DEFINE, sent to the server with each statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.sql.errors import SqlError
from barnabas.sql.shell.client import Context
from barnabas.sql.shell.errors import ShellError
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.parser import parse_one
from barnabas.sql.syntax.variables import substitute_text

_SWITCH = "ksql.variable.substitution.enable"


@dataclass
class Session:
    """Properties and variables, by name."""

    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        """The context of a statement."""
        return Context(self.properties, self.variables)

    def change(self, text: str, check: Callable[[str], None]) -> str:
        """Do a SET, UNSET, DEFINE or UNDEFINE; returns the message to show.

        `check` raises ShellError for a property that cannot be set. Raises ShellError.
        """
        if "${" in text and self.properties.get(_SWITCH, "true").lower() != "false":
            text = substitute_text(text, self.variables)
        try:
            statement = parse_one(text)
        except SqlError as error:
            raise ShellError(str(error)) from error
        match statement:
            case tree.SetProperty(name, value):
                check(name)
                return self._set(name, value)
            case tree.UnsetProperty(name):
                return self._unset(name)
            case tree.DefineVariable(name, value):
                self.variables[name] = value
                return ""
            case tree.UndefineVariable(name):
                if self.variables.pop(name, None) is None:
                    return f"Cannot undefine variable '{name}' which was never defined"
                return ""
        raise ShellError(f"This is no change of the session: {text}")

    def _set(self, name: str, value: str) -> str:
        before = self.properties.get(name)
        self.properties[name] = value
        changed = "" if before is None else f" from '{before}'"
        return (
            f"Successfully changed local property '{name}'{changed} to '{value}'. Use the UNSET "
            "command to revert your change."
        )

    def _unset(self, name: str) -> str:
        before = self.properties.pop(name, None)
        if before is None:
            raise ShellError(f"Cannot unset local property '{name}' which was never set")
        return f"Successfully unset local property '{name}' (value was '{before}')."
