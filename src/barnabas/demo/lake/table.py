"""The warehouse's table, read from the bucket by another library than that which wrote it."""

from __future__ import annotations

import re
from typing import Any, Final

from barnabas.demo.contract import Truth
from barnabas.demo.lake.place import ACCESS_KEY, REGION, SECRET_KEY, Place
from barnabas.demo.lake.worker import NAMESPACE, OFFSET_COLUMN, PARTITION_COLUMN, ROOT, TABLE
from barnabas.demo.topics import USER_ACTIVITY
from barnabas.demo.verdict import Check

_METADATA: Final = f"{ROOT}/{NAMESPACE}/{TABLE}/metadata"
_VERSION: Final = re.compile(r"v([0-9]+)\.metadata\.json")
_COLUMNS: Final = ("event_id", "amount_cents", PARTITION_COLUMN, OFFSET_COLUMN)


class LakeError(Exception):
    """The table cannot be read; the message says why."""


def checks(place: Place, truth: Truth) -> list[Check]:
    """Hold the table against the truth. Raises LakeError."""
    from pyarrow import ArrowException

    try:
        rows = _read(place)
    except (OSError, ValueError, ArrowException) as error:
        raise LakeError(f"the warehouse's table cannot be read: {error}") from error
    return compare(rows, truth)


def compare(rows: Any, truth: Truth) -> list[Check]:
    """Compare the table's rows, None where there is no table.

    Events are sent twice now and then, on purpose or by a restart, and so are in the topic. But no
    record of the topic may be in the table twice.
    """
    events = truth["events"][USER_ACTIVITY]
    revenue = truth["figures"]["conversion"]["revenue_cents"]
    if rows is None:
        return [Check("events in the warehouse", "nothing", f"{events:,}", events == 0)]
    by_event = rows.group_by("event_id").aggregate([("amount_cents", "max")])
    places = rows.group_by([PARTITION_COLUMN, OFFSET_COLUMN]).aggregate([([], "count_all")])
    return [
        _number("events in the warehouse", by_event.num_rows, events),
        _number(
            "revenue cents in the warehouse",
            sum(by_event["amount_cents_max"].to_pylist()),
            revenue,
        ),
        _number("records twice in the warehouse", rows.num_rows - places.num_rows, 0),
    ]


def _read(place: Place) -> Any:
    """Return the columns that are compared, as the newest version of the table has them."""
    from pyarrow import fs
    from pyiceberg.table import StaticTable

    access_key, secret_key = place.key(ACCESS_KEY), place.key(SECRET_KEY)
    bucket = fs.S3FileSystem(
        access_key=access_key,
        secret_key=secret_key,
        region=REGION,
        scheme="http",
        endpoint_override=place.url.removeprefix("http://"),
    )
    files = bucket.get_file_info(fs.FileSelector(_METADATA, allow_not_found=True))
    versions = {
        int(match[1]): info.path for info in files if (match := _VERSION.fullmatch(info.base_name))
    }
    if not versions:
        return None
    table = StaticTable.from_metadata(
        f"s3a://{versions[max(versions)]}",
        properties={
            "s3.endpoint": place.url,
            "s3.region": REGION,
            "s3.access-key-id": access_key,
            "s3.secret-access-key": secret_key,
        },
    )
    return table.scan(selected_fields=_COLUMNS).to_arrow()


def _number(name: str, shown: int, truth: int) -> Check:
    return Check(name, f"{shown:,}", f"{truth:,}", shown == truth)
