"""The S3 servers of the tests do what connectors rely on."""

import pytest
from botocore.exceptions import ClientError

from support.connect.s3 import s3_server


def test_an_object_is_put_once_where_that_was_asked_and_uploads_are_seen():
    with s3_server() as server:
        server.make_bucket("events")
        server.client.put_object(Bucket="events", Key="a/b.json", Body=b"1", IfNoneMatch="*")
        with pytest.raises(ClientError, match="PreconditionFailed"):
            server.client.put_object(Bucket="events", Key="a/b.json", Body=b"2", IfNoneMatch="*")
        server.client.create_multipart_upload(Bucket="events", Key="a/c.json")

        assert server.keys("events") == ["a/b.json"]
        assert server.read("events", "a/b.json") == b"1"
        assert server.open_uploads("events") == ["a/c.json"]
        server.drop_bucket("events")
        with pytest.raises(ClientError, match="NoSuchBucket"):
            server.keys("events")
