"""S3's connectors and their settings beside those of files, under the names of Confluent's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    NO_DEFAULT,
    ConfigType,
    Definition,
    Importance,
    group,
)
from barnabas.connect.config.values import Password
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.s3.bucket import Bucket, BucketPlace
from barnabas.connect.connectors.storage.settings import (
    SINK,
    SOURCE,
    errors_of,
    parsed,
    routes_of,
)
from barnabas.connect.connectors.storage.sink import FileSettings, FileSinkWriter
from barnabas.connect.connectors.storage.source import (
    FileSourceReader,
    source_settings,
    split_tasks,
)
from barnabas.connect.connectors.storage.store import rules_of
from barnabas.schemas.data.errors import ConfigError

_T = ConfigType
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_PART_BYTES_MIN: Final = 5 * 1024 * 1024
CUSTOMER_KEY: Final = "s3.sse.customer.key"
CONDITIONAL: Final = "enable.conditional.writes"
_CUSTOMER_KEY_BYTES: Final = 32

BUCKET: Final = group("S3",
    ("s3.bucket.name", _T.STRING, NO_DEFAULT, _HIGH, "The bucket.", validators.non_empty),
    ("s3.region", _T.STRING, "us-west-2", _MEDIUM, "The region that the bucket is in."),
    ("store.url", _T.STRING, None, _HIGH, "The server, where it is not Amazon's."),
    ("aws.access.key.id", _T.STRING, "", _HIGH,
     "The name of the key; without one, what AWS's tools would use: environment, profile, role."),
    ("aws.secret.access.key", _T.PASSWORD, None, _HIGH, "The key."),
    ("s3.path.style.access.enabled", _T.BOOLEAN, True, _LOW,
     "Put the bucket's name in the path of URLs instead of the host."),
    ("s3.part.retries", _T.INT, 3, _MEDIUM,
     "Maximum number of retries of a request before the micro-batch fails.",
     validators.at_least(0)),
    ("s3.retry.backoff.ms", _T.LONG, 200, _LOW, "Taken; pauses between tries grow by themselves."),
    ("s3.proxy.url", _T.STRING, "", _LOW, "A proxy for HTTP, with its port."),
    ("s3.proxy.user", _T.STRING, None, _LOW, "Its user."),
    ("s3.proxy.password", _T.PASSWORD, None, _LOW, "Its password."),
    ("s3.credentials.provider.class", _T.STRING, "", _LOW, "Taken; see aws.access.key.id."),
)  # fmt: skip

OBJECTS: Final = group("S3 objects",
    ("s3.part.size", _T.INT, 25 * 1024 * 1024, _HIGH, "Bytes of each part of larger objects.",
     validators.at_least(_PART_BYTES_MIN)),
    ("s3.compression.type", _T.STRING, "none", _LOW, "none or gzip, of JSON and bytes.",
     validators.one_of_any_case("none", "gzip")),
    ("s3.compression.level", _T.INT, -1, _LOW, "0 to 9, or -1 for the usual one.",
     validators.between(-1, 9)),
    ("s3.acl.canned", _T.STRING, None, _LOW, "An ACL for each object."),
    ("s3.ssea.name", _T.STRING, "", _LOW, "Encryption on the server: AES256 or aws:kms."),
    ("s3.sse.kms.key.id", _T.STRING, "", _LOW, "The key for aws:kms."),
    (CUSTOMER_KEY, _T.PASSWORD, None, _LOW, "A key of the customer's, for AES256, in base64."),
    ("s3.object.tagging", _T.BOOLEAN, False, _LOW, "Taken; has no effect."),
    ("s3.object.tagging.key.value.pairs", _T.LIST, "", _LOW, "Taken; has no effect."),
    ("s3.object.behavior.on.tagging.error", _T.STRING, "ignore", _LOW, "Taken; has no effect."),
    ("s3.schema.partition.affix.type", _T.STRING, "NONE", _LOW,
     "Directory named after the value's schema: NONE, PREFIX or SUFFIX.",
     validators.one_of("NONE", "PREFIX", "SUFFIX")),
    ("storage.class", _T.STRING, "S3Storage", _LOW, "Taken: there is one."),
    (CONDITIONAL, _T.BOOLEAN, True, _LOW,
     "Never replace an object that rotate.schedule.interval.ms ended."),
    ("max.files.scan.limit", _T.INT, 100, _LOW, "Taken; has no effect."),
    ("s3.wan.mode", _T.BOOLEAN, False, _LOW, "Taken; has no effect."),
    ("s3.send.digest", _T.BOOLEAN, False, _LOW, "Taken; has no effect."),
    ("s3.http.send.expect.continue", _T.BOOLEAN, True, _LOW, "Taken; has no effect."),
    ("s3.elastic.buffer.enable", _T.BOOLEAN, False, _LOW, "Taken: buffers grow as needed."),
    ("s3.elastic.buffer.init.capacity", _T.INT, 131072, _LOW, "Taken; has no effect."),
)  # fmt: skip

POLLING: Final = group("S3 source",
    ("s3.poll.interval.ms", _T.LONG, 60_000, _MEDIUM,
     "Interval between polls of the bucket for new objects.", validators.at_least(1)),
)  # fmt: skip
S3_SOURCE: Final = Definition((*SOURCE.settings.values(), *BUCKET, *POLLING))
S3_SINK: Final = Definition((*SINK.settings.values(), *BUCKET, *OBJECTS))


class S3Source(SourceConnector):
    """Objects of a bucket to topics."""

    definition = S3_SOURCE

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            routes_of(values)
        except ConfigError as error:
            return {"topic.regex.list": [str(error)]}
        return {}

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share topics' partitions or, of other files, the files."""
        return split_tasks(tasks_max)

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader of a task. Raises ConfigError, ConnectError."""
        values = parsed(self.definition, context.settings)
        bucket = make_bucket(values)
        bucket.check()
        settings = source_settings(
            values,
            f"s3://{values['s3.bucket.name']}",
            int(values["s3.poll.interval.ms"]),
            context.settings,
        )
        return FileSourceReader(bucket, settings, context.offsets)


class S3Sink(SinkConnector):
    """Topics to objects of a bucket."""

    definition = S3_SINK

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        errors = errors_of(values)
        try:
            make_bucket(values)
        except ConfigError as error:
            errors[CUSTOMER_KEY] = [str(error)]
        return errors

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the topics' partitions."""
        return [{} for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError."""
        values = parsed(self.definition, context.settings)
        claims = rules_of(context.settings, SINK.settings) if values[CONDITIONAL] else None
        settings = FileSettings.of(values, gzip_level(values), claims)
        return FileSinkWriter(make_bucket(values), settings)


def make_bucket(values: Mapping[str, Any]) -> Bucket:
    """Return the bucket that parsed settings say; nothing is asked yet. Raises ConfigError."""
    user = values["s3.proxy.user"]
    proxy = str(values["s3.proxy.url"] or "")
    if proxy and user:
        scheme, separator, rest = proxy.rpartition("://")
        proxy = f"{scheme}{separator}{user}:{_secret(values['s3.proxy.password'])}@{rest}"
    return Bucket(
        BucketPlace(
            bucket=str(values["s3.bucket.name"]),
            region=str(values["s3.region"]),
            url=values["store.url"] or None,
            access_key=values["aws.access.key.id"] or None,
            secret_key=_secret(values["aws.secret.access.key"]),
            has_path_style=bool(values["s3.path.style.access.enabled"]),
            part_bytes=int(values.get("s3.part.size", 25 * 1024 * 1024)),
            retries=int(values["s3.part.retries"]),
            proxy=proxy or None,
            put=_put(values),
        )
    )


def gzip_level(values: Mapping[str, Any]) -> int | None:
    """Return the level of compression; None for none."""
    is_packed = str(values["s3.compression.type"]).lower() == "gzip"
    return int(values["s3.compression.level"]) if is_packed else None


def _put(values: Mapping[str, Any]) -> tuple[tuple[str, str | bytes], ...]:
    customer_key = _customer_key(values)
    more: dict[str, str | bytes | None] = {
        "ACL": values.get("s3.acl.canned"),
        "ServerSideEncryption": None if customer_key else values.get("s3.ssea.name"),
        "SSEKMSKeyId": values.get("s3.sse.kms.key.id"),
        "SSECustomerKey": customer_key,
        "SSECustomerAlgorithm": "AES256" if customer_key else None,
    }
    return tuple((name, value) for name, value in more.items() if value)


def _customer_key(values: Mapping[str, Any]) -> bytes | None:
    given = _secret(values.get(CUSTOMER_KEY))
    if given is None:
        return None
    try:
        key = base64.b64decode(given, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _CUSTOMER_KEY_BYTES:
        raise ConfigError(f"{CUSTOMER_KEY} must be {_CUSTOMER_KEY_BYTES} bytes in base64")
    return key


def _secret(value: Any) -> str | None:
    return value.value if isinstance(value, Password) else value or None
