"""A listener's requirements for OAUTHBEARER tokens, from its configuration (KIP-768)."""

import importlib.util
import logging
from functools import partial
from typing import Protocol

from barnabas.base.backoff import ExponentialBackoff, RandomSource
from barnabas.base.clock import Clock
from barnabas.base.errors import ConfigError
from barnabas.base.oauth.bearer import Validate
from barnabas.base.oauth.fetch import FetchError, file_of, is_file
from barnabas.base.oauth.key_set import LIBRARY_MISSING, KeySet, KeySetError
from barnabas.base.oauth.signed import JwtValidator
from barnabas.base.oauth.web import fetch
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.oauth import JWKS_URL_KEY, MECHANISM
from barnabas.node.config.sasl import ENABLED_KEY, asks_signed_tokens, jaas_options
from barnabas.node.net.oauth.configured import Keys
from barnabas.node.security.issuer_keys import EndpointKeys, FileKeys
from barnabas.node.security.sasl.oauthbearer import UnsecuredValidator

REFRESH_KEY = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
RETRY_KEY = "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"
RETRY_MAX_KEY = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
AUDIENCE_KEY = "sasl.oauthbearer.expected.audience"
ISSUER_KEY = "sasl.oauthbearer.expected.issuer"

telemetry = logging.getLogger(__name__)


class KeySource(Protocol):
    """The source of an issuer's keys."""

    def start(self) -> None:
        """Get them. Raises FetchError and KeySetError where they must be there at once."""

    async def close(self) -> None:
        """Get them no more."""

    def current(self) -> KeySet:
        """The keys. Raises InvalidTokenError before any is known."""

    def missed(self, key_id: str) -> None:
        """A token names a key that is not known."""


class BearerTokens:
    """Makes the checks of a role's listeners, and keeps what they need. `close` it at last."""

    def __init__(self, config: NodeConfig, clock: Clock, random: RandomSource) -> None:
        self._config = config
        self._clock = clock
        self._random = random
        self._sources: dict[tuple[object, ...], KeySource] = {}

    def validator(self, listener_name: str) -> Validate:
        """Return the function with which a listener checks tokens. Raises ConfigError."""
        options = jaas_options(self._config, listener_name, MECHANISM)
        if not asks_signed_tokens(self._config, listener_name):
            telemetry.warning(
                "listener %s accepts unsecured OAUTHBEARER tokens: a client can claim any name. "
                "Set %s to have signatures checked",
                listener_name,
                JWKS_URL_KEY,
            )
            return UnsecuredValidator.from_options(options or {})
        if importlib.util.find_spec("jwt") is None:
            raise ConfigError(ENABLED_KEY, LIBRARY_MISSING)
        keys = Keys(self._config, listener_name, options)
        for key, claim in ((AUDIENCE_KEY, "aud"), (ISSUER_KEY, "iss")):
            if not keys.get(key):
                telemetry.warning(
                    "%s is not set: listener %s accepts tokens with any claim %s%s",
                    key,
                    listener_name,
                    claim,
                    " leaves out" if key == AUDIENCE_KEY else " says",
                )
        return JwtValidator(
            self._source(keys),
            keys.get(AUDIENCE_KEY) or (),
            keys.text(ISSUER_KEY),
            keys.text("sasl.oauthbearer.scope.claim.name") or "scope",
            keys.text("sasl.oauthbearer.sub.claim.name") or "sub",
            (keys.get("sasl.oauthbearer.clock.skew.seconds") or 0) * 1000,
        )

    async def close(self) -> None:
        """Ask no endpoint any more."""
        for source in self._sources.values():
            await source.close()

    def _source(self, keys: Keys) -> KeySource:
        """The keys behind a URL: listeners that name it and trust the same share them."""
        url = keys.url(JWKS_URL_KEY)
        assert url is not None
        trust = sorted(item for item in keys.options.items() if item[0].startswith("ssl."))
        source = self._sources.get((url, *trust))
        if source is not None:
            return source
        refresh_ms = keys.get(REFRESH_KEY)
        if refresh_ms <= 0:
            raise ConfigError(REFRESH_KEY, "must be positive")
        source = (
            FileKeys(file_of(url))
            if is_file(url)
            else EndpointKeys(
                url,
                partial(fetch, url, keys.fetching()),
                self._clock,
                refresh_ms,
                ExponentialBackoff(keys.get(RETRY_KEY), keys.get(RETRY_MAX_KEY), self._random),
            )
        )
        try:
            source.start()
        except (FetchError, KeySetError) as error:
            raise ConfigError(JWKS_URL_KEY, str(error)) from error
        self._sources[url, *trust] = source
        return source
