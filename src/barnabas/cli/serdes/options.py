"""Options of commands that read or write records with a registry's schemas."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.errors import extra_packages
from barnabas.cli.option_sets import Function, with_options
from barnabas.cli.registry.client import Registry

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

FORMATS = {"avro": "AVRO", "json-schema": "JSON", "protobuf": "PROTOBUF", "registry": None}
"""What `--value-format` may say, and the type of schemas that are accepted; None for all."""
URL_OPTION = "--schema-registry-url"


def schema_registry_options(function: Function) -> Function:
    """Return which registry, as the argument `registry`."""

    def wrapped(
        registry_urls: str | None,
        registry_user: str | None,
        registry_ca_file: str | None,
        **rest: Any,
    ) -> Any:
        urls = Registry.read_urls(registry_urls, URL_OPTION)
        return function(registry=Registry(urls, registry_user, registry_ca_file), **rest)

    return with_options(function, wrapped, _OPTIONS)


_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option(
        URL_OPTION,
        "registry_urls",
        metavar="URL,...",
        help="The registry with the schemas; by default "
        f"{', then '.join(Registry.URL_VARIABLES)}, then {Registry.DEFAULT_URL}.",
    ),
    click.option(
        "--schema-registry-user",
        "registry_user",
        envvar=Registry.USER_VARIABLE,
        metavar="NAME:PASSWORD",
        help=f"For a registry that asks for a password; by default {Registry.USER_VARIABLE}.",
    ),
    click.option(
        "--schema-registry-ca-file",
        "registry_ca_file",
        type=click.Path(exists=True, dir_okay=False),
        help="PEM file with the authorities to trust for https.",
    ),
)


def needs_extra() -> AbstractContextManager[None]:
    """Turns a module that is missing into a CliError."""
    return extra_packages("registry", "records with schemas need")


def confluent_client(registry: Registry) -> "SchemaRegistryClient":
    """The client that confluent-kafka's serializers ask, closed at the end of the command.

    Raises CliError where it is missing.
    """
    with needs_extra():
        from confluent_kafka.schema_registry import SchemaRegistryClient

    config: dict[str, Any] = {"url": ",".join(registry.urls)}
    if registry.user is not None:
        config["basic.auth.user.info"] = registry.user
    if registry.ca_file is not None:
        config["ssl.ca.location"] = os.fspath(registry.ca_file)
    client: SchemaRegistryClient = click.get_current_context().with_resource(
        SchemaRegistryClient(config)
    )
    return client
