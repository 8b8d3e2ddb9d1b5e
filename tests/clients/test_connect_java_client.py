"""A client of Connect's REST interface that others wrote, in Java, makes each of its calls.

It is org.sourcelab:kafka-connect-client, of Maven's registry. `make test-slow`: the program is
compiled first.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.apache_kafka import QUICK_JVM
from support.connect.worker import OurWorker
from support.foreign_programs import CACHE, SOURCES, maven_jars, output_of

POM = SOURCES.parents[1] / "tools" / "connect_client" / "pom.xml"
CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
WRONG = "Invalid value none for configuration batch.size: Not a number of type INT"
SAYS = f"""\
version: 4.3.1
none: []
absent: ResourceNotFoundException: [Connector absent not found]
add: by java/one
again: ConcurrentConfigModificationException: [Connector by java/one already exists]
names: [by java/one]
state: RUNNING
with info: source
with status: 1
with all: 1
definition: [TaskDefinition{{connector='by java/one', task=0}}]
config: by-java
topics: [by-java]
reset topics: true
tasks: by-java
task: RUNNING
no task: ResourceNotFoundException: [No status found for task by java/one-7]
restart task: true
restart: true
restart all: true
restart failed: true
pause: true
resume: true
update: 7
wrong: InvalidRequestException: [Connector configuration is invalid and contains the following 1 \
error(s):, {WRONG}, You can also find the above list of errors at the endpoint \
`/connector-plugins/{{connectorType}}/config/validate`]
validate: 2 {CLASS} true [[{WRONG}]]
plugin: [source]
delete: true
delete again: ResourceNotFoundException: [Connector by java/one not found]
names: []
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_call_of_a_client_in_java(tmp_path: Path, kafka_bootstrap_servers: str) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("needs java")
    jars = maven_jars(POM, CACHE / "connect-client-4.0.4")
    lines = tmp_path / "in.txt"
    lines.write_text("a line\n")
    worker = OurWorker(tmp_path / "worker", kafka_bootstrap_servers, "java")
    try:
        worker.start()
        program = SOURCES / "java" / "connect" / "ConnectClientSteps.java"
        options = [*QUICK_JVM, "-cp", f"{jars}/*"]
        assert output_of([java, *options, program, worker.url, lines], 200) == SAYS
    finally:
        worker.close()
