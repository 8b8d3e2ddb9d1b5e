"""What a server of S3 refused, as errors that say whether the same request may succeed later."""

from __future__ import annotations

from typing import Final

from botocore.exceptions import ClientError

from barnabas.schemas.data.errors import ConnectError, RetriableError

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


class NotFoundError(ConnectError):
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
        return NotFoundError(text)
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
