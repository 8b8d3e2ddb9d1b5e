"""A token that a node makes up for its own logins, as Kafka's default does (development only).

Its claims are options of the JAAS line: `unsecuredLoginStringClaim_sub="alice"`,
`unsecuredLoginNumberClaim_x`, `unsecuredLoginListClaim_scope=",a,b"` (the first character divides
the rest). Source: Kafka's OAuthBearerUnsecuredLoginCallbackHandler.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.errors import ConfigError

PREFIX: Final = "unsecuredLogin"
EXTENSION_PREFIX: Final = f"{PREFIX}Extension_"
LIFETIME_SECONDS_DEFAULT: Final = "3600"
_RESERVED: Final = frozenset({"iat", "exp"})


def unsecured_token(options: Mapping[str, str], now_ms: int) -> str:
    """An unsigned token. Raises ConfigError where the options make none."""
    lifetime = options.get(f"{PREFIX}LifetimeSeconds", LIFETIME_SECONDS_DEFAULT)
    claims: dict[str, Any] = {
        "iat": now_ms / 1000,
        "exp": now_ms / 1000 + _number(f"{PREFIX}LifetimeSeconds", lifetime),
    }
    for option, value in options.items():
        for kind, read in _KINDS.items():
            name = option.removeprefix(f"{PREFIX}{kind}Claim_")
            if name in (option, ""):
                continue
            if name in _RESERVED:
                raise ConfigError("sasl.jaas.config", f"Cannot explicitly set the '{name}' claim")
            claims[name] = read(option, value)
    principal = options.get(f"{PREFIX}PrincipalClaimName", "").strip() or "sub"
    if not str(claims.get(principal, "")).strip():
        raise ConfigError(
            "sasl.jaas.config",
            f"{PREFIX}StringClaim_{principal} must name who logs in with an unsecured token",
        )
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _text(_: str, value: str) -> str:
    return value


def _number(option: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise ConfigError("sasl.jaas.config", f"{option} must be a number") from error


def _list(_: str, value: str) -> list[str]:
    return value[1:].split(value[0]) if len(value) > 1 else []


_KINDS: Final = {"String": _text, "Number": _number, "List": _list}
