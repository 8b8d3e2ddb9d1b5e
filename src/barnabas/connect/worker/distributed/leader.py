"""The work of the group's leader: it alone writes configurations, and renews the key.

Source: org.apache.kafka.connect.runtime.distributed.DistributedHerder: checkForKeyRotation,
writeToConfigTopicAsLeader (Kafka 4.3).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping

from barnabas.connect.errors.requests import BadRequestError, ElsewhereError, RequestError
from barnabas.connect.worker.distributed.config_topic import ConfigTopic, FencedError
from barnabas.connect.worker.distributed.group_messages import SESSIONED_VERSION
from barnabas.connect.worker.distributed.position import Position
from barnabas.connect.worker.distributed.records import SessionKey
from barnabas.connect.worker.distributed.signatures import (
    SignatureError,
    SigningRules,
    check,
)
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)


class Leader:
    """Knows whether this worker leads; `version` is that of the group's protocol."""

    def __init__(
        self,
        position: Position,
        topic: ConfigTopic,
        signing: SigningRules,
        version: Callable[[], int],
    ) -> None:
        self.signing = signing
        self._position = position
        self._topic = topic
        self._version = version
        self._is_fenced = False

    def begin(self) -> None:
        """This worker leads, perhaps as before."""
        try:
            self._topic.claim_writes()
            self._is_fenced = False
        except ConnectError as error:
            _log.error("this worker leads, and cannot write configurations yet: %s", error)
            self._is_fenced = True
        self._renew_key()

    def tend(self) -> None:
        """Periodic work."""
        if not self._position.is_leader:
            return
        if self._is_fenced:
            self.begin()
        else:
            self._renew_key()

    def need(self, text: str) -> None:
        """Raises ElsewhereError where another worker leads."""
        if not self._position.is_leader:
            raise ElsewhereError(text, self._position.leader_url)

    def write(self, write: Callable[[], None]) -> None:
        """Write to the config topic. Raises ConnectError."""
        try:
            write()
        except FencedError as error:
            self._is_fenced = True
            raise ConnectError(
                "Failed to write to config topic; this may be due to a transient error and the "
                "request can be safely retried"
            ) from error

    def _renew_key(self) -> None:
        """Give the group a key to sign with."""
        position = self._position
        if self._version() < SESSIONED_VERSION or self._is_fenced:
            return
        if position.session_key is None:
            position.session_key = position.state.session_key
        now_ms = int(time.time() * 1000)
        if not self.signing.must_renew(position.session_key, now_ms):
            return
        data = secrets.token_bytes(self.signing.key_length_bytes)
        key = SessionKey(data, self.signing.key_algorithm, now_ms)
        try:
            self.write(lambda: self._topic.put_session_key(key))
            position.session_key = key
        except ConnectError as error:
            _log.info("the group has no new session key yet: %s", error)

    def key(self) -> SessionKey | None:
        """Return what requests to other workers are signed with."""
        return None if self._version() < SESSIONED_VERSION else self._position.session_key

    def check_signature(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Check a request of another worker. Raises RequestError."""
        if self._version() < SESSIONED_VERSION:
            return
        try:
            check(self.signing, self._position.session_key, body, headers)
        except SignatureError as error:
            if error.status == 400:
                raise BadRequestError(str(error)) from error
            raise RequestError(str(error), error.status) from error
