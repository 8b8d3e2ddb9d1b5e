"""What the console's pages take: `python -m bench.console_speed`.

A node with 10,000 partitions and a console run in separate processes:

- the first page: from the request for the page to its last answer, of a console that has just
  started (nothing is kept), and of one that has been asked before;
- a search of 1,000,000 Avro records that matches none, and the memory that the console takes
  during it. Beside it a plain consumer in a separate process, which decodes each value with the
  console's own decoder: the ratio is what filters and the way through HTTP cost. The ratio of their
  processor times tells more where the machine has other work;
- 50 people who look at pages at once, each at its own connection, without a pause.
"""

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from fastavro import parse_schema, schemaless_writer

from barnabas.console.services.decoding import Decoder
from barnabas.schemas.registry_client import RegistryClient
from bench.barnabas_server import COMMAND, BarnabasServer
from bench.machine import describe_machine
from bench.measure import cpu_seconds, percentile, wait_until
from bench.server import free_ports
from bench.settings import Settings
from bench.wire import produce_first

TOPIC = "orders"
PARTITIONS_OF_TOPIC = 100
TOPICS_TOGETHER = 20
"""One request may make 10,000 metadata records at most."""
PARTITIONS_SEARCHED = 4
SCHEMA_ID = 1
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "city", "type": "string"},
        {"name": "customer", "type": "string"},
    ],
}
FIRST_PAGE = ("findings", "overview", "late-groups")
"""The requests that the overview sends at once, after it knows the user (`me`)."""
PAGES = (
    *(f"/api/{name}" for name in FIRST_PAGE),
    "/api/topics?size=50",
    f"/api/topics/{TOPIC}",
    f"/api/topics/{TOPIC}/partitions",
    "/api/groups?size=50",
    "/api/nodes",
)
TURNS = 10
PEOPLE = 50
PEOPLE_S = 30.0
START_S = 120.0
PLAIN = "plain"


def main() -> None:
    if sys.argv[1:2] == [PLAIN]:
        print(json.dumps(plain_consumer(*sys.argv[2:5])))
        return
    parser = argparse.ArgumentParser(prog="python -m bench.console_speed")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=PEOPLE)
    options = parser.parse_args()
    found: dict[str, float] = {"load_before": os.getloadavg()[0]}
    directory = Settings().directory / "console-speed"
    shutil.rmtree(directory, ignore_errors=True)
    with BarnabasServer(directory) as server, registry() as registry_url:
        server.format()
        server.start()
        produce_first(server.port, "first")
        servers = f"127.0.0.1:{server.port}"
        create(servers, options.partitions)
        fill(servers, options.records)
        found |= first_pages(servers, registry_url, directory)
        with console(servers, registry_url, directory) as (port, pid):
            found |= search(port, pid)
            plain = asked_plain(servers, registry_url)
            found |= {f"plain_{name}": figure for name, figure in plain.items()}
            found["search_ratio"] = found["search_records_s"] / plain["records_s"]
            found["search_cpu_ratio"] = plain["cpu_us"] / found["search_cpu_us"]
            found |= people(port, pid, options.people)
        server.stop()
    found["load_after"] = os.getloadavg()[0]
    for name, fact in describe_machine().items():
        print(f"{name:24} {fact}")
    for name, figure in found.items():
        print(f"{name:24} {figure:14,.3f}")


# -- a cluster and what is in it


def create(servers: str, partitions: int) -> None:
    """Topics with so many partitions in all, and the one that is searched."""
    admin = AdminClient({"bootstrap.servers": servers})
    count = -(-partitions // PARTITIONS_OF_TOPIC)
    made = [NewTopic(f"topic-{number:03}", PARTITIONS_OF_TOPIC, 1) for number in range(count)]
    made.append(NewTopic(TOPIC, PARTITIONS_SEARCHED, 1))
    for start in range(0, len(made), TOPICS_TOGETHER):
        asked = admin.create_topics(made[start : start + TOPICS_TOGETHER])
        for future in asked.values():
            future.result(START_S)

    def are_led() -> bool:
        topics = admin.list_topics(timeout=30).topics
        found = [part.leader for topic in topics.values() for part in topic.partitions.values()]
        return len(found) >= partitions and min(found) >= 0

    wait_until(are_led, START_S, "leaders of all partitions")


def fill(servers: str, records: int) -> None:
    """Avro records in Confluent's wire format."""
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 50, "batch.num.messages": 10_000}
    )
    schema = parse_schema(SCHEMA)
    head = b"\0" + SCHEMA_ID.to_bytes(4, "big")
    for number in range(records):
        value = BytesIO(head)
        value.seek(len(head))
        city = ("Ghent", "Lyon", "Porto", "Turin")[number % 4]
        order = {"id": number, "amount": number % 900 / 7, "city": city, "customer": f"c-{number}"}
        schemaless_writer(value, schema, order)
        while True:
            try:
                producer.produce(TOPIC, value.getvalue(), partition=number % PARTITIONS_SEARCHED)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(START_S):
        raise RuntimeError("the records were not written in time")


@contextlib.contextmanager
def registry() -> Iterator[str]:
    """The one answer of a registry that this needs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"schema": json.dumps(SCHEMA)}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/vnd.schemaregistry.v1+json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def console(servers: str, registry_url: str, directory: Path) -> Iterator[tuple[int, int]]:
    """A console that answers; its port and process id."""
    (port,) = free_ports(1)
    arguments = ["--bootstrap-servers", servers, "--registry-url", registry_url]
    arguments += ["--listeners", f"http://127.0.0.1:{port}"]
    with (directory / "console.log").open("ab") as log:
        process = subprocess.Popen(
            [COMMAND, "console", *arguments], stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until(lambda: is_there(port), START_S, "the console")
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(START_S)


def is_there(port: int) -> bool:
    try:
        return ask(port, "/health/live").status == 200
    except OSError:
        return False


def ask(port: int, path: str) -> http.client.HTTPResponse:
    """The whole answer, at a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


# -- what is measured


def first_pages(servers: str, registry_url: str, directory: Path) -> dict[str, float]:
    """Seconds of the overview: of a new console in each turn, then of one that was asked before."""
    cold, warm = [], []
    for _ in range(TURNS):
        with console(servers, registry_url, directory) as (port, _pid):
            cold.append(overview_s(port))
            warm.append(overview_s(port))
    return {
        "first_page_s": statistics.median(cold),
        "first_page_max_s": max(cold),
        "next_page_s": statistics.median(warm),
    }


def overview_s(port: int) -> float:
    """The page, who looks, then all that it shows, asked at once as the browser does."""
    began = time.perf_counter()
    for path in ("/", "/main.js", "/style.css", "/api/me"):
        checked(ask(port, path))
    with ThreadPoolExecutor(len(FIRST_PAGE)) as pool:
        for answer in pool.map(lambda name: ask(port, f"/api/{name}"), FIRST_PAGE):
            checked(answer)
    return time.perf_counter() - began


def checked(answer: http.client.HTTPResponse) -> None:
    if answer.status != 200:
        raise RuntimeError(f"the console answered {answer.status}")


def search(port: int, pid: int) -> dict[str, float]:
    """Records a second of a search without a match, and the console's memory while it ran."""
    before_mb, before_s = resident_mb(pid), cpu_seconds(pid)
    query = urlencode({"filter": "value.amount > 1000000", "from": "oldest"})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    began = time.perf_counter()
    connection.request("GET", f"/api/topics/{TOPIC}/search?{query}")
    answer = connection.getresponse()
    checked(answer)
    most_mb = before_mb
    last: dict[str, Any] = {}
    for line in answer:
        most_mb = max(most_mb, resident_mb(pid))
        told = json.loads(line)
        if "error" in told:
            raise RuntimeError(str(told["error"]))
        last = told.get("progress", last)
    seconds = time.perf_counter() - began
    connection.close()
    if not last.get("is_done") or last["matches"]:
        raise RuntimeError(f"the search ended with {last}")
    return {
        "search_records": last["scanned"],
        "search_s": seconds,
        "search_records_s": last["scanned"] / seconds,
        "search_cpu_us": (cpu_seconds(pid) - before_s) / last["scanned"] * 1e6,
        "search_memory_before_mb": before_mb,
        "search_memory_max_mb": most_mb,
    }


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has no resident memory")


def asked_plain(servers: str, registry_url: str) -> dict[str, float]:
    """What the plain consumer takes, in a process of its own."""
    command = [sys.executable, "-m", "bench.console_speed", PLAIN, servers, registry_url, TOPIC]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3600)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def plain_consumer(servers: str, registry_url: str, topic: str) -> dict[str, float]:
    """Read and decode a topic to its end: records a second, and processor time of each."""
    decoder = Decoder(RegistryClient([registry_url]))
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "plain",
            "enable.auto.commit": False,
            "check.crcs": False,
        }
    )
    places = [TopicPartition(topic, number, 0) for number in range(PARTITIONS_SEARCHED)]
    total = sum(consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)
    began, began_cpu_s = time.perf_counter(), time.process_time()
    consumer.assign(places)
    count = 0
    while count < total:
        for message in consumer.consume(1000, 1.0):
            if message.error() is None:
                value: Any = message.value()
                decoder.value(value, (), is_key=False)
                count += 1
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu_s
    consumer.close()
    return {"records_s": count / seconds, "cpu_us": cpu_s / count * 1e6}


def people(port: int, pid: int, count: int) -> dict[str, float]:
    """Milliseconds of pages while so many people look at them, one after the other each."""
    stopping = threading.Event()
    times: list[list[float]] = [[] for _ in range(count)]
    failures: list[str] = []

    def look(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
        turn = number
        try:
            while not stopping.is_set():
                path = PAGES[turn % len(PAGES)]
                began = time.perf_counter()
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                times[number].append((time.perf_counter() - began) * 1000)
                if answer.status != 200:
                    failures.append(f"{path}: {answer.status}")
                turn += 1
        except OSError as error:
            failures.append(str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=look, args=(number,)) for number in range(count)]
    before_s, began = cpu_seconds(pid), time.perf_counter()
    for thread in threads:
        thread.start()
    time.sleep(PEOPLE_S)
    stopping.set()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    if failures:
        raise RuntimeError(f"{len(failures)} pages failed, the first: {failures[0]}")
    ordered = sorted(one for own in times for one in own)
    return {
        "people": count,
        "people_pages_s": len(ordered) / seconds,
        "people_p50_ms": percentile(ordered, 0.5),
        "people_p99_ms": percentile(ordered, 0.99),
        "people_max_ms": ordered[-1],
        "people_cpu_cores": (cpu_seconds(pid) - before_s) / seconds,
    }


if __name__ == "__main__":
    main()
