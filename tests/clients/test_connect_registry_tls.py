"""Converters with the registry of this project behind https, certificates and logins."""

from __future__ import annotations

from pathlib import Path

import pytest

import barnabas
from barnabas.schemas.data.builder import struct_of
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Struct
from support.certificates import Authority
from support.connect.registry import registry_converter
from support.connect.samples import TYPES, VALUES
from support.registry_process import registry_process

pytestmark = pytest.mark.slow
SSL = "schema.registry.ssl."
CONVERTERS = (
    "io.confluent.connect.avro.AvroConverter",
    "io.confluent.connect.json.JsonSchemaConverter",
    "io.confluent.connect.protobuf.ProtobufConverter",
)


def test_converters_reach_a_registry_that_trusts_nobody(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    passwords = tmp_path / "passwords"
    passwords.write_text("alice: secret,writer\n")
    serving = {
        "listeners": "https://127.0.0.1:0",
        "inter_instance_protocol": "https",
        "ssl_keystore_location": authority.issue("registry"),
        "ssl_truststore_location": authority.file,
        "ssl_client_authentication": "REQUIRED",
        "authentication_method": "BASIC",
        "barnabas_registry_password_file": str(passwords),
    }
    asking = {
        f"{SSL}truststore.location": authority.file,
        f"{SSL}keystore.location": authority.issue("client"),
        "basic.auth.credentials.source": "USER_INFO",
        "max.retries": "10",  # until there is a leader
    }
    schema = struct_of(TYPES, name="geo.Point")
    with (
        barnabas.Cluster() as cluster,
        registry_process(cluster.bootstrap_servers, **serving) as registry,
    ):
        for name in CONVERTERS:
            login = {"basic.auth.user.info": "alice:secret"}
            made = registry_converter(name, registry.url, **asking, **login)
            data = made.from_connect(name, schema, Struct.of(schema, VALUES))
            found = made.to_connect(name, data)[1]
            assert (found.get("amount"), found.get("ts")) == (VALUES["amount"], VALUES["ts"])
            wrong = {"basic.auth.user.info": "alice:other"}
            stranger = registry_converter(name, registry.url, **asking, **wrong)
            with pytest.raises(DataError, match=r"answers 401"):
                stranger.to_connect(name, data)
