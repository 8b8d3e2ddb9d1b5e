"""Commands in an installation without extras say in one line what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas

WITHOUT_EXTRAS = "import sys\nsys.modules.update(dict.fromkeys({extras!r}))\n"
"""None there is the same as a package that is not installed."""
EXTRAS = (
    *(
        "google.protobuf",
        "aiokafka",
        "boto3",
        "cryptography",
        "deltalake",
        "fastavro",
        "httptools",
        "httpx",
    ),
    *("hypercorn", "jsonschema", "jwt", "msgpack", "pandas", "prompt_toolkit", "psycopg"),
    *("pyarrow", "pyiceberg", "pymongo", "pyspark", "referencing", "starlette", "uvicorn"),
)
CASES = {
    "sql test x.sql": "sql",
    "sql -e x": "sql",
    "sql server": "sql",
    "pipeline run x.py": "spark",
    "registry start": "registry",
    "console": "console",
    "connect start worker.properties": "connect",
    "cert ca": "security",
    "dev --secure --port 0": "security",
    "demo": "demo",
}


@pytest.mark.parametrize("words", CASES)
def test_a_command_names_its_extra(words: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_EXTRAS.format(extras=EXTRAS))
    (tmp_path / "worker.properties").touch()
    paths = os.pathsep.join(str(one) for one in (tmp_path, Path(barnabas.__file__).parents[1]))
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", *words.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.count("\n") == 1
    hint = f"pip install '.[{CASES[words]}]' in the checkout of Barnabas"
    assert done.stderr.endswith(f"{hint}\n")
