"""TLS of the registry's https listeners."""

import ssl

from barnabas.base.config.errors import ConfigError
from barnabas.base.pem import load_own, pem_file
from barnabas.registry.config import RegistryConfig


def server_context(config: RegistryConfig) -> ssl.SSLContext:
    """TLS of https listeners. Raises ConfigError."""
    if pem_file(config, "", "keystore") is None:
        raise ConfigError("ssl.keystore.location", "must be set for a listener that speaks https")
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cafile=pem_file(config, "", "truststore")
    )
    load_own(context, config, "")
    wanted = config.get_str("ssl.client.authentication")
    if wanted == "REQUIRED" or config.get_bool("ssl.client.auth"):
        context.verify_mode = ssl.CERT_REQUIRED
    elif wanted == "REQUESTED":
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
