"""The S3 server's process: `python -m barnabas.demo.lake.server --directory D`.

It fetches the server's jars where they are missing, and those that Spark needs for the warehouse
too: when the bucket answers, both are there. Then it becomes the server (S3Proxy), whose settings
are in D.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from barnabas.base.private_files import write_private
from barnabas.demo.lake.place import S3_SERVER, SPARK, java
from barnabas.spark.packages import PackageError, check, fetch_jars
from barnabas.spark.session import default_ivy_directory

MAIN: Final = "org.gaul.s3proxy.Main"
JAVA_OPTIONS: Final = (
    *("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=32m"),
)


@click.command(help="Run the demo's S3 server.")
@click.option("--directory", required=True, help="Where its settings are.")
def main(directory: str) -> None:
    try:
        jars = find_jars()
    except PackageError as error:
        sys.exit(str(error))
    command = [java(), *JAVA_OPTIONS]
    command += [f"-Dlogback.configurationFile={os.path.join(directory, 'logback.xml')}"]
    command += ["-cp", os.pathsep.join(jars), MAIN]
    command += ["--properties", os.path.join(directory, "s3proxy.properties")]
    os.execvp(command[0], command)


def find_jars() -> list[str]:
    """Return the server's jars, fetched the first time and checked each time.

    Raises PackageError.
    """
    known = os.path.join(default_ivy_directory(), "lake-of-the-demo.jars")
    packages = (S3_SERVER, *SPARK)
    wanted = " ".join(package.address for package in packages)
    if os.path.exists(known):
        with open(known, encoding="utf-8") as file:
            fetched_for, *lists = file.read().splitlines()
        paths = [line.split(os.pathsep) for line in lists]
        if fetched_for == wanted and all(os.path.exists(one) for some in paths for one in some):
            check(packages, paths)
            return paths[0]
    paths = fetch_jars(packages, lambda line: print(line, flush=True))
    lines = [wanted, *(os.pathsep.join(some) for some in paths)]
    write_private(known, "\n".join(lines))
    return paths[0]


if __name__ == "__main__":
    main()
