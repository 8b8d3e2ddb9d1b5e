"""A client that opens TLS connections, one after the other, and asks each one thing.

`python -m bench.handshake_client PORT CERTIFICATE SECONDS` prints how many a second as JSON. Every
handshake is a whole one: no session is resumed.
"""

import json
import ssl
import sys
import time

from bench.wire import WireClient


def main(port: int, certificate: str, seconds: float) -> None:
    context = ssl.create_default_context(cafile=certificate)
    count = 0
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds:
        with WireClient(port, tls=context) as client:
            client.api_versions()
        count += 1
    json.dump({"connections_s": count / elapsed}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
