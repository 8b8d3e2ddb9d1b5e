"""A headless Chromium, and one finished run of the demo to look at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from barnabas.demo.commands import MissingError, check_requirements
from support.dashboard_page import Dashboard
from support.patience import PATIENCE_S

# The headless shell takes half of the processor time of the whole browser.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DEMO_SECONDS = 10


@pytest.fixture(scope="module")  # while it is open, an event loop runs in the main thread
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no browser: apt-get install chromium-headless-shell, or set CHROMIUM")
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    made = Dashboard()
    made.state.set_connection("connected")
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, dashboard: Dashboard) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(dashboard.url)
    page.wait_for_selector("body[data-version]")
    yield page
    page.close()


@dataclass
class FinishedDemo:
    """The files of a bounded run. `outcome` is its output with --json."""

    directory: Path
    exit_code: int
    outcome: dict[str, Any]
    progress: str
    truth: dict[str, Any]


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedDemo]:
    """A run like that of `make demo SECONDS=…`: without a terminal, in its own directory."""
    try:
        check_requirements()
    except MissingError as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("run") / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "demo", "--json", "--directory", str(directory)],
        capture_output=True,
        text=True,
        # Iceberg's Spark would take half as long again; tests/clients/test_demo_resume.py has it.
        env={**os.environ, "SECONDS": str(DEMO_SECONDS), "WAREHOUSE": "parquet"},
        timeout=280,
        check=False,
    )
    assert done.stdout, done.stderr
    truth = json.loads((directory / "generators" / "truth.json").read_text())
    yield FinishedDemo(directory, done.returncode, json.loads(done.stdout), done.stderr, truth)
    # If the tests run as root, PostgreSQL's user may not enter their directories.
    settings = json.loads((directory / "demo.json").read_text())
    if settings["database_directory"]:
        shutil.rmtree(settings["database_directory"])
