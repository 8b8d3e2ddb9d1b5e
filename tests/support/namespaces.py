"""Nodes in network namespaces of their own, with a link between each two that can be cut.

A link is a pair of virtual interfaces. To cut it means to let the sending interface drop what it
is given: nothing is refused, packets just do not arrive, in one direction or in both. Clients
live outside and reach every node.

Outside, no address comes or goes: Chromium breaks off all that it loads when one does
(ERR_NETWORK_CHANGED), and tests of pages may run at the same time.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess

OUTSIDE = 254
"""The last number of the clients' address on a machine without one; a node's is its id."""

_numbers = itertools.count(os.getpid() % 10_000)


def why_unavailable() -> str | None:
    """Why this machine does not let us make namespaces; None where it does."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return "network namespaces need `ip` and `tc` (iproute2)"
    name = f"bp{os.getpid()}"
    try:
        _run("ip", "netns", "add", name)
    except PermissionError as error:
        return f"no right to make network namespaces: {error}"
    _run("ip", "netns", "delete", name)
    return None


class Namespace:
    """The place of one node; see `support.cluster_processes.Place`."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host

    def command(self, command: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.name, *command]


class NodeNetwork:
    """Namespaces for nodes 1 to `nodes`. A context manager: they are gone afterwards."""

    def __init__(self, nodes: int) -> None:
        number = next(_numbers)
        self._prefix = f"b{number}"
        self._subnet = f"10.{200 + number // 250 % 50}.{number % 250}"
        self.places = [
            Namespace(f"{self._prefix}n{node_id}", f"{self._subnet}.{node_id}")
            for node_id in range(1, nodes + 1)
        ]
        self._cuts: set[tuple[int, int]] = set()

    def __enter__(self) -> NodeNetwork:
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def cut(self, one: int, other: int) -> None:
        """Nothing arrives between two nodes, in either direction."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, sender: int, receiver: int) -> None:
        """What `sender` sends to `receiver` does not arrive."""
        if (sender, receiver) not in self._cuts:
            self._tc(
                sender, "add", self._interface(sender, receiver), "root", "pfifo", "limit", "0"
            )
            self._cuts.add((sender, receiver))

    def isolate(self, node_id: int) -> None:
        """Cut one node off from all others; clients still reach it."""
        for other in range(1, len(self.places) + 1):
            if other != node_id:
                self.cut(node_id, other)

    def heal(self) -> None:
        """Reconnect all that was cut."""
        for sender, receiver in sorted(self._cuts):
            self._tc(sender, "delete", self._interface(sender, receiver), "root")
        self._cuts.clear()

    def _build(self) -> None:
        outside = own_address()
        for node_id, place in enumerate(self.places, start=1):
            _run("ip", "netns", "add", place.name)
            self._ip(node_id, "link", "set", "lo", "up")
            self._ip(node_id, "address", "add", f"{place.host}/32", "dev", "lo")
            inner, outer = f"{self._prefix}o{node_id}", f"{self._prefix}c{node_id}"
            _run(
                *("ip", "link", "add", outer, "type", "veth"),
                *("peer", "name", inner, "netns", place.name),
            )
            _run("ip", "link", "set", outer, "addrgenmode", "none")  # no address of IPv6
            if outside is None:
                outside = f"{self._subnet}.{OUTSIDE}"
                _run("ip", "address", "add", f"{outside}/32", "dev", outer)
            _run("ip", "link", "set", outer, "up")
            _run("ip", "route", "add", f"{place.host}/32", "dev", outer, "src", outside)
            self._ip(node_id, "link", "set", inner, "up")
            self._route(node_id, outside, inner)
        for one, other in itertools.combinations(range(1, len(self.places) + 1), 2):
            mine, theirs = self._interface(one, other), self._interface(other, one)
            self._ip(
                one,
                *("link", "add", mine, "type", "veth"),
                *("peer", "name", theirs, "netns", self.places[other - 1].name),
            )
            self._ip(one, "link", "set", mine, "up")
            self._ip(other, "link", "set", theirs, "up")
            self._route(one, self.places[other - 1].host, mine)
            self._route(other, self.places[one - 1].host, theirs)

    def _route(self, node_id: int, host: str, interface: str) -> None:
        source = self.places[node_id - 1].host
        self._ip(node_id, "route", "add", f"{host}/32", "dev", interface, "src", source)

    def _interface(self, of: int, towards: int) -> str:
        return f"{self._prefix}v{of}{towards}"

    def _ip(self, node_id: int, *arguments: str) -> None:
        _run("ip", "-netns", self.places[node_id - 1].name, *arguments)

    def _tc(self, node_id: int, verb: str, interface: str, *arguments: str) -> None:
        name = self.places[node_id - 1].name
        _run("tc", "-netns", name, "qdisc", verb, "dev", interface, *arguments)

    def _remove(self) -> None:
        """Deleting a namespace takes its interfaces along, and so their other ends."""
        existing = subprocess.run(
            ["ip", "netns", "list"], capture_output=True, text=True, check=True
        ).stdout.split()
        for place in self.places:
            if place.name in existing:
                _run("ip", "netns", "delete", place.name)


def own_address() -> str | None:
    """The address by which this machine speaks to others, if it has one."""
    done = subprocess.run(
        ["ip", "-4", "-json", "address", "show", "up", "scope", "global"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [info["local"] for link in json.loads(done.stdout) for info in link["addr_info"]]
    return found[0] if found else None


def _run(*command: str) -> None:
    """Raises PermissionError where the system forbids it."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = done.stderr.strip()
        if "not permitted" in message or "denied" in message:
            raise PermissionError(message)
        raise RuntimeError(f"{' '.join(command)}: {message}")
