"""Findings that need attention name only topics that the user may see."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.console.services.cluster import ClusterService, Node, Partition, Sizes, Topic, View
from support.console_world import console


def topic(name: str, leader: int) -> Topic:
    """A topic with one partition, whose second replica is behind."""
    return Topic(name, False, (Partition(0, leader, (1, 2), (1,)),))


@pytest.mark.parametrize(
    ("user", "offline", "behind"),
    [
        ("ann", ["secret-plan", "shop-orders"], ["secret-list", "shop-carts"]),
        ("eve", ["shop-orders"], ["shop-carts"]),
    ],
)
def test_findings_are_of_the_topics_that_a_role_reaches(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    user: str,
    offline: list[str],
    behind: list[str],
) -> None:
    topics = [
        *(topic(name, -1) for name in ("secret-plan", "shop-orders")),
        *(topic(name, 1) for name in ("secret-list", "shop-carts")),
    ]
    nodes = {1: Node(1, "h", 1, None, True), 2: Node(2, "h", 2, None, False)}
    view = View("id", 1, nodes, {one.name: one for one in topics})
    monkeypatch.setattr(ClusterService, "view", lambda _: view)
    monkeypatch.setattr(ClusterService, "sizes", lambda _: Sizes((), {}, {}, {}))
    (tmp_path / "users").write_text("ann: pw,viewer\neve: pw,shop\n")
    values = {
        "bootstrap.servers": "127.0.0.1:1",
        "console.users.file": str(tmp_path / "users"),
        "console.roles.shop.rights": "view",
        "console.roles.shop.topics": "shop-*",
    }
    with console(values) as page:
        page.log_in(user, "pw")
        found = page.get("findings")
    text = " ".join(f"{one['title']} {one['detail']}" for one in found)
    assert {one.name for one in topics if one.name in text} == {*offline, *behind}
    assert f"{len(offline)} partition" in text
    assert "Node 2 is down" in text
