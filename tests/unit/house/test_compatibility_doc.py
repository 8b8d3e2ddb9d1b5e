"""docs/COMPATIBILITY.md, the handlers, their modules' heads and ApiVersions say the same."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.app.testing import Kafka
from barnabas.node.broker.handlers import ROUTES
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.messages.connections import ApiVersionsRequest, ApiVersionsResponse
from support.raw_client import RawClient

ROOT = Path(__file__).parents[3]
DOC = (ROOT / "docs" / "COMPATIBILITY.md").read_text()
KAFKA = Path(__file__).with_name("kafka-4.3.1-broker-apis.txt").read_text()
HEAD = re.compile(r"^(\w+) \(key (\d+)\), versions? ([\d-]+): KIP-(\d+(?:, \d+)*)", re.MULTILINE)
HANDLER_MODULES: dict[int, Any] = {
    int(route.api.key): sys.modules[route.handler.__module__] for route in ROUTES
}
ADVERTISED_AND_REFUSED = {ApiKey.PRODUCE: 3}
"""Lowest versions that are served where others are shown to librdkafka (KAFKA-18659)."""


def table(heading: str) -> dict[int, list[str]]:
    """The rows of a section's table by API key: name, key, versions and so on."""
    section = DOC.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return {int(row[1]): row for row in rows[2:]}


def bounds(versions: str) -> tuple[int, int]:
    first, _, last = versions.partition("-")
    return int(first), int(last or first)


SERVED = table("APIs served")
OF_KAFKA = {
    int(key): (name, *bounds(versions))
    for key, name, versions in (line.split() for line in KAFKA.splitlines())
}
"""The APIs and versions of an Apache Kafka 4.3.1 broker, by kafka-broker-api-versions."""


def test_each_handler_is_documented() -> None:
    assert SERVED.keys() == HANDLER_MODULES.keys()


@pytest.mark.parametrize("key", SERVED, ids=lambda key: SERVED[key][0])
def test_module_head_says_what_the_table_says(key: int) -> None:
    name, _, versions, kips, _ = SERVED[key]
    heads = {int(head[2]): head for head in HEAD.finditer(HANDLER_MODULES[key].__doc__)}
    assert key in heads, HANDLER_MODULES[key].__doc__
    head = heads[key]
    assert head[1] == name
    first, last = bounds(versions)
    assert bounds(head[3]) == (first, last)
    assert head[4] == kips
    _, first_of_kafka, last_of_kafka = OF_KAFKA[key]
    assert last == last_of_kafka
    assert first == ADVERTISED_AND_REFUSED.get(ApiKey(key), first_of_kafka)
    assert first == APIS[key].min_version


def test_every_api_of_kafkas_is_served() -> None:
    assert SERVED.keys() == OF_KAFKA.keys()


def test_api_versions_advertises_the_same(kafka: Kafka) -> None:
    with RawClient(kafka.bootstrap_servers) as client:
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
        response = client.call(request, ApiVersionsResponse, 4)
    advertised = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert advertised == {key: OF_KAFKA[key][1:] for key in SERVED}


def test_documented_files_exist() -> None:
    for path in re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", DOC):
        assert (ROOT / path).exists(), path
