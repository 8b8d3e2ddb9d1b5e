"""Which listeners share what they know of an issuer's keys."""

import random
from pathlib import Path

from barnabas.base.clock import SystemClock
from barnabas.base.oauth.signed import JwtValidator
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.security.bearer_tokens import BearerTokens
from support.certificates import Authority

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
URL = "https://127.0.0.1:1/jwks"


async def test_keys_are_shared_by_listeners_that_trust_the_same(tmp_path: Path) -> None:
    authority = Authority(tmp_path).file
    own = f'{MODULE} ssl.truststore.type="PEM" ssl.truststore.location="{authority}";'
    config = NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "ONE://:9092,TWO://:9094,THREE://:9095,CONTROLLER://:9093",
            "listener.security.protocol.map": (
                "ONE:SASL_PLAINTEXT,TWO:SASL_PLAINTEXT,THREE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "ONE",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@localhost:9093",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": URL,
            "listener.name.one.oauthbearer.sasl.jaas.config": f"{MODULE};",
            "listener.name.two.oauthbearer.sasl.jaas.config": f"{MODULE};",
            "listener.name.three.oauthbearer.sasl.jaas.config": own,
            "log.dirs": "/data",
        }
    )
    tokens = BearerTokens(config, SystemClock(), random.Random(1))
    try:
        made = [tokens.validator(name) for name in ("ONE", "TWO", "THREE")]
        sources = [each.keys for each in made if isinstance(each, JwtValidator)]
        assert sources[0] is sources[1]
        assert sources[0] is not sources[2]
    finally:
        await tokens.close()
