"""`barnabas connect list`, `status`, `show`, `tasks`, `topics`: what there is and how it fares."""

import re
from typing import Any

import click

from barnabas.cli.connect.client import Connect, connect_options
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Output, Row

_CAUSE = "Caused by: "
_JAVAS_CLASS = re.compile(r"^(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?:: |$)")


@click.command(
    "list", epilog="\b\nExamples:\n  barnabas connect list\n  barnabas connect list --json\n"
)
@connect_options
def list_command(connect: Connect, as_json: bool) -> None:
    """List connectors with their states."""
    connectors = connect.get("connectors", expand=["status", "info"])
    rows = [_row(name, connectors[name]) for name in sorted(connectors)]
    columns = ("connector", "type", "state", "tasks", "class")
    Output(as_json).rows(rows, columns, "There are no connectors.")


def _row(name: str, found: dict[str, Any]) -> Row:
    status, info = found.get("status") or {}, found.get("info") or {}
    tasks = status.get("tasks") or []
    running = sum(task["state"] == "RUNNING" for task in tasks)
    return {
        "connector": name,
        "type": info.get("type"),
        "state": status.get("connector", {}).get("state"),
        "tasks": f"{running}/{len(tasks)} running",
        "class": info.get("config", {}).get("connector.class"),
    }


@click.command(
    "status",
    epilog="\b\nExamples:\n  barnabas connect status\n  barnabas connect status orders\n"
    "  barnabas connect status --lag -b localhost:9092\n\n"
    "Exit code 5 if a connector or task has failed.\n",
)
@click.argument("names", nargs=-1)
@click.option("--lag", is_flag=True, help="Show how far sinks are behind; asks the brokers too.")
@click.option(
    "--bootstrap-servers",
    "--bootstrap-server",
    "-b",
    metavar="HOST:PORT,...",
    help="Brokers to ask with --lag; by default BARNABAS_BOOTSTRAP_SERVERS, then localhost:9092.",
)
@connect_options
def status_command(
    connect: Connect,
    names: tuple[str, ...],
    lag: bool,
    bootstrap_servers: str | None,
    as_json: bool,
) -> int:
    """Show the states of connectors and tasks, and failures."""
    if names:
        statuses = [connect.get("connectors", name, "status") for name in names]
    else:
        expanded = connect.get("connectors", expand="status")
        statuses = [expanded[name]["status"] for name in sorted(expanded)]
    lags = _lags(connect, statuses, bootstrap_servers) if lag else {}
    rows = [row for status in statuses for row in _status_rows(status, lags)]
    columns = ["connector", "task", "state", "worker", *(["lag"] if lag else [])]
    output = Output(as_json)
    if as_json:
        output.result(
            [{**one, "lag": lags.get(one["name"])} if lag else one for one in statuses], ""
        )
    else:
        output.rows(rows, columns, "There are no connectors.")
        for row in rows:
            if row["error"]:
                task = "" if row["task"] is None else f", task {row['task']}"
                click.echo(f"\n{row['connector']}{task}: {row['error']}")
    return ExitCode.PROBLEMS if any(row["state"] == "FAILED" for row in rows) else ExitCode.DONE


def _status_rows(status: dict[str, Any], lags: dict[str, int]) -> list[Row]:
    return [
        {
            "connector": status["name"],
            "task": one.get("id"),
            "state": one["state"],
            "worker": one["worker_id"],
            "lag": None if "id" in one else lags.get(status["name"]),
            "error": failure_text(one.get("trace") or ""),
        }
        for one in (status["connector"], *status["tasks"])
    ]


def failure_text(trace: str) -> str:
    """Return what a trace says, without frames and Java's classes: the error, then its causes."""
    parts: list[list[str]] = []
    in_frames = True
    for line in filter(str.strip, trace.splitlines()):
        if line.startswith("\t"):
            in_frames = True
        elif in_frames or line.startswith(_CAUSE):
            parts.append([line])
            in_frames = False
        else:
            parts[-1].append(line)
    shown: list[str] = []
    for part in parts:
        is_cause = part[0].startswith(_CAUSE)
        own = "\n".join(part).removeprefix(_CAUSE)
        text = _JAVAS_CLASS.sub("", own) or own.rpartition(".")[2]
        if is_cause and any(text in known for known in shown):
            continue
        shown.append(f"caused by: {text}" if is_cause else text)
    return "\n  ".join("\n".join(shown).splitlines())


def _lags(connect: Connect, found: list[dict[str, Any]], bootstrap: str | None) -> dict[str, int]:
    """Records that each sink has still to take, by what its group has committed."""
    import os

    from confluent_kafka import Consumer, KafkaException, TopicPartition

    from barnabas.cli.connection import DEFAULT_BOOTSTRAP, Connection
    from barnabas.cli.errors import from_kafka
    from barnabas.cli.service_options import BOOTSTRAP_VARIABLE

    servers = bootstrap or os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP
    connection = Connection(servers, {}, connect.timeout_s)
    connection.probe()
    consumer = Consumer(connection.client_config(**{"group.id": "barnabas-connect-lag"}))
    lags: dict[str, int] = {}
    try:
        for name in (one["name"] for one in found if one["type"] == "sink"):
            behind = 0
            for pair in connect.get("connectors", name, "offsets")["offsets"]:
                partition = pair["partition"]
                place = TopicPartition(partition["kafka_topic"], partition["kafka_partition"])
                _, end = consumer.get_watermark_offsets(place, timeout=connect.timeout_s)
                behind += max(0, end - pair["offset"]["kafka_offset"])
            lags[name] = behind
    except KafkaException as error:
        raise from_kafka(error, "the lag cannot be told") from error
    finally:
        consumer.close()
    return lags


@click.command("show", epilog="\b\nExample:\n  barnabas connect show orders\n")
@click.argument("name")
@connect_options
def show_command(connect: Connect, name: str, as_json: bool) -> None:
    """Show a connector's configuration, states and topics."""
    info = connect.get("connectors", name)
    info["status"] = connect.get("connectors", name, "status")
    if as_json:
        Output(True).result(info, "")
        return
    click.echo(f"{name}  {info['type']}  {info['status']['connector']['state']}")
    for task in info["status"]["tasks"]:
        click.echo(f"  task {task['id']}  {task['state']}  {task['worker_id']}")
    for key, value in sorted(info["config"].items()):
        click.echo(f"{key}={value}")


@click.command("tasks", epilog="\b\nExample:\n  barnabas connect tasks orders --json\n")
@click.argument("name")
@connect_options
def tasks_command(connect: Connect, name: str, as_json: bool) -> None:
    """Show a connector's tasks with their configurations."""
    tasks = connect.get("connectors", name, "tasks")
    if as_json:
        Output(True).result(tasks, "")
        return
    for task in tasks:
        click.echo(f"task {task['id']['task']}")
        for key, value in sorted(task["config"].items()):
            click.echo(f"  {key}={value}")


@click.command(
    "topics",
    epilog="\b\nExamples:\n  barnabas connect topics orders\n"
    "  barnabas connect topics orders --reset\n",
)
@click.argument("name")
@click.option("--reset", is_flag=True, help="Clear the list; topics in use appear again.")
@connect_options
def topics_command(connect: Connect, name: str, reset: bool, as_json: bool) -> None:
    """Show the topics that a connector has used."""
    if reset:
        connect.ask("PUT", ("connectors", name, "topics", "reset"))
        Output(as_json).result({"connector": name, "reset": True}, f"{name}: topics are reset")
        return
    found = connect.get("connectors", name, "topics")
    topics = found.get(name, {}).get("topics", [])
    rows = [{"topic": topic} for topic in sorted(topics)]
    Output(as_json).rows(rows, ("topic",), f"{name} has used no topics.")


@click.command(
    "config",
    epilog="\b\nExamples:\n  barnabas connect config orders > orders.properties\n"
    "  barnabas connect config orders --json > orders.json\n",
)
@click.argument("name")
@connect_options
def config_command(connect: Connect, name: str, as_json: bool) -> None:
    """Print a connector's configuration, as a file that `apply` takes."""
    config = connect.get("connectors", name, "config")
    if as_json:
        Output(True).result({"name": name, "config": config}, "")
        return
    for key, value in sorted(config.items()):
        if "\n" in value:
            raise CliError(f"the value of {key} has several lines", hint="use --json")
        click.echo(f"{key}={value}")
