"""docs/secure-cluster.md as printed: its file and its commands, on free ports of this machine."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.node_process import wait_until
from support.ports import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "secure-cluster.md").read_text()
SHELL = [text for kind, text in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL) if kind == "sh"]
FILES = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
BARNABAS = f"{shlex.quote(sys.executable)} -m barnabas"
NODES = ("1", "2", "3")


class Page:
    """The page's commands and files, with this machine's addresses, directories and ids."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ports = {(node, port): free_port() for node in NODES for port in ("9092", "9093")}
        self._ids = {f"DIR{node}": self._random_id() for node in NODES}
        self._ids["CLUSTER"] = self._random_id()

    def text(self, text: str, node: str = "1") -> str:
        home = self.directory / f"node-{node}"
        for (of, port), here in self._ports.items():
            text = text.replace(f"host{of}:{port}", f"127.0.0.1:{here}")
        text = re.sub(r"\bhost[123]\b", "127.0.0.1", text)
        text = re.sub(r"\b(?:DIR[123]|CLUSTER)\b", lambda found: self._ids[found[0]], text)
        return text.replace("/etc/barnabas", str(home)).replace("/var/lib/barnabas", f"{home}/data")

    def run(self, text: str, node: str = "1") -> str:
        """Run lines of a shell to their end; fails if any of them does."""
        script = re.sub(
            r"(^|\| )barnabas ", rf"\1{BARNABAS} ", self.text(text, node), flags=re.MULTILINE
        )
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def make_home(self, node: str) -> None:
        """Create a node's directory with the files that the page copies and writes to it."""
        home = self.directory / f"node-{node}"
        home.mkdir()
        shutil.copy(self.directory / "certificates" / "ca.pem", home)
        shutil.copy(self.directory / "certificates" / f"node-{node}.pem", home / "node.pem")
        changed = FILES[0].replace("node.id=1", f"node.id={node}")
        changed = re.sub(
            r"^listeners=.*$",
            lambda found: found[0].replace("host1", f"host{node}"),
            changed,
            flags=re.MULTILINE,
        )
        (home / "server.properties").write_text(self.text(changed, node))

    @contextmanager
    def started(self, line: str, node: str) -> Iterator[None]:
        words = shlex.split(self.text(line, node).replace("barnabas ", f"{BARNABAS} ", 1))
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
            try:
                yield
            finally:
                process.terminate()

    def _random_id(self) -> str:
        return subprocess.run(
            [sys.executable, "-m", "barnabas", "storage", "random-uuid"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()


def test_the_page_gives_a_cluster_that_refuses_what_no_acl_allows(tmp_path: Path) -> None:
    page = Page(tmp_path)
    certificates, formatting, first_steps = SHELL
    page.run(certificates)
    formatted, start = formatting.rsplit("barnabas start", 1)
    with ExitStack() as nodes:
        for node in NODES:
            page.make_home(node)
            page.run(formatted, node)
            nodes.enter_context(page.started(f"barnabas start{start}", node))
        (tmp_path / "admin.properties").write_text(page.text(FILES[1]))
        login = "export BARNABAS_COMMAND_CONFIG=admin.properties\n"

        def all_run() -> bool:
            status = "barnabas cluster status --timeout 5 >status.txt 2>&1 && echo fine || true"
            return page.run(login + status) == "fine\n"

        wait_until(all_run, "three nodes without a problem", shown=lambda: _text(tmp_path))
        shown = page.run(first_steps)
        found = re.search(r"password:? (\S+)", shown, re.IGNORECASE)
        assert found is not None, shown
        shop = FILES[1].replace('"admin"', '"shop"').replace("admin-secret", found[1])
        (tmp_path / "shop.properties").write_text(page.text(shop))
        as_shop = "--command-config shop.properties"

        def is_written() -> bool:
            said = page.run(f"echo hello | barnabas produce orders {as_shop} 2>&1 || true")
            return "1 record sent" in said

        def is_read() -> bool:
            read = f"barnabas consume orders --group reports -n 1 {as_shop} 2>/dev/null || true"
            return page.run(read) == "hello\n"

        # Each node hears of the user, and of what the user may do, in its own time.
        wait_until(is_written, "a record of the user's")
        wait_until(is_read, "the record")
        refused = page.run(f"barnabas produce other -v x {as_shop} 2>&1 || echo refused")
        assert "TOPIC_AUTHORIZATION_FAILED" in refused
        assert "refused" in refused


def _text(directory: Path) -> str:
    return (directory / "status.txt").read_text()
