"""The registry as the REST interface uses it: reads of committed state, writes by the leader.

`kafka/store.py` is the real one, over `_schemas`; tests of the REST interface have one in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from barnabas.registry.core.decision import Decision, View

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Done(Generic[Response]):
    """A write that is committed and in the view of this instance.

    `offset` is that of the last record that the answer rests on. An instance that forwarded the
    write can wait for it with `Service.caught_up`, so that a client reads what it has written.
    """

    response: Response
    offset: int


@dataclass(frozen=True, slots=True)
class Forward:
    """Another instance leads: ask it. `leader_url` is `http://host:port`, without a slash."""

    leader_url: str


class Service(Protocol):
    """The registry behind the REST interface."""

    @property
    def view(self) -> View:
        """The committed state with formats and defaults, for reads; to be read again each time.

        The state changes between two awaits: a request that reads twice does so without one.
        """

    @property
    def is_ready(self) -> bool:
        """True if the topic has been read to its end and this instance is in its group."""

    @property
    def is_leader(self) -> bool:
        """True if this instance decides on writes."""

    @property
    def leader_url(self) -> str | None:
        """The leader's URL, this instance's own if it leads, None while there is no leader."""

    @property
    def cluster_id(self) -> str:
        """The id of the Kafka cluster, empty while it is not known."""

    async def write(
        self, decide: Callable[[View], Decision[Response]], *, is_large: bool = False
    ) -> Done[Response] | Forward:
        """Decide, append and commit; answers when the committed view holds the records.

        A decision that takes long, `is_large`, is taken in a thread; later ones wait for it.

        `decide` is one of the decisions of `core`, with its arguments bound; its RegistryError is
        raised here. It is called again when it is known that nothing of it was stored: brokers
        failed, or leaders changed. Also raises RegistryError: 50001 if brokers refuse the records
        or this instance cannot write, 50002 if the write is not confirmed within
        `kafkastore.timeout.ms` (it may be stored), 50004 if there is no leader.
        """

    async def caught_up(self, offset: int | None = None) -> None:
        """Wait until the view holds an offset, or all that is committed now if None.

        Raises RegistryError 50002 after `kafkastore.timeout.ms`.
        """
