"""Cluster-wide defaults of brokers: `kafka-configs --broker-defaults`.

In the protocol they belong to the broker without a name, which the client library refuses.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.cli.admin import Admin
from barnabas.cli.connection import Connection
from barnabas.cli.errors import from_code
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER = 4
SET, DELETE = 0, 1
WHAT = "broker defaults"


def describe(connection: Connection) -> list[Any]:
    """The entries, as DescribeConfigs answers them. Raises CliError."""
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="", configuration_keys=None
    )
    with Admin(connection) as admin:
        response = admin.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True))
    result = response.results[0]
    if result.error_code != ErrorCode.NONE:
        raise from_code(result.error_code, result.error_message, WHAT)
    return list(result.configs)


def alter(connection: Connection, values: Mapping[str, str], unset: Sequence[str]) -> None:
    """Set and unset keys. Raises CliError."""
    configs = [
        AlterableConfig(name=key, config_operation=SET, value=value)
        for key, value in values.items()
    ]
    configs += [AlterableConfig(name=key, config_operation=DELETE, value=None) for key in unset]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=configs)
    with Admin(connection) as admin:
        response = admin.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    result = response.responses[0]
    if result.error_code != ErrorCode.NONE:
        raise from_code(result.error_code, result.error_message, WHAT)
