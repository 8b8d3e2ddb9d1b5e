"""Logins by delegation token: a node looks up the credential by the token's id."""

import base64
import random
from typing import Any

from barnabas.base.scram import HASHES, ScramClient
from barnabas.node.metadata.delegation_tokens import token_hmac
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.security import delegation_tokens
from barnabas.node.security.delegation_tokens import TokenLogins
from barnabas.node.security.principal import Principal
from barnabas.node.security.sasl.mechanism import Login
from barnabas.node.security.sasl.scram import ScramMechanism
from barnabas.protocol.messages.metadata_records import DelegationTokenRecord

SECRET = "key"
TOKEN = DelegationTokenRecord(
    owner="User:alice", max_timestamp=2000, expiration_timestamp=1000, token_id="id"
)


class World:
    """Tokens in the metadata, and a clock."""

    def __init__(self, *tokens: DelegationTokenRecord, secret: str | None = SECRET) -> None:
        self.ms = 0
        self.image = MetadataImage(
            cluster_id="c", delegation_tokens={token.token_id: token for token in tokens}
        )
        clock: Any = self
        self.logins = TokenLogins(secret, lambda: self.image, clock, random.Random(1).randbytes)

    def now_ms(self) -> int:
        return self.ms


def test_a_token_until_it_expires() -> None:
    world = World(TOKEN)
    found = world.logins.credential(1, "id")
    assert found is not None
    assert (found.owner, found.expires_at_ms) == (Principal("User", "alice"), 1000)
    again = world.logins.credential(1, "id")
    assert again is not None
    assert again.credential is found.credential, "it is derived once"
    world.ms = 1001
    assert world.logins.credential(1, "id") is None
    assert world.logins.credential(1, "another") is None


def test_a_renewed_token_ends_later() -> None:
    world = World(TOKEN)
    world.logins.credential(1, "id")
    renewed = DelegationTokenRecord(
        owner="User:alice", max_timestamp=2000, expiration_timestamp=1500, token_id="id"
    )
    world.image = MetadataImage(cluster_id="c", delegation_tokens={"id": renewed})
    found = world.logins.credential(1, "id")
    assert found is not None
    assert found.expires_at_ms == 1500


def test_without_a_key_there_are_no_tokens() -> None:
    assert World(TOKEN, secret=None).logins.credential(1, "id") is None


def test_each_mechanism_verifies_the_secret() -> None:
    world = World(TOKEN)
    password = base64.b64encode(token_hmac(SECRET, "id")).decode()
    for number, name in ((1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")):
        assert name in HASHES
        client = ScramClient(name, "id", password, "nonce", {"tokenauth": "true"})
        server = ScramMechanism(
            name,
            lambda _: None,
            random.Random(2).randbytes,
            lambda token_id, number=number: world.logins.credential(number, token_id),  # type: ignore[misc]
        ).begin()
        answer = server.respond(client.final(server.respond(client.first())))
        client.verify(answer)
        assert server.login == Login(Principal("User", "alice"), 1000, is_token=True)


def test_what_is_kept_is_bounded_and_shows_nothing(monkeypatch: Any) -> None:
    monkeypatch.setattr(delegation_tokens, "KEPT_MAX", 2)
    tokens = [
        DelegationTokenRecord(owner="User:a", max_timestamp=9, expiration_timestamp=9, token_id=i)
        for i in ("one", "two", "three")
    ]
    world = World(*tokens)
    for token in tokens:
        assert world.logins.credential(1, token.token_id) is not None
    assert len(world.logins._kept) == 2
    keys = world.logins._kept[1, "three"]
    assert repr(keys) == "Keys(iterations=4096)"
