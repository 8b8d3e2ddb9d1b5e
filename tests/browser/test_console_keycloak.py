"""The console's login by Keycloak, through Keycloak's own pages.

With `KEYCLOAK_HOME=/opt/keycloak-26.4.7`; its distribution is org.keycloak:keycloak-quarkus-dist.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.console_world import console
from support.keycloak import SECRET, Keycloak, keycloak, needs_keycloak
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), needs_keycloak]
TIMEOUT_MS = PATIENCE_S * 1000


@pytest.fixture(scope="module")
def url() -> str:
    """The console's address, which Keycloak knows before the console starts."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory, url: str) -> Iterator[Keycloak]:
    with keycloak(tmp_path_factory.mktemp("keycloak"), url) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    yield page
    context.close()


def settings(provider: Keycloak, url: str, secret: str = SECRET) -> dict[str, str]:
    return {
        "bootstrap.servers": "127.0.0.1:1",
        "listeners": url,
        "console.oidc.issuer": provider.issuer,
        "console.oidc.client.id": "console",
        "console.oidc.client.secret": secret,
        "console.oidc.label": "Keycloak",
        "console.oidc.role.admin": "kafka-admins",
        "console.oidc.role.viewer": "kafka-users",
    }


def log_in(page: Page, url: str, name: str, password: str | None = None) -> None:
    """From the console's page to Keycloak's, and perhaps back."""
    page.goto(f"{url}/#/audit")
    page.locator("#provider").click()
    page.locator("#username").fill(name)
    page.locator("#password").fill(f"{name}'s" if password is None else password)
    page.locator("#kc-login").click()


def rights(page: Page) -> list[str]:
    """Of the user that the browser is logged in as; none of nobody."""
    found: list[str] = page.evaluate(
        "fetch('api/me').then((answer) => answer.json()).then(({ rights }) => rights ?? [])"
    )
    return found


def test_a_user_logs_in_stays_and_logs_out(provider: Keycloak, url: str, page: Page) -> None:
    with console(settings(provider, url)):
        log_in(page, url, "ann", "wrong")
        expect(page.locator("body")).to_contain_text("Invalid username or password")
        log_in(page, url, "ann")
        expect(page.locator("h1")).to_have_text("Audit log")
        first_ms = provider.used_ms("ann")

        def has_another_token() -> bool:
            assert "admin" in rights(page)
            return provider.used_ms("ann") > first_ms

        wait_until(has_another_token, "another ID token, as the first expires")
        page.locator("#logout").click()
        expect(page.locator("#provider")).to_be_visible()
        assert rights(page) == []
        # The session at Keycloak has ended too: it asks for the password again.
        page.locator("#provider").click()
        expect(page.locator("#password")).to_be_visible()


def test_roles_are_those_of_groups(provider: Keycloak, url: str, page: Page) -> None:
    with console(settings(provider, url)):
        log_in(page, url, "vic")
        expect(page.locator("#logout")).to_be_visible()
        assert rights(page) == ["view", "read"]


def test_a_user_without_a_group_sees_what_is_missing(
    provider: Keycloak, url: str, page: Page
) -> None:
    with console(settings(provider, url)):
        log_in(page, url, "nemo")
        expect(page.locator("main")).to_contain_text("nemo, but have no role here")
        expect(page.locator("main")).to_contain_text("kafka-admins, kafka-users")


def test_a_session_that_ends_at_keycloak_ends_here(
    provider: Keycloak, url: str, page: Page
) -> None:
    with console(settings(provider, url)):
        log_in(page, url, "ann")
        expect(page.locator("#logout")).to_be_visible()
        provider.log_out("ann")
        wait_until(lambda: rights(page) == [], "the end of the session here")


def test_a_wrong_secret_lets_nobody_in(provider: Keycloak, url: str, page: Page) -> None:
    with console(settings(provider, url, "another")):
        log_in(page, url, "ann")
        expect(page.locator("main")).to_contain_text("did not accept the login’s code")
        expect(page.locator("main")).to_contain_text("client id, secret or address differ")
        assert rights(page) == []
