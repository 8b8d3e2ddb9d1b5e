"""Access to the REST interface by the registry's properties, and the shape of its refusals.

`authentication.method=BASIC` asks for a name and password of the file that Jetty's
PropertyFileLoginModule reads, as Confluent's registry does. What it refuses looks as Jetty's
answers do; followers pass a client's login on to the leader.
"""

from typing import Final

from starlette.types import ASGIApp

from barnabas.registry.config import RegistryConfig
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.answers import refusal as answer_of
from barnabas.registry.http.negotiation import V1
from barnabas.web.guard import Refusal, only_loopback
from barnabas.web.login import BasicLogin
from barnabas.web.passwords import REALM, ROLES, SKIP_PATHS, of_properties
from barnabas.web.protection import Origins, Protection, Refused, Rules
from barnabas.web.watch import Watch

PASSWORD_FILE = "barnabas.registry.password.file"
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "HEAD")
_FAULTS: Final = {
    Refusal.OTHER_HOST: (421, "the request is for another host"),
    Refusal.OTHER_ORIGIN: (403, "requests of other origins are not allowed"),
    Refusal.NO_LOGIN: (401, Refusal.NO_LOGIN.value),
    Refusal.NO_RIGHT: (403, Refusal.NO_RIGHT.value),
    Refusal.NO_METHOD: (405, "HTTP 405 Method Not Allowed"),
    Refusal.SLOW_BODY: (408, Refusal.SLOW_BODY.value),
    Refusal.LARGE_BODIES: (503, Refusal.LARGE_BODIES.value),
    Refusal.TOO_MANY_REQUESTS: (503, Refusal.TOO_MANY_REQUESTS.value),
    Refusal.NOT_READY: (503, Refusal.NOT_READY.value),
}


def refused(refusal: Refusal) -> Refused:
    """A refusal as Confluent's error."""
    answer = answer_of(RegistryError(*_FAULTS[refusal]))
    return Refused(answer.status, answer.body, V1)


def protected(app: ASGIApp, config: RegistryConfig, watch: Watch | None = None) -> Protection:
    """The application behind what the properties ask for. Raises ConfigError."""
    is_on_loopback = only_loopback(listener.host for listener in config.listeners)
    passwords = of_properties(config.originals, PASSWORD_FILE)
    login = None
    if passwords is not None:
        login = BasicLogin(
            passwords,
            config.get_str(REALM) or "schema-registry",
            config.get_list(ROLES),
            config.get_list(SKIP_PATHS),
        )
    rules = Rules(
        origins=Origins.of(config.originals, METHODS, ()),
        own_names={config.get_str("host.name").lower()} if is_on_loopback else None,
        login=login,
        watch=watch,
    )
    return Protection(app, refused, rules)
