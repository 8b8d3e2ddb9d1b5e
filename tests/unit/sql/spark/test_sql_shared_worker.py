"""The parcels of a shared stream, and its labels."""

from __future__ import annotations

from dataclasses import fields, replace

from barnabas.schemas.registry_client import RegistryTls
from barnabas.spark.datasource.protocol import Prepared
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.parcels import (
    Closing,
    Left,
    Member,
    Notes,
    Report,
    Turn,
    Written,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.shared_worker import _hosting_of, member_parcel
from barnabas.sql.spark.topology import member_labels, member_of, task_of

SECRET = "t0p-s3cret"
HOSTING = Hosting(
    "Q",
    "{}",
    3,
    2,
    properties=(
        ("ksql.functions.collect_list.limit", 7),
        ("ksql.streams.sasl.jaas.config", SECRET),
        ("ksql.connect.basic.auth.password", SECRET),
    ),
    registry_urls=(f"http://u:{SECRET}@registry",),
    registry_user_info=f"u:{SECRET}",
    is_copartitioned=False,
    emits_every_change=True,
    state_name="state",
    extension_directory="/functions",
    sink_servers="broker:9092",
    sink_partitions=5,
    registry_tls=RegistryTls("/ca.pem"),
    clients=(("sasl.password", SECRET),),
    columns_from=9,
)


def test_workers_get_all_but_no_secret_is_in_the_rows() -> None:
    data = member_parcel(HOSTING)
    assert SECRET.encode() not in data
    member = decode_parcel(data)
    assert isinstance(member, Member)
    common = Hosting(
        *("", "", 1, 1),
        registry_urls=HOSTING.registry_urls,
        registry_user_info=HOSTING.registry_user_info,
        registry_tls=HOSTING.registry_tls,
        clients=HOSTING.clients,
    )
    want = replace(HOSTING, properties=HOSTING.properties[:1])
    found = _hosting_of(member, common)
    assert found == want
    assert hash(found) == hash(want)
    # Should a field be added, someone has to say which kind it is of.
    defaults = Hosting("", "", 1, 1)
    for field in fields(Hosting):
        assert getattr(HOSTING, field.name) != getattr(defaults, field.name), field.name


def test_reports_come_back() -> None:
    notes = Notes(read=3, count=1, notes=[("event", None, "{}")], written=2, latest_ms=5)
    written = Written(Prepared(1, "id", 2, 3, 4, 5), was_retried=True)
    reports = (
        Report(5, notes, None),
        Report(7, Notes(), "Traceback"),
        Report(8, notes, None, (written, written)),
        Report(9, notes, None, (), {("t", 3): 2**40}),
    )
    closing = Closing(2_000, "/endings/7", 100)
    for parcel in (*reports, Left(), Turn(6, is_repeated=True), closing):
        assert decode_parcel(encode_parcel(parcel)) == parcel


def test_labels_say_whose_they_are_and_are_in_the_task_of_their_partition() -> None:
    for member, partitions, tasks in ((0, 7, 2), (12, 3, 3), (999, 2_000, 16)):
        labels = member_labels(member, partitions, tasks)
        assert labels[-1] < 2**31
        for partition, label in enumerate(labels):
            assert member_of(label) == (member, partition)
            assert task_of(label, tasks) == partition % tasks
