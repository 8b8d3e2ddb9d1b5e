"""The registry's service in memory: what is appended applies at once.

Several services can share one log. One leads; another one forwards, and sees what was written
when it is asked to catch up, no sooner.
"""

from collections.abc import Callable
from typing import TypeVar

from barnabas.registry import errors
from barnabas.registry.core.decision import Decision, Defaults, Formats, View
from barnabas.registry.errors import RegistryError
from barnabas.registry.service import Done, Forward
from barnabas.registry.store.records import Record
from barnabas.registry.store.state import RegistryState
from support.registry_format import PlainFormats

Response = TypeVar("Response")


class MemoryService:
    """A service over a list of records."""

    def __init__(
        self,
        log: list[Record] | None = None,
        *,
        formats: Formats | None = None,
        defaults: Defaults | None = None,
        is_leader: bool = True,
        leader_url: str | None = None,
    ) -> None:
        self.log = [] if log is None else log
        self.state = RegistryState()
        self.formats: Formats = formats or PlainFormats()
        self.defaults = defaults or Defaults()
        self.is_ready = True
        self.cluster_id = "k"
        self.is_leader = is_leader
        self.leader_url = leader_url
        self.failure: Exception | None = None
        """The errors of the next writes."""
        self.waited_for: list[int | None] = []
        self.is_behind = False
        """True if catching up takes too long."""

    @property
    def view(self) -> View:
        return View(self.state, self.formats, self.defaults)

    async def write(
        self, decide: Callable[[View], Decision[Response]], *, is_large: bool = False
    ) -> Done[Response] | Forward:
        if self.failure is not None:
            raise self.failure
        if not self.is_leader:
            if self.leader_url is None:
                raise RegistryError(errors.UNKNOWN_LEADER, "there is no leader")
            return Forward(self.leader_url)
        self._replay()
        decision = decide(self.view)
        self.log += decision.records
        self._replay()
        return Done(decision.response, self.state.offset)

    async def caught_up(self, offset: int | None = None) -> None:
        self.waited_for.append(offset)
        if self.is_behind:
            raise RegistryError(errors.OPERATION_TIMEOUT, "the view is behind")
        self._replay()

    def _replay(self) -> None:
        for position in range(self.state.offset + 1, len(self.log)):
            record = self.log[position]
            assert self.state.replay(record.key, record.value, position) is None
