"""Every page of the console in a browser: both themes, 375 px, keyboard, axe, markup in data.

With `CONSOLE_IMAGES=docs/images/console` and `-m ""` the screenshots of docs/console.md are made
again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import axe_playwright_python
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Browser, Page, expect

from barnabas import Cluster
from barnabas.connect.record import RawRecord
from barnabas.connect.tasks.base import TaskId
from barnabas.console import pages
from barnabas.protocol.errors import ErrorCode
from barnabas.sql.engine.local_runner import LocalQuery
from barnabas.sql.engine.queries import MicroBatch
from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.protection import protected
from support.connect.dead_letters import write_dead_letter
from support.connect.herder_world import SINK, SOURCE
from support.connect.rest_world import RestWorld
from support.console_world import Console, console
from support.hanging_transaction import VERIFICATION, write_hanging
from support.http_server import served
from support.identity_provider import SignOnProvider
from support.patience import PATIENCE_S
from support.registry_thread import registry_of
from support.sql_server_world import SqlWorld

STATIC = Path(pages.__file__).parent / "static"
IMAGES = os.environ.get("CONSOLE_IMAGES")
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
DEAD = "orders-dead"
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
PAGES = [
    ("overview", "/", "Overview"),
    ("topics", "/topics", "Topics"),
    ("messages", "/topics/orders", "orders"),
    ("partitions", "/topics/orders/partitions", "orders"),
    ("settings", "/topics/orders/settings", "orders"),
    ("readers", "/topics/orders/groups", "orders"),
    ("groups", "/groups", "Groups"),
    ("group", "/groups/billing", "billing"),
    ("nodes", "/nodes", "Nodes"),
    ("node", "/nodes/1", "Node 1"),
    ("schemas", "/schemas", "Schemas"),
    ("schema", "/schemas/orders-value?version=2&before=1", "orders-value"),
    ("connectors", "/connectors", "Connectors"),
    ("connector", "/connectors/orders-to-lake", "orders-to-lake"),
    ("dead-letters", "/connectors/orders-to-search", "orders-to-search"),
    ("sql", "/sql?sql=SELECT * FROM orders EMIT CHANGES;", "SQL"),
    ("sql-sources", "/sql/sources", "SQL"),
    ("sql-queries", "/sql/queries", "SQL"),
    ("sql-query", "/sql/queries/CTAS_TOTALS_1", "CTAS_TOTALS_1"),
    ("transactions", "/transactions", "Transactions"),
    ("hanging", "/transactions/hanging?find=1", "Transactions"),
    ("access", "/access?search=billing", "Access"),
    ("users", "/access/users", "Access"),
    ("quotas", "/quotas", "Quotas"),
    ("audit", "/audit", "Audit log"),
]
TYPICAL = frozenset(
    {
        *("overview", "topics", "messages", "group", "node"),
        *("schema", "dead-letters", "sql", "sql-query", "hanging"),
    }
)
"""Each has elements that no other page has; `make test-slow` looks at all pages."""
TIMEOUT_MS = PATIENCE_S * 1000


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RestWorld, str]]:
    """A Connect worker whose tasks do nothing."""
    settings = {"barnabas.connect.restart.enabled": "false"}
    worker = RestWorld(tmp_path_factory.mktemp("connect"), settings)
    with served(worker.app) as url:
        yield worker, url
    worker.close()


@pytest.fixture(scope="module")
def sql() -> Iterator[tuple[SqlWorld, str]]:
    """A SQL server over topics in memory."""
    server = SqlWorld()
    api = KsqlApi(server.engine)
    with served(protected(api.app(), {}, watch=api.watch())) as url:
        yield server, url
    server.engine.close()


@pytest.fixture(scope="module")
def world(connect: tuple[RestWorld, str], sql: tuple[SqlWorld, str]) -> Iterator[Console]:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        VERIFICATION: "false",
    }
    with Cluster(config=config) as cluster, registry_of(cluster.bootstrap_servers) as registry:
        settings = {"bootstrap.servers": cluster.bootstrap_servers}
        fill(settings)
        producer = open_transaction(settings)
        hanging = write_hanging(cluster.bootstrap_servers, "returns", "lost")
        assert hanging == ErrorCode.NONE
        services = {"schema.registry.url": registry, "connect.url": connect[1], "sql.url": sql[1]}
        with console({**settings, **services}) as found:
            secure(found)
            describe(found)
            copy(found, connect[0])
            give_up(found, settings)
            for text in (STREAM, TABLE):
                found.done("POST", "sql/statements", {"sql": text})
            for city, amount in (("Ghent", 3), ("Lyon", 12), ("Porto", 7)):
                sql[0].write("orders", city, {"amount": amount})
            yield found
        del producer


def fill(settings: dict[str, Any]) -> None:
    admin = AdminClient(settings)
    names = {"orders": 3, "payments": 1, "events": 1, "empty": 1, "returns": 1, DEAD: 1}
    made = admin.create_topics([NewTopic(name, count, 1) for name, count in names.items()])
    for future in made.values():
        future.result(60)
    producer = Producer(settings)
    cities = ("Ghent", "Lyon", "Porto", "Turin")
    for number in range(2_000):
        order = {
            "id": number,
            "amount": 1000 if number % 500 == 0 else number % 90,
            "city": cities[number % 4],
        }
        producer.produce("orders", json.dumps(order), f"customer-{number % 40}")
    producer.produce(
        "events", json.dumps({HOSTILE: HOSTILE}), HOSTILE, headers=[(HOSTILE, HOSTILE)]
    )
    producer.produce("events", b"\xff\xfe\x00", HOSTILE)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, "group.id": "billing", "auto.offset.reset": "earliest"})
    places = [TopicPartition("orders", number, 100) for number in range(3)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def open_transaction(settings: dict[str, Any]) -> Producer:
    """A transaction that stays open for as long as the tests may take."""
    more = {"transactional.id": "nightly-report", "transaction.timeout.ms": 900_000}
    producer = Producer({**settings, **more})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("returns", "open")
    assert producer.flush(60) == 0
    return producer


def secure(console: Console) -> None:
    """ACLs, users and quotas to look at."""
    acl = {"resource_type": "TOPIC", "pattern": "LITERAL", "host": "*", "permission": "ALLOW"}
    orders = {**acl, "name": "orders", "principal": "User:billing"}
    console.done("POST", "acls", {**orders, "operations": ["READ", "DESCRIBE"]})
    hostile = {**acl, "name": HOSTILE, "principal": f"User:{HOSTILE}", "pattern": "PREFIXED"}
    console.done("POST", "acls", {**hostile, "permission": "DENY", "operations": ["ALL"]})
    for name in ("billing", HOSTILE):
        console.done("POST", "users", {"name": name, "password": "secret"})
        values = {"producer_byte_rate": 1_048_576, "consumer_byte_rate": 2_097_152}
        console.done("POST", "quotas", {"entity": {"user": name}, "values": values})
    default = {"entity": {"user": None}, "values": {"request_percentage": 50}}
    console.done("POST", "quotas", default)


ORDER_FIELDS = [{"name": "id", "type": "long"}, {"name": "amount", "type": "double"}]


def order(*more: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [*ORDER_FIELDS, *more]})


def describe(console: Console) -> None:
    """Subjects to look at."""
    city = {"name": "city", "type": "string", "default": ""}
    for schema in (order(), order(city)):
        register(console, "orders-value", schema)
    hostile = {"type": "record", "name": "Hostile", "doc": HOSTILE, "fields": []}
    register(console, HOSTILE, json.dumps(hostile))
    register(console, "payments-value", json.dumps("string"))


def register(console: Console, subject: str, schema: str) -> None:
    where = f"schemas/subjects/{quote(subject, safe='')}/versions"
    console.done("POST", where, {"type": "AVRO", "schema": schema})


STREAM = """CREATE STREAM orders (city VARCHAR KEY, amount INT)
    WITH (kafka_topic='orders', value_format='JSON', partitions=1);"""
TABLE = "CREATE TABLE totals AS SELECT city, SUM(amount) AS total FROM orders GROUP BY city;"


def copy(console: Console, worker: RestWorld) -> None:
    """Create connectors for the pages; one of them has a failed task."""
    config = {"connector.class": SOURCE, "topic": "orders", "tasks.max": "2", "wanted.tasks": "2"}
    secret = {"path": "/var/spool/orders", "secret": "never shown"}
    for name in ("orders-to-lake", "customers", HOSTILE):
        body = {"config": {**config, **secret}, "is_new": True}
        console.done("POST", f"connectors/{quote(name, safe='')}/config", body)
    task = worker.herder.engine.tasks[TaskId("orders-to-lake", 1)]
    task.listener.failed(OSError("the bucket lake-eu does not exist"))
    hostile = worker.herder.engine.tasks[TaskId(HOSTILE, 0)]
    hostile.listener.failed(OSError(HOSTILE))


def give_up(console: Console, settings: dict[str, Any]) -> None:
    """A sink with a dead letter queue that holds what it could not write."""
    queue = "errors.deadletterqueue"
    config = {
        "connector.class": SINK,
        "topics": "orders",
        f"{queue}.topic.name": DEAD,
        f"{queue}.context.headers.enable": "true",
    }
    body = {"config": config, "is_new": True}
    console.done("POST", "connectors/orders-to-search/config", body)
    producer = Producer(settings)
    for number, error in enumerate((OSError(HOSTILE), ValueError("amount is not a number"))):
        original = RawRecord(topic="orders", partition=1, value=b'{"id": 7}', offset=number)
        write_dead_letter(producer, DEAD, "orders-to-search", error, original=original)


@pytest.fixture
def page(browser: Browser, world: Console) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    yield page
    context.close()
    # The browser also reports answers that a test provokes; those are not the page's fault.
    assert [one for one in problems if "Failed to load resource" not in one] == []


def show(page: Page, world: Console, path: str, title: str | None = None) -> None:
    page.goto(f"{world.url}/#{path}")
    if title is not None:
        expect(page.locator("h1")).to_have_text(title, timeout=TIMEOUT_MS)
    page.wait_for_selector('[aria-busy="true"]', state="detached")


def picture(page: Page, name: str) -> None:
    """A screenshot, if screenshots are made."""
    if IMAGES:
        place = Path(IMAGES)
        place.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=place / f"{name}.png")


def found_by_axe(page: Page, *rules: str) -> list[str]:
    """What breaks one of these rules, or any rule."""
    page.evaluate(f"{AXE};0")
    options = {"runOnly": rules} if rules else {}
    found: dict[str, Any] = page.evaluate("(options) => axe.run(options)", options)
    return [
        f"{one['id']}: {node['html'][:150]}" for one in found["violations"] for node in one["nodes"]
    ]


def test_every_page_is_among_those_that_are_looked_at() -> None:
    """The pages that the console's frame lists, each with all its tabs."""
    listed = (STATIC / "main.js").read_text().split("const PAGES = [")[1].split("];")[0]
    patterns = [found.replace("\\/", "/") for found in re.findall(r"\[/(\S+)/,", listed)]
    assert len(patterns) > 15
    paths = [path.partition("?")[0] for _, path, _ in PAGES]
    for pattern in patterns:
        seen = [found for path in paths if (found := re.fullmatch(pattern, path))]
        assert seen, pattern
        tabs = re.search(r"\(\?:/\(([a-z|]+)\)\)\?", pattern)
        if tabs:
            wanted = {None, *tabs[1].split("|")}
            assert {found[1] for found in seen} >= wanted, pattern


@pytest.mark.parametrize(
    ("name", "path", "title"),
    [
        pytest.param(*page, id=page[0], marks=[] if page[0] in TYPICAL else pytest.mark.slow)
        for page in PAGES
    ],
)
def test_a_page_in_both_themes_and_on_a_phone(
    page: Page, world: Console, name: str, path: str, title: str
) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        show(page, world, path, title)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        if name == "messages":
            page.wait_for_selector(".virtual-row")
        if scheme == "light" or name == "messages":
            picture(page, f"{name}{'-dark' if scheme == 'dark' else ''}")
        # The themes differ in their colours alone.
        assert found_by_axe(page, *(["color-contrast"] if scheme == "dark" else [])) == []
    page.set_viewport_size({"width": 375, "height": 700})
    show(page, world, path, title)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 375
    assert found_by_axe(page) == []


def test_an_address_without_a_page_leads_to_the_overview(page: Page, world: Console) -> None:
    show(page, world, "/nowhere", "No such page")
    assert found_by_axe(page) == []
    page.get_by_role("link", name="Go to the overview").click()
    expect(page.locator("h1")).to_have_text("Overview")


def test_on_a_phone_words_stay_whole_and_the_menu_shows_the_page(
    page: Page, world: Console
) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    show(page, world, "/topics", "Topics")
    link = page.get_by_role("link", name="payments", exact=True)
    assert link.evaluate("one => one.getClientRects().length") == 1
    show(page, world, "/quotas", "Quotas")
    shown = "one => { const at = one.getBoundingClientRect(); return [at.left, at.right]; }"
    left, right = page.locator("#menu [aria-current]").evaluate(shown)
    assert left >= 0
    assert right < 376  # of 375, of which browsers keep fractions


def test_settings_that_a_node_has_by_default_are_folded_away(page: Page, world: Console) -> None:
    show(page, world, "/nodes/1", "Node 1")
    expect(page.locator("tbody tr", has_text="node.id").first).to_be_visible()
    unset = page.locator("details tbody tr", has_text="log.retention.hours").first
    expect(unset).to_be_hidden()
    page.locator("summary", has_text="defaults").click()
    expect(unset).to_be_visible()


def test_a_file_that_did_not_arrive_is_asked_for_again(page: Page, world: Console) -> None:
    """As when the network changes while a page loads."""
    page.route("**/pages/groups.js", lambda route: route.abort("internetdisconnected"), times=2)
    show(page, world, "/topics", "Topics")


def test_a_page_that_cannot_be_loaded_says_so(browser: Browser, world: Console) -> None:
    page = browser.new_page()
    page.route("**/pages/groups.js", lambda route: route.abort("internetdisconnected"))
    page.goto(f"{world.url}/#/topics")
    expect(page.locator("[role=alert]")).to_contain_text("could not be loaded")
    page.unroute("**/pages/groups.js")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("h1")).to_have_text("Topics")
    page.close()


def test_what_a_list_shows_is_in_its_address(page: Page, world: Console) -> None:
    show(page, world, "/topics", "Topics")
    page.keyboard.press("/")
    page.keyboard.type("pay")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"#/topics\?search=pay$"))
    page.locator("button.sort", has_text="Topic").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    page.locator("#search").fill("nowhere")
    expect(page.locator(".empty")).to_have_text("No topic fits.")
    page.route("**/api/topics?*", lambda route: route.fulfill(status=500, body="<b>no</b>"))
    page.locator("#search").fill("again")
    expect(page.locator(".card.bad")).to_contain_text("the console answered with status 500")
    page.unroute("**/api/topics?*")
    page.locator("#search").fill("payments")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_markup_in_data_stays_text(page: Page, world: Console) -> None:
    show(page, world, "/topics/events", "events")
    expect(page.locator(".virtual-row")).to_have_count(2)
    for row in page.locator(".virtual-row").all():
        row.click()
        expect(page.locator("dialog pre").first).to_contain_text("<img src=x")
        assert page.locator("dialog img, dialog script, main img, main script").count() == 0
        page.get_by_role("button", name="Close").click()
    expect(page).to_have_title(re.compile("^events"))
    show(page, world, f"/topics/{HOSTILE.replace('/', '%2F')}")
    expect(page.locator("[role=alert]")).to_contain_text("there is no topic <img")
    expect(page.get_by_role("tab")).to_have_count(0)
    assert page.locator("main img, main script").count() == 0


def test_bytes_are_shown_with_the_reason(page: Page, world: Console) -> None:
    show(page, world, "/topics/events", "events")
    page.locator(".virtual-row", has_text="ff fe 00").click()
    expect(page.locator("dialog .problem")).to_contain_text("byte 0 is not UTF-8")


def test_a_search_and_a_wrong_one(page: Page, world: Console) -> None:
    show(page, world, "/topics/orders", "orders")
    page.wait_for_selector(".virtual-row")
    page.keyboard.press("/")
    page.keyboard.type("value.amount = 1000")
    page.keyboard.press("Enter")
    expect(page.locator("#filter-problem")).to_contain_text("write '==' (at character 14)")
    assert page.locator("#filter").evaluate("one => one.selectionStart") == 13
    page.locator("#filter").fill("value.amount == 1000")
    page.locator("#find").click()
    expect(page.locator("#status")).to_contain_text("4 matches in 2,000 records")
    expect(page.locator(".virtual-row")).to_have_count(4)
    expect(page).to_have_url(re.compile("filter=value.amount"))
    page.reload()
    expect(page.locator("#status")).to_contain_text("4 matches in 2,000 records")


def test_records_are_produced_and_seen_live(page: Page, world: Console) -> None:
    show(page, world, "/topics/payments", "payments")
    page.locator("#live").click()
    expect(page.locator("#status")).to_contain_text("Live: 0 records")
    world.done("POST", "topics/payments/messages", {"key": "k1", "value": "seen live"})
    expect(page.locator(".virtual-row", has_text="seen live")).to_be_visible()
    page.locator("#stop").click()
    expect(page.locator("#status")).to_contain_text("Stopped after 1 record")
    page.locator("#produce").click()
    page.get_by_label("Key").fill("k2")
    page.get_by_label("Value", exact=True).fill("from the page")
    page.locator("dialog button.main").click()
    expect(page.locator("#said")).to_contain_text("Written to partition 0")
    expect(page.locator(".virtual-row", has_text="from the page")).to_be_visible()


def test_many_rows_are_few_elements(page: Page, world: Console) -> None:
    show(page, world, "/topics/orders?from=oldest", "orders")
    for count in range(200, 2_001, 100):
        page.get_by_role("button", name="Load more").click()
        expect(page.locator("#status")).to_have_text(f"{count:,} records")
    assert page.locator(".virtual-row").count() < 60
    view = page.locator(".virtual")
    view.focus()
    page.keyboard.press("End")
    expect(page.locator('.virtual-row[aria-rowindex="2000"]')).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("dialog h2")).to_contain_text(re.compile("partition \\d, offset"))
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_what_is_lost_is_said_and_the_name_asked_for(page: Page, world: Console) -> None:
    show(page, world, "/topics", "Topics")
    page.get_by_role("button", name="Create a topic").click()
    page.get_by_label("Name").fill("short-lived")
    page.locator("dialog button.main").click()
    expect(page.locator("h1")).to_have_text("short-lived")
    page.get_by_role("button", name="Delete topic").click()
    expect(page.locator("dialog .lost")).to_contain_text("are lost for good")
    go = page.locator("dialog button.danger")
    expect(go).to_be_disabled()
    page.locator("dialog input").fill("short-live")
    expect(go).to_be_disabled()
    page.locator("dialog input").fill("short-lived")
    go.click()
    expect(page.locator("h1")).to_have_text("Topics")
    expect(page.locator("#said")).to_contain_text("short-lived was deleted")


def test_a_reset_is_shown_before_it_is_done(page: Page, world: Console) -> None:
    show(page, world, "/groups/billing", "billing")
    page.get_by_role("button", name="Reset offsets").click()
    page.locator("#plan").click()
    expect(page.locator("dialog .preview")).to_contain_text("300 records will be read again")
    page.get_by_label("Write billing to confirm").fill("billing")
    page.locator("dialog button.danger").click()
    expect(page.locator("#said")).to_contain_text("Offsets of billing were reset")
    expect(page.locator("main h2").first).to_have_text("Lag: 2,000 records")


def test_late_groups_lead_to_the_group(page: Page, world: Console) -> None:
    show(page, world, "/", "Overview")
    late = page.locator("section", has=page.get_by_role("heading", name="Late groups"))
    expect(late.locator("tbody tr").first).to_contain_text("billing")
    expect(late.locator("tbody tr").first).to_contain_text("ago")
    late.get_by_role("link", name="billing").click()
    expect(page.locator("h1")).to_have_text("billing")


def test_pages_of_groups_note_that_a_role_sees_only_some_topics(
    browser: Browser, world: Console, tmp_path: Path
) -> None:
    bootstrap = world.get("nodes")["nodes"][0]
    users = tmp_path / "users"
    users.write_text("eve: pw,pays\n")
    values = {
        "bootstrap.servers": f"{bootstrap['host']}:{bootstrap['port']}",
        "console.users.file": str(users),
        "console.roles.pays.rights": "view,edit",
        "console.roles.pays.topics": "payments",
        "console.roles.pays.groups": "billing",
    }
    with console(values) as guarded:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{guarded.url}/#/")
        page.get_by_label("Name").fill("eve")
        page.get_by_label("Password").fill("pw")
        page.keyboard.press("Enter")
        late = page.locator("section", has=page.get_by_role("heading", name="Late groups"))
        expect(late).to_contain_text("No group has records to read in topics that you may see.")
        expect(late).to_contain_text("Topics that you may not see are not counted.")
        page.goto(f"{guarded.url}/#/groups/billing")
        expect(page.locator("main .card")).to_contain_text("The group has more topics")
        assert found_by_axe(page) == []
        page.get_by_role("button", name="Reset offsets").click()
        expect(page.get_by_label("Topic", exact=True)).to_contain_text("that you may see")
        assert "orders" not in page.locator("main, dialog").all_inner_texts()[0]
        context.close()


def test_markup_in_names_of_the_cluster_stays_text(page: Page, world: Console) -> None:
    for path, title in (("/access", "Access"), ("/access/users", "Access"), ("/quotas", "Quotas")):
        show(page, world, path, title)
        row = page.locator("tbody tr", has_text="<img src=x").first
        expect(row).to_be_visible()
        row.locator("button.danger").click()
        expect(page.locator("dialog .lost")).to_contain_text("<img src=x")
        page.keyboard.press("Escape")
        assert page.locator("main img, main script, dialog img").count() == 0
    expect(page).to_have_title(re.compile("^Quotas"))


def confirm(page: Page, name: str) -> None:
    """Write a name where what is lost is said."""
    go = page.locator("dialog button.danger")
    expect(go).to_be_disabled()
    page.locator("dialog input").fill(name)
    go.click()


def test_acls_are_added_and_removed(page: Page, world: Console) -> None:
    show(page, world, "/access", "Access")
    page.get_by_role("button", name="Add ACLs").click()
    page.get_by_label("Principal").fill("User:short")
    page.locator("dialog").get_by_label("Resource").select_option("GROUP")
    page.locator("dialog").get_by_label("Name").fill("reports")
    page.get_by_label("Operations").select_option(["READ", "DESCRIBE"])
    assert found_by_axe(page) == []
    page.locator("dialog button.main").click()
    expect(page.locator("#said")).to_contain_text("2 added")
    page.locator("#search").fill("short READ")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody tr button.danger").click()
    expect(page.locator("dialog .lost")).to_contain_text("User:short may READ GROUP reports")
    confirm(page, "User:short")
    expect(page.locator("#said")).to_contain_text("The ACL was removed")


def test_a_user_is_created_changed_and_deleted(page: Page, world: Console) -> None:
    show(page, world, "/access/users", "Access")
    page.get_by_role("button", name="Create a user").click()
    page.locator("dialog").get_by_label("Name").fill("short")
    page.locator("dialog").get_by_label("Password").fill("pw-of-short")
    page.locator("dialog button.main").click()
    expect(page.locator("#said")).to_contain_text("short was created")
    row = page.locator("tbody tr", has_text="short")
    row.get_by_role("button", name="Change password").click()
    page.get_by_label("New password").fill("another")
    page.locator("dialog button.main").click()
    expect(page.locator("#said")).to_contain_text("The password of short was changed")
    row.locator("button.danger").click()
    confirm(page, "short")
    expect(page.locator("#said")).to_contain_text("short was deleted")
    assert "pw-of-short" not in page.content()


def test_a_quota_is_set_changed_and_removed(page: Page, world: Console) -> None:
    show(page, world, "/quotas", "Quotas")
    page.get_by_role("button", name="Set a quota").click()
    page.get_by_label("Client id", exact=True).select_option("name")
    page.get_by_label("Client id’s name").fill("short")
    page.get_by_label("producer_byte_rate").fill("1024")
    assert found_by_axe(page) == []
    page.locator("dialog button.main").click()
    row = page.locator("tbody tr", has_text="short")
    expect(row).to_contain_text("producer_byte_rate = 1,024")
    row.get_by_role("button", name="Change").click()
    page.get_by_label("producer_byte_rate").fill("")
    page.get_by_label("consumer_byte_rate").fill("2048")
    page.locator("dialog button.main").click()
    expect(row).to_contain_text("consumer_byte_rate = 2,048")
    expect(row).not_to_contain_text("producer_byte_rate")
    row.locator("button.danger").click()
    confirm(page, "client-id=short")
    expect(page.locator("#said")).to_contain_text("The quotas were removed")
    expect(row).to_have_count(0)


def test_a_schema_is_checked_registered_and_deleted(page: Page, world: Console) -> None:
    show(page, world, "/schemas", "Schemas")
    page.get_by_role("button", name="Register a schema").click()
    page.get_by_label("Subject", exact=True).fill("short-value")
    page.get_by_label("Schema", exact=True).fill(order())
    assert found_by_axe(page) == []
    page.locator("dialog button.main").click()
    expect(page.locator("#said")).to_contain_text("Registered with id")
    expect(page.locator("h1")).to_have_text("short-value")
    page.get_by_role("button", name="Register a version").click()
    expect(page.get_by_label("Schema", exact=True)).to_have_value(re.compile('"amount"'))
    page.get_by_label("Schema", exact=True).fill(order({"name": "city", "type": "string"}))
    page.locator("#check").click()
    expect(page.locator("#checked")).to_contain_text("It may not become the next version.")
    expect(page.locator("#checked li").first).to_contain_text("city")
    assert found_by_axe(page) == []
    page.locator("dialog button.main").click()
    expect(page.locator("dialog .problem")).to_contain_text("incompatible")
    nullable = {"name": "city", "type": ["null", "string"], "default": None}
    page.get_by_label("Schema", exact=True).fill(order(nullable))
    page.locator("#check").click()
    expect(page.locator("#checked")).to_have_text("It may become the next version.")
    page.locator("dialog button.main").click()
    expect(page.locator(".facts")).to_contain_text("2 versions")
    page.get_by_label("Compared with").select_option("1")
    expect(page.locator(".diff .added").first).to_contain_text("+")
    expect(page).to_have_url(re.compile(r"\?version=2&before=1$"))
    page.get_by_role("button", name="Change the level").click()
    page.get_by_label("Level").select_option("FULL")
    page.locator("dialog button.main").click()
    expect(page.locator(".facts")).to_contain_text("compatibility FULL")
    page.get_by_role("button", name="Change the mode").click()
    page.get_by_label("Mode", exact=True).select_option("READONLY")
    page.locator("dialog button.main").click()
    expect(page.locator(".facts")).to_contain_text("mode READONLY")
    page.get_by_role("button", name="Change the mode").click()
    page.get_by_label("Mode", exact=True).select_option("")
    page.locator("dialog button.main").click()
    expect(page.locator(".facts")).to_contain_text("mode READWRITE")
    page.get_by_role("button", name="Delete subject").click()
    expect(page.locator("dialog .lost")).to_contain_text("still decoded by id")
    confirm(page, "short-value")
    page.get_by_role("button", name="Delete for good", exact=True).click()
    expect(page.locator("dialog .lost")).to_contain_text("are lost for good")
    confirm(page, "short-value")
    expect(page.locator("h1")).to_have_text("Schemas")
    expect(page.locator("tbody tr").first).to_be_visible()
    assert page.get_by_role("link", name="short-value").count() == 0


def test_markup_in_schemas_stays_text(page: Page, world: Console) -> None:
    show(page, world, "/schemas", "Schemas")
    page.get_by_role("link", name="<img src=x").click()
    expect(page.locator("pre")).to_contain_text("<script>")
    assert page.locator("main img, main script").count() == 0
    expect(page).to_have_title(re.compile("Schema – Barnabas console$"))


def test_a_connector_is_watched_changed_and_deleted(page: Page, world: Console) -> None:
    config = {"connector.class": SOURCE, "topic": "short", "secret": "never shown"}
    world.done("POST", "connectors/short/config", {"config": config, "is_new": True})
    show(page, world, "/connectors/short", "short")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".facts")).to_contain_text("PAUSED")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".facts")).to_contain_text("RUNNING")
    page.get_by_role("button", name="Restart task 0").click()
    expect(page.locator("#said")).to_contain_text("Restart task 0")
    page.get_by_role("button", name="Change the configuration").click()
    page.get_by_label("topic", exact=True).fill("")
    page.get_by_label("Another setting").fill("wanted.tasks")
    page.get_by_role("button", name="Add a setting").click()
    page.get_by_label("wanted.tasks", exact=True).fill("many")
    page.locator("dialog button.main").click()
    expect(page.locator("dialog .problem", has_text="refuses 2 settings")).to_be_visible()
    wrong = page.get_by_label("wanted.tasks", exact=True)
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(page.locator(f"#{wrong.get_attribute('id')}-said")).to_contain_text("many")
    assert found_by_axe(page) == []
    wrong.fill("1")
    page.get_by_label("topic", exact=True).fill("other")
    page.locator("dialog button.main").click()
    expect(page.locator("#said")).to_contain_text("The configuration of short was changed.")
    expect(page.locator("tr", has_text="wanted.tasks")).to_contain_text("1")
    expect(page.locator("tr", has_text="secret")).to_contain_text("hidden")
    assert "never shown" not in page.content()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("dialog .lost")).to_contain_text("Its offsets stay")
    confirm(page, "short")
    expect(page.locator("h1")).to_have_text("Connectors")
    expect(page.locator("#said")).to_contain_text("short was deleted")


def test_of_two_tabs_that_change_a_connector_the_second_is_asked(
    page: Page, world: Console
) -> None:
    config = {"connector.class": SOURCE, "topic": "first", "secret": "never shown"}
    world.done("POST", "connectors/shared/config", {"config": config, "is_new": True})
    show(page, world, "/connectors/shared", "shared")
    page.get_by_role("button", name="Change the configuration").click()
    other = {**config, "topic": "theirs", "wanted.tasks": "1"}
    world.done("POST", "connectors/shared/config", {"config": other})
    page.get_by_label("topic", exact=True).fill("mine")
    page.locator("dialog button.main").click()
    problem = page.locator("dialog > form > .problem")
    expect(problem).to_contain_text("shared has changed since it was read: topic, wanted.tasks")
    assert found_by_axe(page) == []
    page.locator("#load").click()
    expect(page.locator("dialog")).to_have_count(1)
    expect(page.get_by_label("topic", exact=True)).to_have_value("theirs")
    expect(page.get_by_label("wanted.tasks", exact=True)).to_have_value("1")
    page.get_by_label("topic", exact=True).fill("mine")
    page.locator("dialog button.main").click()
    expect(page.locator("#said")).to_contain_text("The configuration of shared was changed.")
    expect(page.locator("tr", has_text="topic")).to_contain_text("mine")
    world.done("DELETE", "connectors/shared", {"confirm": "shared"})


def test_a_connector_is_created(page: Page, world: Console) -> None:
    show(page, world, "/connectors", "Connectors")
    page.get_by_role("button", name="Create a connector").click()
    page.get_by_label("Name", exact=True).fill("made")
    datagen = "io.confluent.kafka.connect.datagen.DatagenConnector"
    page.locator("dialog select").select_option(datagen)
    page.get_by_role("button", name="Next").click()
    topic = page.get_by_label("kafka.topic", exact=True)
    expect(topic).to_have_attribute("aria-invalid", "true")
    topic.fill("made")
    page.get_by_label("Another setting").fill("quickstart")
    page.get_by_role("button", name="Add a setting").click()
    page.get_by_label("quickstart", exact=True).fill("orders")
    page.locator("#check").click()
    expect(page.locator("dialog .problem", has_text="nothing wrong")).to_be_visible()
    page.locator("dialog button.main").click()
    expect(page.locator("h1")).to_have_text("made")
    expect(page.locator("tr", has_text="connector.class")).to_contain_text(datagen)
    world.done("DELETE", "connectors/made", {"confirm": "made"})


def test_what_failed_is_first_and_markup_stays_text(page: Page, world: Console) -> None:
    show(page, world, "/connectors", "Connectors")
    expect(page.locator("tbody tr").nth(1)).to_contain_text("lake-eu does not exist")
    page.get_by_role("link", name="<img src=x").click()
    expect(page.locator(".card.bad pre")).to_contain_text("<img src=x")
    assert page.locator("main img, main script").count() == 0
    expect(page).to_have_title(re.compile("Connector – Barnabas console$"))


def test_dead_letters_say_why_and_lead_to_their_records(page: Page, world: Console) -> None:
    show(page, world, "/connectors/orders-to-search", "orders-to-search")
    expect(page.locator("main")).to_contain_text(f"{DEAD} holds 2 records.")
    letters = page.get_by_role("region", name="Dead letters").locator("tbody tr")
    expect(letters).to_have_count(2)
    expect(letters.filter(has_text="<img src=x")).to_contain_text("OSError")
    row = letters.filter(has_text="amount is not a number")
    row.locator("summary").click()
    expect(row.locator("pre")).to_contain_text("ValueError: amount is not a number")
    assert page.locator("main img, main script").count() == 0
    assert found_by_axe(page) == []
    row.get_by_role("link", name="orders-1, offset 1").click()
    expect(page.locator("h1")).to_have_text("orders")
    expect(page.locator(".virtual-row").first).to_be_visible()
    page.go_back()
    row.get_by_role("link", name=f"{DEAD}-0, offset 1").click()
    expect(page.locator("h1")).to_have_text(DEAD)
    expect(page.locator("#status")).to_have_text("1 record")
    show(page, world, "/connectors/customers", "customers")
    expect(page.locator("main")).to_contain_text("A source has no dead letter queue")


def test_a_query_is_live_until_it_is_stopped(
    page: Page, world: Console, sql: tuple[SqlWorld, str]
) -> None:
    show(page, world, "/sql", "SQL")
    page.get_by_label("Statement").fill("SELECT * FROM orders EMIT CHANGES;")
    page.locator("#run").click()
    expect(page.locator("tbody tr", has_text="Ghent")).to_contain_text("3")
    expect(page.locator("tbody tr")).to_have_count(3)
    picture(page, "sql-live")
    sql[0].write("orders", HOSTILE, {"amount": 4})
    expect(page.locator("tbody tr", has_text="<img src=x")).to_contain_text("4")
    assert page.locator("main img, main script").count() == 0
    assert found_by_axe(page) == []
    page.locator("#stop").click()
    expect(page.locator("main .status")).to_contain_text("Ended: 4 rows")
    page.get_by_label("Statement").fill("SELECT nothing FROM nowhere EMIT CHANGES;")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".card.bad")).to_contain_text("NOWHERE")
    page.get_by_role("tab", name="Queries").click()
    expect(page.get_by_role("link", name="CTAS_TOTALS_1")).to_be_visible()


def test_a_stream_is_made_and_dropped_by_sql(page: Page, world: Console) -> None:
    show(page, world, "/sql", "SQL")
    editor = page.get_by_label("Statement")
    editor.fill("CREATE STREAM short AS SELECT * FROM orders WHERE amount > 3;")
    page.locator("#run").click()
    expect(page.locator(".card", has_text="Created query with ID")).to_be_visible()
    page.get_by_role("tab", name="Queries").click()
    page.locator("tbody a", has_text="SHORT").click()
    expect(page.get_by_label("Plan", exact=True)).to_contain_text("Topologies")
    name = page.locator("h1").text_content() or ""
    page.get_by_role("button", name="Terminate").click()
    expect(page.locator("dialog .lost")).to_contain_text("SHORT gets no more rows")
    confirm(page, name)
    expect(page.locator("h1")).to_have_text("SQL")
    page.get_by_role("tab", name="Streams and tables").click()
    page.locator("tbody tr", has_text="SHORT").get_by_role("button", name="Drop").click()
    expect(page.locator("dialog .lost")).to_contain_text("its records stay")
    confirm(page, "SHORT")
    expect(page.locator("#said")).to_contain_text("SHORT was dropped")
    page.get_by_role("tab", name="Editor").click()
    page.get_by_label("Statement").fill("DROP STREAM nowhere;")
    page.locator("#run").click()
    expect(page.locator("dialog .lost")).to_contain_text("needs the right “admin”")
    confirm(page, "nowhere")
    expect(page.locator("dialog .problem")).to_contain_text("NOWHERE")


def test_a_query_shows_its_plan_its_lag_and_its_micro_batches(
    page: Page, world: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(page, world, "/sql/queries/CTAS_TOTALS_1", "CTAS_TOTALS_1")
    picture_of = page.get_by_role("img", name="Stream source")
    expect(picture_of).to_have_attribute("aria-label", re.compile("orders.*, after 1.*TOTALS"))
    steps = page.locator(".plan .step text.name").all_text_contents()
    assert (steps[0], steps[-1]) == ("Stream source", "Table sink")
    expect(page.get_by_role("region", name="Lag").locator("tbody tr")).to_contain_text("orders")
    expect(page.locator("main")).to_contain_text("This server reports none: ksqlDB runs queries")
    page.locator("summary", has_text="The plan in words").click()
    expect(page.locator("details p")).to_contain_text("1. Stream source: orders.")
    batches = [MicroBatch(n, 1_000 * n, 50 + n, 7 * n, {"addBatch": 40}) for n in range(1, 4)]
    monkeypatch.setattr(LocalQuery, "batches", lambda _: batches)
    page.reload()
    rows = page.get_by_role("region", name="The last micro-batches").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("53 ms")
    expect(rows.first).to_contain_text("21")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert found_by_axe(page) == []
    page.get_by_role("heading", name="Micro-batches").evaluate("one => one.scrollIntoView()")
    picture(page, "sql-plan")
    page.set_viewport_size({"width": 375, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    # The picture keeps its size, and so its texts; one that is wider is scrolled.
    sizes = "one => [one.getBoundingClientRect().width, Number(one.getAttribute('width'))]"
    shown, natural = page.locator(".plan svg").evaluate(sizes)
    assert shown == natural
    assert found_by_axe(page) == []


def test_the_editor_completes_words_by_the_keyboard(page: Page, world: Console) -> None:
    show(page, world, "/sql", "SQL")
    editor = page.get_by_label("Statement")
    options = page.get_by_role("option")
    editor.focus()
    page.keyboard.type("SELECT * FROM ord")
    expect(options.first).to_contain_text("ORDERS")
    page.keyboard.press("Enter")  # nothing is chosen yet: a new line
    expect(options).to_have_count(0)
    editor.fill("SELECT * FROM ")
    page.keyboard.type("ord")
    expect(options.first).to_contain_text("stream")
    page.keyboard.press("ArrowDown")
    expect(editor).to_have_attribute("aria-activedescendant", "suggestion-0")
    expect(page.locator("[role=status].hidden").first).to_contain_text("suggestion")
    assert found_by_axe(page) == []
    page.keyboard.press("Enter")
    expect(editor).to_have_value("SELECT * FROM ORDERS")
    page.keyboard.type(" o WHERE o.")
    expect(options).to_have_count(2)
    expect(options.nth(1)).to_contain_text("AMOUNT")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(editor).to_have_value("SELECT * FROM ORDERS o WHERE o.AMOUNT")
    page.keyboard.type(" > uca")
    expect(options.first).to_contain_text("function")
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    page.keyboard.press("Control+Space")
    page.keyboard.press("Enter")
    expect(editor).to_have_value("SELECT * FROM ORDERS o WHERE o.AMOUNT > ucase(")
    page.keyboard.type("'sel")
    page.keyboard.press("Control+Space")
    expect(options).to_have_count(0)  # within a string
    editor.fill("sele")
    page.keyboard.press("Control+Space")
    expect(options).to_have_count(1)
    page.set_viewport_size({"width": 375, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert found_by_axe(page) == []
    options.first.click()
    expect(editor).to_have_value("select")
    page.keyboard.press("Tab")
    expect(page.locator("#run")).to_be_focused()


def test_one_of_several_workers_that_is_away_is_a_card(
    browser: Browser, world: Console, connect: tuple[RestWorld, str], tmp_path: Path
) -> None:
    other = RestWorld(tmp_path, {"barnabas.connect.restart.enabled": "false"})
    nowhere = "http://127.0.0.1:1"
    with served(other.app) as url:
        urls = ",".join((nowhere, connect[1], url))
        with console({"bootstrap.servers": "127.0.0.1:1", "connect.url": urls}) as several:
            page = browser.new_page()
            page.set_default_timeout(TIMEOUT_MS)
            for scheme in ("dark", "light"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                page.goto(f"{several.url}/#/connectors")
                expect(page.locator(".card.away")).to_contain_text(nowhere)
                row = page.locator("tbody tr", has_text="orders-to-search")
                expect(row).to_contain_text(connect[1])
                assert found_by_axe(page) == []
            page.set_viewport_size({"width": 375, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth") <= 375
            page.get_by_role("button", name="Create a connector").click()
            page.get_by_label("Name", exact=True).fill("there")
            datagen = "io.confluent.kafka.connect.datagen.DatagenConnector"
            page.get_by_label("Plugin").select_option(datagen)
            assert found_by_axe(page) == []
            page.get_by_label("Worker").select_option(url)
            page.get_by_role("button", name="Next").click()
            page.get_by_label("kafka.topic", exact=True).fill("made")
            page.get_by_label("Another setting").fill("quickstart")
            page.get_by_role("button", name="Add a setting").click()
            page.get_by_label("quickstart", exact=True).fill("orders")
            page.locator("dialog button.main").click()
            expect(page.locator("h1")).to_have_text("there")
            assert other.herder.herder.connectors() == ["there"]
            page.close()
    other.close()


def test_services_that_are_away_are_cards(browser: Browser) -> None:
    nowhere = "http://127.0.0.1:1"
    values = {"schema.registry.url": nowhere, "connect.url": nowhere, "sql.url": nowhere}
    with console({"bootstrap.servers": "127.0.0.1:1", **values}) as away:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        names = {"schemas": "The schema registry", "connectors": "The Connect worker"}
        for path, name in {**names, "sql/sources": "The SQL server"}.items():
            page.goto(f"{away.url}/#/{path}")
            expect(page.locator(".card.away h2").first).to_have_text(f"{name} is away")
            expect(page.locator(".card.away").first).to_contain_text(nowhere)
        page.close()


def test_the_overview_names_what_hangs(page: Page, world: Console) -> None:
    show(page, world, "/", "Overview")
    card = page.locator("section.card.bad", has_text="1 transaction hangs")
    expect(card).to_contain_text("returns-0 from offset")
    assert found_by_axe(page) == []
    card.get_by_role("link", name="Show me").click()
    expect(page.locator("tbody tr", has_text="returns-0")).to_contain_text("777000777")


def test_transactions_are_aborted_once_their_name_is_written(page: Page, world: Console) -> None:
    show(page, world, "/transactions", "Transactions")
    row = page.locator("tbody tr", has_text="nightly-report")
    expect(row).to_contain_text("returns-0")
    row.get_by_role("button", name="Abort").click()
    expect(page.locator("dialog .lost")).to_contain_text("PRODUCER_FENCED")
    confirm(page, "nightly-report")
    expect(page.locator("#said")).to_contain_text("nightly-report was aborted")
    page.get_by_role("tab", name="Hanging").click()
    page.locator("#find-hanging").click()
    row = page.locator("tbody tr", has_text="returns-0")
    expect(row).to_contain_text("1 h")
    row.get_by_role("button", name="Abort").click()
    expect(page.locator("dialog .lost")).to_contain_text("777000777")
    confirm(page, "returns-0")
    expect(page.locator(".empty")).to_have_text("No transaction hangs.")


def test_keys_lead_to_pages(page: Page, world: Console) -> None:
    page.clock.install()
    show(page, world, "/", "Overview")
    page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    pages = {"t": "Topics", "g": "Groups", "n": "Nodes", "x": "Transactions", "a": "Access"}
    for key, title in {
        **pages,
        "q": "Quotas",
        "s": "Schemas",
        "c": "Connectors",
        "o": "Overview",
    }.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(title)
        page.clock.run_for(600)
    page.keyboard.press("g")
    page.clock.run_for(600)  # the second after the g before it is over
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Topics")
    page.keyboard.press("g")
    page.clock.run_for(1_100)
    page.keyboard.press("n")
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.locator("h1")).to_have_text("Quotas")


def test_login_rights_and_a_theme_that_stays(
    browser: Browser, world: Console, tmp_path: Path
) -> None:
    bootstrap = world.get("nodes")["nodes"][0]
    users = tmp_path / "users"
    users.write_text("ann: pw,viewer\n")
    values = {
        "bootstrap.servers": f"{bootstrap['host']}:{bootstrap['port']}",
        "console.users.file": str(users),
    }
    with console(values) as guarded:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{guarded.url}/#/topics/orders")
        expect(page.locator("h1")).to_have_text("Log in")
        assert found_by_axe(page) == []
        page.get_by_label("Name").fill("ann")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("main [role=alert]")).to_have_text("wrong name or password")
        page.get_by_label("Password").fill("pw")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("orders")
        button = page.get_by_role("button", name="Delete topic")
        expect(button).to_be_disabled()
        assert "admin" in (button.get_attribute("title") or "")
        expect(page.locator("#produce")).to_be_disabled()
        assert page.get_by_role("link", name="Audit log").count() == 0
        page.locator("#theme").click()
        page.locator("#theme").click()
        page.reload()
        expect(page.locator("#theme")).to_have_text("Theme: dark")
        page.locator("#logout").click()
        expect(page.locator("h1")).to_have_text("Log in")
        context.close()


def test_a_login_at_an_identity_provider_of_another_site(browser: Browser) -> None:
    with SignOnProvider().serving() as provider:
        assert isinstance(provider, SignOnProvider)
        provider.url = provider.url.replace("127.0.0.1", "localhost")
        values = {
            "bootstrap.servers": "127.0.0.1:1",
            "console.oidc.issuer": provider.url,
            "console.oidc.client.id": "console",
            "console.oidc.client.secret": "top secret",
            "console.oidc.role.viewer": "kafka-admins",
            "console.oidc.label": "Example",
        }
        with console(values) as guarded:
            context = browser.new_context()
            page = context.new_page()
            page.set_default_timeout(TIMEOUT_MS)
            page.goto(f"{guarded.url}/#/topics/orders")
            expect(page.locator("h1")).to_have_text("Log in")
            assert found_by_axe(page) == []
            provider.claims = {"preferred_username": HOSTILE, "groups": []}
            page.get_by_role("link", name="Log in with Example").click()
            expect(page.locator("h1")).to_have_text("The login failed")
            expect(page.locator(".advice")).to_contain_text("kafka-admins")
            assert page.locator("img, script").count() == 0
            assert found_by_axe(page) == []
            provider.claims = {"preferred_username": "ann", "groups": ["kafka-admins"]}
            page.go_back()
            page.get_by_role("link", name="Log in with Example").click()
            expect(page.locator("#top")).to_contain_text("oidc:ann")
            expect(page.locator("h1")).to_have_text("orders")
            expect(page).to_have_url(f"{guarded.url}/#/topics/orders")
            page.reload()
            expect(page.locator("#top")).to_contain_text("oidc:ann")
            page.locator("#logout").click()
            page.wait_for_url(f"{provider.url}/logout?*")
            page.goto(guarded.url)
            expect(page.locator("h1")).to_have_text("Log in")
            context.close()


def test_a_cluster_that_is_away_is_a_card(browser: Browser) -> None:
    with console({"bootstrap.servers": "127.0.0.1:1"}) as away:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{away.url}/#/")
        expect(page.locator(".card.away").first).to_contain_text("127.0.0.1:1")
        expect(page.locator(".card.away h2").first).to_have_text("The cluster is away")
        assert found_by_axe(page) == []
        page.close()
