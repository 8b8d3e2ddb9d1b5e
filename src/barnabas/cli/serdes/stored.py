"""Schemas as a registry has them, ready for the libraries of their formats."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from barnabas.cli.errors import CliError
from barnabas.cli.registry.client import Registry
from barnabas.cli.registry.compare import resolved_references
from barnabas.cli.serdes.options import needs_extra

if TYPE_CHECKING:
    from barnabas.schemas.schema import ParsedSchema


@dataclass(slots=True, frozen=True)
class Named:
    """How a record names a schema: by the id, or by the GUID."""

    name: int | UUID

    def __str__(self) -> str:
        return f"schema {self.name}"

    @property
    def path(self) -> tuple[str, str, str | int]:
        """Of the registry's interface."""
        if isinstance(self.name, UUID):
            return ("schemas", "guids", str(self.name))
        return ("schemas", "ids", self.name)


def why(error: Exception) -> str:
    """Why a format's library failed; Confluent's say it in the cause where a rule fails."""
    return str(error) or str(error.__cause__ or type(error).__name__)


class StoredSchema:
    """A schema that a registry has. Raises CliError where it has not, or does not answer."""

    def __init__(self, registry: Registry, named: Named) -> None:
        self._registry = registry
        self._named = named
        self._stored: dict[str, Any] = registry.get(*named.path)

    @property
    def type(self) -> str:
        """AVRO, JSON or PROTOBUF."""
        return str(self._stored.get("schemaType") or "AVRO")

    @cached_property
    def avro(self) -> Any:
        """An Avro schema with all that it refers to, as fastavro parses it."""
        with needs_extra():
            from fastavro import parse_schema

        text = str(self._stored["schema"])
        if self._stored.get("references"):
            text = self._parsed.formatted("resolved")
        return parse_schema(json.loads(text))

    def message_class(self, indexes: Sequence[int]) -> Any:
        """The class of a message of a Protobuf schema; no indexes mean the first. Raises CliError.

        Messages are shown by `pool`, which knows what they may hold.
        """
        from google.protobuf.message_factory import GetMessageClass

        schema: Any = self._parsed
        try:
            name = schema.message_at(indexes)
        except LookupError as error:
            raise CliError(f"{self._named}: {error}") from error
        return GetMessageClass(self.pool.FindMessageTypeByName(name))

    @cached_property
    def pool(self) -> Any:
        """The descriptors of a Protobuf schema and of all that it imports."""
        from barnabas.schemas.protobuf.descriptors import compile_file

        schema: Any = self._parsed
        _, pool = compile_file(schema.scope, f"schema-{self._named.name}.proto", lenient=True)
        return pool

    @cached_property
    def _parsed(self) -> "ParsedSchema":
        with needs_extra():
            from barnabas.schemas.formats import all_formats
            from barnabas.schemas.schema import SchemaFault

            references = resolved_references(self._registry, self._stored)
            try:
                return all_formats().parse(self.type, str(self._stored["schema"]), references)
            except SchemaFault as fault:
                raise CliError(f"{self._named} cannot be read: {fault}") from fault
