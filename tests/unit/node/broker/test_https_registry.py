"""The registry over real HTTPS, on loopback, by Confluent Server's keys."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.base.tls.contexts import configured_client
from barnabas.node.broker.schemas.http_registry import HttpRegistry
from barnabas.node.broker.schemas.known_schemas import REGISTRY_KEYS
from barnabas.node.broker.schemas.registry import Claim, NoAnswerError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.config import TOPIC_NAME_STRATEGY
from support.certificates import Authority
from support.fake_registry import FakeRegistry
from support.schema_world import id_of

CLAIM = Claim(id_of(1), TOPIC_NAME_STRATEGY, "t", is_key=False)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def serving(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.issue("registry"))
    return context


@pytest.fixture
def registry(serving: ssl.SSLContext) -> Iterator[FakeRegistry]:
    with FakeRegistry(tls=serving) as fake:
        fake.register(1, "t-value")
        yield fake


def client(url: str, user_info: str | None = None, **keys: str) -> HttpRegistry:
    """One that the broker would have with `confluent.ssl.<key>`."""
    given = {f"confluent.ssl.{name.replace('_', '.')}": text for name, text in keys.items()}
    assert given.keys() <= set(REGISTRY_KEYS)
    config = NodeConfig.from_properties(standalone_properties(".", overrides=given))
    return HttpRegistry([url], user_info, partial(configured_client, config, "confluent."))


async def test_a_trusted_registry(registry: FakeRegistry, authority: Authority) -> None:
    asking = client(registry.url, "user:word", truststore_location=authority.file)
    assert await asking.holds(CLAIM)
    assert not await asking.holds(CLAIM._replace(topic="other"))
    assert registry.authorizations[0] == "Basic dXNlcjp3b3Jk"


async def test_certificates_in_the_configuration(
    registry: FakeRegistry, authority: Authority
) -> None:
    asking = client(registry.url, truststore_certificates=authority.text)
    assert await asking.holds(CLAIM)


@pytest.mark.parametrize("other", ["the system's", "another"])
async def test_a_registry_that_is_not_trusted(
    registry: FakeRegistry, other: str, tmp_path: Path
) -> None:
    trusted = "" if other == "the system's" else Authority(tmp_path, "other").file
    asking = client(registry.url, truststore_location=trusted)
    with pytest.raises(NoAnswerError, match="its certificate is refused"):
        await asking.holds(CLAIM)
    assert registry.asked == []


async def test_a_certificate_for_another_host(authority: Authority) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.issue("elsewhere", ["127.0.0.2"]))
    with FakeRegistry(tls=context) as registry:
        registry.register(1, "t-value")
        with pytest.raises(NoAnswerError, match=r"certificate is refused: .*127\.0\.0\.1"):
            await client(registry.url, truststore_location=authority.file).holds(CLAIM)
        lax = {"endpoint_identification_algorithm": ""}
        assert await client(registry.url, truststore_location=authority.file, **lax).holds(CLAIM)


async def test_a_registry_that_asks_for_a_certificate(
    serving: ssl.SSLContext, authority: Authority
) -> None:
    serving.verify_mode = ssl.CERT_REQUIRED
    serving.load_verify_locations(authority.file)
    keys = {
        "truststore_location": authority.file,
        "keystore_location": authority.issue("broker", password="secret"),
    }
    with FakeRegistry(tls=serving) as registry:
        registry.register(1, "t-value")
        assert await client(registry.url, **keys, key_password="secret").holds(CLAIM)
        with pytest.raises(NoAnswerError, match=r"confluent\.ssl\.keystore\.location"):
            await client(registry.url, **keys, key_password="wrong").holds(CLAIM)
        with pytest.raises(NoAnswerError):
            await client(registry.url, truststore_location=authority.file).holds(CLAIM)


async def test_a_file_is_read_again_once_it_is_mended(
    registry: FakeRegistry, authority: Authority
) -> None:
    hidden = f"{authority.file}.hidden"
    os.rename(authority.file, hidden)
    asking = client(registry.url, truststore_location=authority.file)
    with pytest.raises(NoAnswerError, match=r"truststore\.location: cannot be read"):
        await asking.holds(CLAIM)
    os.rename(hidden, authority.file)
    assert await asking.holds(CLAIM)


async def test_files_are_read_again_after_a_connection_that_failed(
    registry: FakeRegistry, authority: Authority, tmp_path: Path
) -> None:
    trusted = Authority(tmp_path, "former")
    asking = client(registry.url, truststore_location=trusted.file)
    with pytest.raises(NoAnswerError, match="its certificate is refused"):
        await asking.holds(CLAIM)
    os.replace(authority.file, trusted.file)
    assert await asking.holds(CLAIM)


async def test_a_registry_that_speaks_no_tls() -> None:
    with FakeRegistry() as registry:
        asking = client(registry.url.replace("http:", "https:"))
        with pytest.raises(NoAnswerError):
            await asking.holds(CLAIM)
        assert registry.asked == []
