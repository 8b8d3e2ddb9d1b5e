"""What one OffsetCommit costs the broker: `python -m bench.commit_cost` takes seconds.

A bare client with some connections, each with a group of its own and one commit under way, as in
`bench.commit_client`. Microseconds of the broker's processor time, user and system. `--profile`
runs Barnabas under cProfile and prints where they go (slower, but the shares hold).
"""

import argparse
import pstats
import selectors

from bench.barnabas_server import BarnabasServer
from bench.commit_client import CONNECTIONS, await_coordinator, commit_frame
from bench.kafka_server import KafkaServer
from bench.measure import cpu_seconds
from bench.request_cost import PROFILE_ROWS, ProfiledServer
from bench.server import Server
from bench.settings import Settings
from bench.wire import WireClient, produce_first

TOPIC = "cost"
WARM_UP_COMMITS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.commit_cost")
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka instead")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument("--commits", type=int, default=20_000)
    options = parser.parse_args()
    directory = Settings().directory / "commit-cost"
    server: Server
    if options.kafka:
        server = KafkaServer(directory)
    else:
        server = ProfiledServer(directory) if options.profile else BarnabasServer(directory)
    with server:
        server.format()
        server.start()
        produce_first(server.port, TOPIC)
        cost = _measure(server, options.commits)
        print(f"{cost:7.1f} µs of CPU a commit", flush=True)
        server.stop()
        if isinstance(server, ProfiledServer):
            pstats.Stats(str(server.profile)).sort_stats("tottime").print_stats(PROFILE_ROWS)


def _measure(server: Server, commits: int) -> float:
    """Microseconds of the broker's processor time a commit."""
    clients = [WireClient(server.port) for _ in range(CONNECTIONS)]
    selector = selectors.DefaultSelector()
    for number, client in enumerate(clients):
        await_coordinator(client, number, TOPIC)
        frame = commit_frame(f"bench-commits-{number}", TOPIC)
        selector.register(client.socket, selectors.EVENT_READ, (client, frame))
        client.socket.sendall(frame)
    _pump(selector, WARM_UP_COMMITS)
    before = cpu_seconds(server.pid)
    _pump(selector, commits)
    cost = (cpu_seconds(server.pid) - before) / commits * 1e6
    for client in clients:
        client.close()
    return cost


def _pump(selector: selectors.BaseSelector, commits: int) -> None:
    """Answer responses with the next requests until so many have come."""
    answered = 0
    while answered < commits:
        for key, _ in selector.select(1.0):
            client, frame = key.data
            client.receive(int.from_bytes(client.receive(4), "big"))
            client.socket.sendall(frame)
            answered += 1


if __name__ == "__main__":
    main()
