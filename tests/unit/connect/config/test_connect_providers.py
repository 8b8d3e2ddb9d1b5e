"""Values of settings from files, directories and the environment."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from barnabas.connect.config.providers import (
    ConfigProvider,
    ConfigProviders,
    Provided,
)
from barnabas.schemas.data.errors import ConfigError

PLACE = "org.apache.kafka.common.config.provider."


def providers(name: str, class_name: str, **parameters: str) -> ConfigProviders:
    settings = {"config.providers": name, f"config.providers.{name}.class": class_name}
    settings |= {
        f"config.providers.{name}.param.{key.replace('_', '.')}": value
        for key, value in parameters.items()
    }
    return ConfigProviders.of_worker(settings)


def test_keys_of_a_file_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("password = pä\\u00df word\nuser: me\n", encoding="utf-8")
    found = providers("file", PLACE + "FileConfigProvider").resolve(
        {
            "url": f"x://${{file:{file}:user}}:${{file:{file}:password}}@h",
            "other": f"${{file:{file}:none}} ${{vault:a:b}} $plain",
        }
    )
    assert found.settings["url"] == "x://me:päß word@h"
    assert found.settings["other"] == f"${{file:{file}:none}} ${{vault:a:b}} $plain"
    assert "päß" not in repr(found)
    assert found.hidden("cannot log in with päß word") == "cannot log in with [hidden]"


def test_files_of_a_directory_are_values(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "key").write_text("value")
    (tmp_path / "outside").write_text("not this")
    found = providers("dir", PLACE + "DirectoryConfigProvider").resolve(
        {
            "a": f"${{dir:{tmp_path}/inside:key}}",
            "b": f"${{dir:{tmp_path}/inside:../outside}}",
            "c": f"${{dir:{tmp_path}/none:key}}",
        }
    )
    assert found.settings["a"] == "value"
    assert found.settings["b"].startswith("${dir:")
    assert found.settings["c"].startswith("${dir:")


@pytest.mark.parametrize("kind", ["FileConfigProvider", "DirectoryConfigProvider"])
def test_only_allowed_paths_are_read(tmp_path: Path, kind: str) -> None:
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    for directory in (allowed, secret):
        directory.mkdir()
        (directory / "f").write_text("key=value")
    part = "/f" if kind.startswith("File") else ""
    key = "key" if part else "f"
    found = providers("p", PLACE + kind, allowed_paths=str(allowed)).resolve(
        {
            "a": f"${{p:{allowed}{part}:{key}}}",
            "b": f"${{p:{secret}{part}:{key}}}",
            "c": f"${{p:{allowed}/../secret{part}:{key}}}",
        }
    )
    assert found.settings["a"] in ("value", "key=value")
    assert found.settings["b"].startswith("${p:")
    assert found.settings["c"].startswith("${p:")
    with pytest.raises(ConfigError, match=r"^Path relative is not absolute$"):
        providers("p", PLACE + kind, allowed_paths="relative")
    with pytest.raises(ConfigError, match=r"does not exist$"):
        providers("p", PLACE + kind, allowed_paths=f"{tmp_path}/none")


def test_variables_of_the_environment_that_the_pattern_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_SECRET", "one")
    monkeypatch.setenv("OTHER", "two")
    env = providers("env", PLACE + "EnvVarConfigProvider", allowlist_pattern="MY_.*")
    found = env.resolve({"a": "${env:MY_SECRET}", "b": "${env:OTHER}", "c": "${env:NONE_OF_IT}"})
    assert found.settings == {"a": "one", "b": "${env:OTHER}", "c": "${env:NONE_OF_IT}"}
    with pytest.raises(ConfigError, match=r"invalid value 'path'$"):
        env.resolve({"a": "${env:path:MY_SECRET}"})


class Vault(ConfigProvider):
    """A user's config provider."""

    def get(self, path: str, keys: Collection[str]) -> Provided:
        """Return each key twice."""
        return Provided({key: key * 2 for key in keys}, ttl_ms=5)


def test_a_provider_of_ones_own_says_how_long_values_hold() -> None:
    found = providers("v", f"{__name__}:Vault").resolve({"a": "${v:path:xy}${v:zz}"})
    assert found.settings == {"a": "xyxyzzzz"}
    assert found.ttls_ms == {"path": 5, "": 5}


def test_a_provider_that_cannot_be_had_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^Failed to find any class that matches no\.Such$"):
        providers("x", "no.Such")
    with pytest.raises(ConfigError, match=r"config\.providers\.x\.class"):
        ConfigProviders.of_worker({"config.providers": "x"})
    file = providers("f", PLACE + "FileConfigProvider")
    with pytest.raises(ConfigError, match=r"^Could not read properties from file /no/such$"):
        file.resolve({"a": "${f:/no/such:key}"})
