"""A bucket of S3, or of what speaks as S3 does, as a store of files."""

from __future__ import annotations

import functools
import io
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, BinaryIO, Final, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from barnabas.connect.connectors.storage.store import (
    ChangedFileError,
    Claim,
    FileStore,
    StoredFile,
    TakenError,
    Upload,
)
from barnabas.schemas.data.errors import ConnectError, RetriableError

# What a server of S3 refused, as errors that say whether the same request may succeed later.

_SERVER_ERROR: Final = 500
_DENIED: Final = frozenset({"AccessDenied", "AllAccessDisabled", "403"})
_LASTING: Final = frozenset(
    {
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidBucketName",
        "InvalidToken",
        "MethodNotAllowed",
        "NoSuchBucket",
        "PermanentRedirect",
        "SignatureDoesNotMatch",
        "400",
        "401",
    }
)
_BUSY: Final = frozenset({"SlowDown", "RequestTimeout", "RequestTimeTooSkewed", "503", "500"})
_CHANGED: Final = frozenset({"ConditionalRequestConflict", "PreconditionFailed", "409", "412"})


class NoSuchObjectError(ConnectError):
    """There is no such object or bucket."""


class DeniedError(ConnectError):
    """The keys do not allow it."""


class ChangedError(ConnectError):
    """The object is not as the request's condition wants it."""


class NotSupportedError(ConnectError):
    """The server does not know what was asked."""


def refused(what: str, error: ClientError) -> ConnectError:
    """Return the error for an answer; `what` was asked."""
    details = error.response.get("Error", {})
    code, message = str(details.get("Code", "")), details.get("Message", "")
    text = f"cannot {what}: {code} {message}".rstrip()
    if code in ("404", "NoSuchKey", "NoSuchUpload"):
        return NoSuchObjectError(text)
    if code in ("NotImplemented", "501"):
        return NotSupportedError(text)
    if code in _DENIED:
        return DeniedError(text)
    if code in _CHANGED:
        return ChangedError(text)
    if code in _LASTING:
        return ConnectError(text)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _BUSY or status >= _SERVER_ERROR:
        return RetriableError(text)
    return ConnectError(text)


T = TypeVar("T")

PARTS_AT_ONCE: Final = 4
_READ_BLOCK_BYTES: Final = 1024 * 1024


@dataclass(slots=True, frozen=True)
class BucketPlace:
    """Which bucket, and how it is asked. Secrets are not shown."""

    bucket: str
    region: str
    url: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    has_path_style: bool = True
    part_bytes: int = 25 * 1024 * 1024
    retries: int = 3
    proxy: str | None = field(default=None, repr=False)
    put: tuple[tuple[str, str | bytes], ...] = field(default=(), repr=False)
    """Further parameters of each new object: its ACL, encryption …"""

    @property
    def put_part(self) -> dict[str, str | bytes]:
        """Those that are said again with each part of an object: a key of the customer's."""
        return {name: value for name, value in self.put if name.startswith("SSECustomer")}


class Bucket(FileStore):
    """The objects of a bucket."""

    def __init__(self, place: BucketPlace) -> None:
        self._place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return Bucket, (self._place,)

    def check(self) -> None:
        """Ask for the bucket."""
        bucket = self._place.bucket
        try:
            self.ask("find", lambda: self.client.head_bucket(Bucket=bucket))
        except NoSuchObjectError as error:
            raise ConnectError(f"Non-existent S3 bucket: {bucket}") from error

    def create(self, name: str, claim: Claim | None = None) -> Upload:
        """Begin an object."""
        return _S3Upload(self, name, claim)

    def open(self, name: str, version: str | None = None) -> BinaryIO:
        """Open an object; it is read in blocks as it is needed."""
        place = self._place
        head = self.ask(
            f"read {name} of", lambda: self.client.head_object(Bucket=place.bucket, Key=name)
        )
        tag = str(head["ETag"])
        if version not in (None, tag) and self._listed(name) != version:
            raise ChangedFileError(f"{name} of bucket {place.bucket} has changed")
        size = int(head["ContentLength"])
        return io.BufferedReader(_S3Reader(self, name, size, tag), _READ_BLOCK_BYTES)

    def _listed(self, name: str) -> str | None:
        """Return an object's version as lists tell it: some servers write tags otherwise there."""
        return next((one.version for one in self.list(name) if one.name == name), None)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield the objects."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self._place.bucket, Prefix=prefix
        )
        source = iter(pages)
        while True:
            page = self.ask("list", lambda: next(source, None))
            if page is None:
                return
            for item in page.get("Contents", ()):
                yield StoredFile(
                    item["Key"],
                    int(item["Size"]),
                    str(item["ETag"]),
                    int(item["LastModified"].timestamp() * 1000),
                )

    def delete(self, name: str) -> None:
        """Remove an object."""
        self.ask(
            f"remove {name} of",
            lambda: self.client.delete_object(Bucket=self._place.bucket, Key=name),
        )

    def close(self) -> None:
        """Close connections of this process; who else uses the bucket makes new ones."""
        client = _CLIENTS.pop(self._place, None)
        if client is not None:
            client.close()

    @property
    def place(self) -> BucketPlace:
        """Which bucket it is."""
        return self._place

    @property
    def client(self) -> Any:
        """The client of this process."""
        return _CLIENTS.get(self._place) or _CLIENTS.setdefault(self._place, _client(self._place))

    def ask(self, what: str, call: Callable[[], T]) -> T:
        """Make a request. Raises RetriableError, ConnectError with what it was for."""
        try:
            return call()
        except ClientError as error:
            raise refused(f"{what} bucket {self._place.bucket}", error) from None
        except NoCredentialsError as error:
            raise ConnectError(f"cannot {what} bucket {self._place.bucket}: {error}") from None
        except (BotoCoreError, OSError) as error:
            raise RetriableError(f"cannot {what} bucket {self._place.bucket}: {error}") from None


_CLIENTS: Final[dict[BucketPlace, Any]] = {}
"""Of this process: writers are copied for each micro-batch, and a client is made in 0.1 s."""


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Threads of this process that send parts."""
    return ThreadPoolExecutor(PARTS_AT_ONCE * 2, "s3-part")


_SESSION_LOCK: Final = Lock()


@functools.cache
def _session() -> Any:
    """Keeps the descriptions of AWS's services, which take most of a client's making."""
    return boto3.session.Session()


def _client(place: BucketPlace) -> Any:
    with _SESSION_LOCK:  # sessions are not for threads, clients are
        return _made_client(_session(), place)


def _made_client(session: Any, place: BucketPlace) -> Any:
    return session.client(
        "s3",
        region_name=place.region,
        endpoint_url=place.url,
        aws_access_key_id=place.access_key,
        aws_secret_access_key=place.secret_key,
        config=Config(
            s3={"addressing_style": "path" if place.has_path_style else "auto"},
            retries={"total_max_attempts": place.retries + 1, "mode": "standard"},
            proxies={"http": place.proxy, "https": place.proxy} if place.proxy else None,
            # Others than Amazon's know no checksums in trailers.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


class _S3Upload(Upload):
    """One request for what is smaller than a part, else one for each part, several at once."""

    def __init__(self, bucket: Bucket, name: str, claim: Claim | None) -> None:
        self._bucket = bucket
        self._name = name
        self._claim = claim
        self._where = {"Bucket": bucket.place.bucket, "Key": name}
        self._more = {**metadata(claim), **dict(bucket.place.put)}
        self._buffer = bytearray()
        self._id: str | None = None
        self._parts: list[Future[str]] = []

    def write(self, data: Any, /) -> int:
        self._buffer += data
        size = self._bucket.place.part_bytes
        while len(self._buffer) >= size:
            self._send(bytes(memoryview(self._buffer)[:size]))
            del self._buffer[:size]
        return len(data)

    def complete(self) -> None:
        client = self._bucket.client
        if self._id is None:
            body = bytes(self._buffer)
            self._make_visible(client.put_object, Body=body, **self._more)
            return
        try:
            if self._buffer:
                self._send(bytes(self._buffer))
            tags = [part.result() for part in self._parts]
            parts = [{"ETag": tag, "PartNumber": n} for n, tag in enumerate(tags, 1)]
            self._make_visible(
                client.complete_multipart_upload,
                UploadId=self._id,
                MultipartUpload={"Parts": parts},
            )
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        upload, self._id = self._id, None
        self._buffer.clear()
        for part in self._parts:
            part.cancel()
        for part in self._parts:
            if not part.cancelled():
                part.exception()  # a part that comes later would stay, and cost
        self._parts.clear()
        if upload is not None:
            try:
                self._bucket.client.abort_multipart_upload(**self._where, UploadId=upload)
            except (ClientError, BotoCoreError, OSError):
                return  # buckets have rules that remove what was never completed

    def _make_visible(self, call: Callable[..., Any], **given: Any) -> None:
        last = functools.partial(call, **self._where, **given)
        make_visible(self._bucket, self._name, self._claim, last)

    def _send(self, data: bytes) -> None:
        bucket, client = self._bucket, self._bucket.client
        what = f"write {self._name} to"
        if self._id is None:
            given = {**self._where, **self._more}
            made = bucket.ask(what, lambda: client.create_multipart_upload(**given))
            self._id = str(made["UploadId"])
        number, upload, again = len(self._parts) + 1, self._id, bucket.place.put_part
        if len(self._parts) >= PARTS_AT_ONCE:
            self._parts[-PARTS_AT_ONCE].result()

        def send() -> str:
            sent = bucket.ask(
                what,
                lambda: client.upload_part(
                    **self._where, **again, UploadId=upload, PartNumber=number, Body=data
                ),
            )
            return str(sent["ETag"])

        self._parts.append(_pool().submit(send))


class _S3Reader(io.RawIOBase):
    """Reads ranges of one version of an object."""

    def __init__(self, bucket: Bucket, name: str, size: int, tag: str) -> None:
        self._bucket = bucket
        self._name = name
        self._size = size
        self._tag = tag
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0

        def get() -> bytes:
            answer = self._bucket.client.get_object(
                Bucket=self._bucket.place.bucket,
                Key=self._name,
                Range=f"bytes={self._at}-{self._at + wanted - 1}",
                IfMatch=self._tag,
            )
            with answer["Body"] as body:
                return bytes(body.read())

        data = self._bucket.ask(f"read {self._name} of", get)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


# Objects that are written once: the second writer learns the claim of the first.
#
# The claim is the object's own metadata. It is looked at before an object is made visible, and a
# condition (`If-None-Match: *`) makes sure that none has appeared since. If a server does not
# support conditions, or does not let the connector read metadata, objects are overwritten as
# without claims; that is logged once.

CLAIM: Final = "barnabas-claim"
_log = logging.getLogger(__name__)
_unconditional: Final[set[BucketPlace]] = set()
"""Buckets of this process that know no conditions."""


def metadata(claim: Claim | None) -> dict[str, Any]:
    """Return the parameters with which an object is begun."""
    return {} if claim is None else {"Metadata": {CLAIM: claim.text()}}


def make_visible(bucket: Bucket, name: str, claim: Claim | None, call: Callable[..., Any]) -> None:
    """Make an object visible, unless there is one with such a claim.

    Raises TakenError; RetriableError, also where another came in between; ConnectError.
    """
    what, place = f"write {name} to", bucket.place
    if claim is None:
        bucket.ask(what, call)
        return
    condition = _condition(bucket, name, claim)
    try:
        bucket.ask(what, lambda: call(**condition))
    except ChangedError as error:
        raise RetriableError(str(error)) from None
    except NotSupportedError as error:
        if not condition:
            raise
        _warn(place, str(error))
        bucket.ask(what, call)


def _condition(bucket: Bucket, name: str, claim: Claim) -> Mapping[str, str]:
    place = bucket.place
    try:
        head = bucket.ask(
            f"look at {name} of",
            lambda: bucket.client.head_object(Bucket=place.bucket, Key=name, **place.put_part),
        )
    except NoSuchObjectError:
        return {} if place in _unconditional else {"IfNoneMatch": "*"}
    except DeniedError as error:
        _warn(place, str(error))
        return {}
    theirs = Claim.read(head.get("Metadata", {}).get(CLAIM, ""))
    if theirs is not None and theirs.rules == claim.rules:
        raise TakenError(name, theirs)
    return {}


def _warn(place: BucketPlace, reason: str) -> None:
    if place not in _unconditional:
        _unconditional.add(place)
        _log.warning(
            "%s: a task that is cut off from its group may overwrite longer objects", reason
        )
