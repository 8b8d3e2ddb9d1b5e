"""What S3's sink of connectors costs beside what is below it, on this machine's own S3 server.

For JSON, Avro and Parquet: records per second of the sink's writer, from Connect's records to
objects; beside it the same rows written by json, fastavro and pyarrow into memory, and `put_object`
of the same bytes by boto3. The server is versitygw where the tests have built it, else moto.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import BotoCoreError

from barnabas.app.local_nodes import PortReservation
from barnabas.connect.connectors.base import SinkRange, SinkWriter, TaskContext
from barnabas.connect.connectors.s3.connectors import S3Sink
from barnabas.connect.connectors.storage.formats.avro_schema import avro_of
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data import builder
from barnabas.schemas.data.schema import Struct
from bench.settings import Settings

HOST = "127.0.0.1"
KEY = "bench-of-connectors"
BUCKET = "bench"
Figures = dict[str, dict[str, float]]
START_SECONDS = 60.0
ROUNDS = 3
FILE_RECORDS = 50_000
SCHEMA = builder.struct_of(
    {
        "id": builder.INT64,
        "station": builder.STRING,
        "kwh": builder.FLOAT64,
        "note": builder.OPTIONAL_STRING,
    },
    name="Charge",
)


def server(folder: Path, port: int) -> list[str]:
    """The command of an S3 server."""
    built = sorted(Path(__file__).parents[2].glob(".cache/versitygw-*/versitygw"))
    if not built:
        return [str(Path(sys.executable).with_name("moto_server")), "-H", HOST, "-p", str(port)]
    objects, sidecar = folder / "objects", folder / "sidecar"
    objects.mkdir()
    sidecar.mkdir()
    keys = ["--access", KEY, "--secret", KEY, "--port", f"{HOST}:{port}", "--quiet"]
    return [str(built[-1]), *keys, "posix", "--sidecar", str(sidecar), str(objects)]


def records(count: int) -> list[SinkRecord]:
    """Records of some 100 bytes of JSON."""
    return [
        SinkRecord(
            topic="charges",
            partition=0,
            offset=number,
            original_topic="charges",
            original_partition=0,
            original_offset=number,
            value_schema=SCHEMA,
            value=Struct(SCHEMA, [number, f"station-{number % 500}", number / 7, "x" * 40]),
        )
        for number in range(count)
    ]


def best(run: Callable[[], Any]) -> float:
    """The shortest of some runs, in seconds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def plain_writers(rows: list[dict[str, Any]]) -> dict[str, Callable[[], Any]]:
    """Encode the same rows with the libraries alone."""
    schema = fastavro.parse_schema(avro_of(SCHEMA))

    def parquet() -> None:
        pq.write_table(pa.Table.from_pylist(rows), io.BytesIO(), compression="snappy")

    return {
        "json.JsonFormat": lambda: b"".join(json.dumps(row).encode() + b"\n" for row in rows),
        "avro.AvroFormat": lambda: fastavro.writer(io.BytesIO(), schema, rows),
        "parquet.ParquetFormat": parquet,
    }


def write(writer: SinkWriter, given: list[SinkRecord]) -> None:
    """All of them, as one range."""
    writer.write(iter(given), SinkRange("charges", 0, 0, len(given)))


def put(client: Any, bodies: dict[str, bytes]) -> None:
    """The same objects by themselves."""
    for key, body in bodies.items():
        client.put_object(Bucket=BUCKET, Key=key, Body=body)


def s3_round(settings: Settings) -> Figures:
    """Measure each format."""
    given = records(settings.connect_rows)
    names = [field.name for field in SCHEMA.fields]
    rows = [dict(zip(names, one.value.values, strict=True)) for one in given]
    with s3_server() as url:
        return run(url, given, plain_writers(rows))


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 server; gives its URL."""
    (port,) = PortReservation(HOST).take(1)
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            server(Path(folder), port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            yield f"http://{HOST}:{port}"
        finally:
            process.kill()
            process.wait()


def client_of(url: str) -> Any:
    """A client of the server."""
    return boto3.session.Session().client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=KEY,
    )


def sink_settings(url: str, format_: str, folder: str, flush_size: int) -> dict[str, str]:
    """The settings that both S3 sinks share: what to write, and where."""
    return {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "s3.bucket.name": BUCKET,
        "s3.region": "us-east-1",
        "store.url": url,
        "aws.access.key.id": KEY,
        "aws.secret.access.key": KEY,
        "format.class": f"io.confluent.connect.s3.format.{format_}",
        "flush.size": str(flush_size),
        "topics.dir": folder,
    }


def run(url: str, given: list[SinkRecord], plain: dict[str, Callable[[], Any]]) -> Figures:
    """Measure each format."""
    client = client_of(url)
    make_bucket(client)
    ours: dict[str, float] = {}
    libraries: dict[str, float] = {}
    for format_, library in plain.items():
        name = format_.partition(".")[0]
        settings = sink_settings(url, format_, format_, FILE_RECORDS)
        writer = S3Sink().writer(TaskContext("bench", 0, settings))
        ours[f"connect_s3_{name}_s"] = len(given) / best(partial(write, writer, given))
        writer.stop()
        libraries[f"connect_s3_{name}_s"] = len(given) / best(library)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=format_)
        keys = [item["Key"] for page in pages for item in page["Contents"]]
        bodies = {key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}
        put_s = best(partial(put, client, bodies))
        libraries[f"connect_s3_{name}_put_s"] = len(given) / put_s
    client.close()
    return {"barnabas": ours, "driver": libraries}


def make_bucket(client: Any) -> None:
    """Make the bucket, once the server answers."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            client.create_bucket(Bucket=BUCKET)
            return
        except BotoCoreError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the S3 server does not answer: {error}") from error
            time.sleep(0.05)
