"""franz-go: its own suite, and records that are copied in transactions.

Its suite runs on three nodes alone, where it takes minutes: `make test-cluster`, in plain text,
with a login by SCRAM over TLS, and with certificates. As upstream runs it, each topic has half a
million records; `KGO_TEST_RECORDS` says how many it has here, and `BARNABAS_TEST_REPEATS` how often
the suite runs, on the same cluster. `BARNABAS_TEST_FRANZ_GO` is an expression that selects some of
its tests.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from client_cluster import NODES, SECURITY
from test_transactions import read

import barnabas
from barnabas.app.testing import Kafka
from support import client_logins
from support.foreign_programs import Insertion, go_program, go_suite, output_of
from support.patience import PATIENCE_S

PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
SUITE_RECORDS = "50000"
SUITE_TIMEOUT_S = 1200
OUTPUT_SHOWN = 20_000
COPIED = 300
PARTITIONS = 3
BUILD_TIMEOUT_S = 900
ENDS_EARLY = "Test848RegexBrokerResolves"
"""It stops reading at the second topic, which may be `__consumer_offsets` (an expression matches
internal topics too), and demands two others: it fails now and then."""
SETS_NO_TLS = "TestIssue769"
"""The test uses its own dialer, with which the client accepts no TLS settings."""
LOGS_IN = Insertion(
    "github.com/twmb/franz-go",
    "pkg/kgo/helpers_test.go",
    "\t\topts = append(opts, DialTLSConfig(testCert))\n\t}\n",
    "\tif saslScram != nil {\n\t\topts = append(opts, SASL(saslScram))\n\t}\n",
)
"""Its clients take TLS settings from the environment, but a login in two tests alone."""
GIVES_UP_LATE = Insertion(
    "github.com/twmb/franz-go",
    "pkg/kgo/share_test.go",
    '\t\t\t"share.record.lock.duration.ms", "15000",\n',
    '\t\t\t"share.delivery.count.limit", "10",\n',
)
"""Members of its share groups release records, and leave with others that they never looked at. So
a record is now and then delivered as often as a group allows by default (5) and accepted by nobody:
the broker gives it up, as Apache Kafka does, and the test waits for it in vain. Ten is the most
that a group may set. A record that is lost for another reason still fails the test."""
REPEATS = int(os.environ.get("BARNABAS_TEST_REPEATS", "1"))
ON_THREE = "takes minutes: make test-cluster runs it"


@pytest.fixture(scope="module")
def chain() -> Path:
    """The program that copies."""
    return go_program("franz_chain")


def copy_in_transactions(program: Path, kafka: Kafka, *, is_consumer: bool) -> None:
    """Two members of a group copy a topic; each record appears once, despite aborts."""
    source, target = (kafka.topic(hint, partitions=PARTITIONS) for hint in ("in", "out"))
    kafka.produce(source, [(str(number), str(number)) for number in range(COPIED)])
    settings = {
        "Bootstrap": kafka.bootstrap_servers.split(","),
        "Source": source,
        "Target": target,
        "Group": kafka.name("group"),
        "Members": 2,
        "Count": COPIED,
        "Consumer": is_consumer,
        **client_logins.go(kafka.bootstrap_servers),
    }
    assert output_of([program, json.dumps(settings)], PATIENCE_S) == f"{COPIED}\n"
    copies = sorted(f"copy of {number}" for number in range(COPIED))
    assert read(kafka, target, PARTITIONS) == copies


@pytest.mark.timeout(BUILD_TIMEOUT_S)
@pytest.mark.parametrize("is_consumer", [False, True], ids=["classic", "consumer"])
def test_records_are_copied_in_transactions(chain: Path, kafka: Kafka, is_consumer: bool) -> None:
    copy_in_transactions(chain, kafka, is_consumer=is_consumer)


def run_suite(bootstrap_servers: str, copies: int, *without: str, **settings: str) -> None:
    """Run the client's own tests, but for `without`; fails with what they print."""
    login = client_logins.go(bootstrap_servers)
    if login:
        settings["KGO_TEST_TLS"] = f"ca:{login['CA']}"
        settings["KGO_TEST_SCRAM"] = f"{login['User']}:{login['Password']}:512"
        without = (*without, SETS_NO_TLS)
    program, sources = go_suite(
        "franz_suite", PACKAGE, GIVES_UP_LATE, *([LOGS_IN] if login else [])
    )
    environment = {
        "KGO_SEEDS": bootstrap_servers,
        "KGO_TEST_RF": str(copies),
        "KGO_TEST_RECORDS": os.environ.get("KGO_TEST_RECORDS", SUITE_RECORDS),
        "KGO_LOG_LEVEL": "none",
        **settings,
    }
    only = os.environ.get("BARNABAS_TEST_FRANZ_GO", ".")
    for _ in range(REPEATS):
        done = subprocess.run(
            [
                program,
                f"-test.timeout={SUITE_TIMEOUT_S}s",
                f"-test.skip=^({'|'.join(without)})$",
                f"-test.run={only}",
            ],
            cwd=sources,  # some of its tests read them
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SUITE_TIMEOUT_S + PATIENCE_S,
        )
        assert done.returncode == 0, done.stdout[-OUTPUT_SHOWN:]


@pytest.mark.skipif(NODES == 1, reason=ON_THREE)
@pytest.mark.timeout(REPEATS * SUITE_TIMEOUT_S + BUILD_TIMEOUT_S)
def test_its_own_suite(kafka: Kafka, copies: int) -> None:
    run_suite(kafka.bootstrap_servers, copies, ENDS_EARLY)


@pytest.mark.skipif(NODES == 1, reason=ON_THREE)
@pytest.mark.skipif(SECURITY != "", reason="the session's cluster has ACLs")
@pytest.mark.timeout(REPEATS * SUITE_TIMEOUT_S + BUILD_TIMEOUT_S)
def test_its_own_suite_with_certificates_and_acls() -> None:
    with barnabas.Cluster(NODES, security="mtls") as cluster:
        config = cluster.client_config
        files = {"ca": "ssl.ca", "cert": "ssl.certificate", "key": "ssl.key"}
        tls = ",".join(f"{name}:{config[f'{key}.location']}" for name, key in files.items())
        without = (ENDS_EARLY, SETS_NO_TLS)
        run_suite(cluster.bootstrap_servers, min(NODES, 3), *without, KGO_TEST_TLS=tls)
