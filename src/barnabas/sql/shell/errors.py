"""Errors between the shell and a server."""

from __future__ import annotations

from typing import Any


class ShellError(Exception):
    """The shell cannot do what was asked; the message says why."""


class UnreachableError(ShellError):
    """No server answers, or it stopped answering."""


class MissingFileError(ShellError):
    """A script does not exist."""


class ServerError(ShellError):
    """A server's refusal, with its code and the statement that it is about.

    `entities` are the answers to the statements of the same request that were done before.
    """

    def __init__(
        self,
        message: str,
        code: int = 0,
        statement: str = "",
        entities: tuple[dict[str, Any], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.statement = statement
        self.entities = entities


def of_answer(body: Any, status: int) -> ServerError:
    """The error that the body of an answer tells."""
    if isinstance(body, dict) and "message" in body:
        return ServerError(
            str(body["message"]),
            int(body.get("error_code") or status),
            str(body.get("statementText") or ""),
            tuple(body.get("entities") or ()),
        )
    shown = " ".join(str(body or "").split())[:200]
    return ServerError(f"The server answered with HTTP status {status} {shown}".rstrip(), status)
