"""The table of a result, as Markdown; `python -m bench.report` prints that of the latest run.

With `--readme PATH` it goes into that file, between the two marks.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import (
    CONNECT_FIGURES,
    LIMITS,
    METRICS_FIGURES,
    NOT_THERE,
    PULL_FIGURES,
    QUERY_RIVALS,
    REGISTRY_FIGURES,
    SCRAPE_FIGURES,
    Comparison,
    Figure,
    Rounds,
    alone,
    compare,
)
from bench.metrics_cost import OFF, OFF_AGAIN
from bench.settings import RESULTS

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
CONNECT_RUNNERS = ("kafka", "driver", "barnabas", "spark")


def render_table(result: dict[str, Any]) -> str:
    """Markdown: figures, ratios with spread, aims, the machine's limits, and the machine."""
    comparisons = compare(result["rounds"])
    lines = [
        *_table("Kafka", comparisons),
        *_limits(result, comparisons),
        *_registries(result["rounds"]),
        *_queries(result["rounds"]),
        *_connectors(result["rounds"]),
        *_metrics(result["rounds"]),
        _caption(result),
    ]
    return "\n".join(lines)


def latest_result() -> Path:
    """The newest complete run. Raises FileNotFoundError before the first."""
    results = sorted(RESULTS.glob("*.json"))
    if not results:
        raise FileNotFoundError(f"no result in {RESULTS}; run `make bench`")
    return results[-1]


def write_into(readme: Path, table: str, chart: str) -> None:
    """Replace what is between the marks. Raises ValueError where they are missing."""
    text = readme.read_text()
    if BEGIN not in text or END not in text:
        raise ValueError(f"{readme} lacks {BEGIN} and {END}")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    readme.write_text(f"{head}{BEGIN}\n{table}\n\n{chart}\n{END}{tail}")


def _table(rival: str, comparisons: list[Comparison]) -> list[str]:
    if not comparisons:
        return []
    return [
        f"| | {rival} | Barnabas | Ratio | Spread | Aim |",
        "|---|---:|---:|---:|---:|---:|",
        *(_row(comparison) for comparison in comparisons),
        "",
    ]


def _registries(rounds: Rounds) -> list[str]:
    """The schema registry's table, beside Karapace's where that was there."""
    comparisons = compare(rounds, REGISTRY_FIGURES, "karapace")
    if comparisons:
        return ["The schema registry:", "", *_table("Karapace", comparisons)]
    found = alone(rounds, REGISTRY_FIGURES)
    if not found:
        return []
    return ["The schema registry, without Karapace, which was not there:", "", *_alone(found)]


def _queries(rounds: Rounds) -> list[str]:
    """The tables of SQL over streams, beside each engine that was measured."""
    lines = []
    for engine, name, figures in QUERY_RIVALS:
        lines += _table(name, compare(rounds, figures, engine))
    if pulls := alone(rounds, PULL_FIGURES):
        lines += _alone(pulls)
    return ["SQL over streams, with a Barnabas broker:", "", *lines] if lines else []


def _metrics(rounds: Rounds) -> list[str]:
    """The table of what metrics cost: a node without them, and one that is scraped.

    Below it, what two nodes without metrics have: the noise of the measurement.
    """
    lines = _table("Metrics off", compare(rounds, METRICS_FIGURES, OFF))
    equal = [
        {"barnabas": each[OFF_AGAIN], OFF: each[OFF]}
        for each in rounds
        if OFF in each and OFF_AGAIN in each
    ]
    if noise := compare(equal, METRICS_FIGURES, OFF):
        ratios = "; ".join(f"{one.figure.label} {one.ratio:.3f}" for one in noise)
        lines += [f"Ratios of two nodes without metrics: {ratios}.", ""]
    if scrapes := alone(rounds, SCRAPE_FIGURES):
        lines += _alone(scrapes)
    return ["Metrics off and on:", "", *lines] if lines else []


def _connectors(rounds: Rounds) -> list[str]:
    """The table of connectors by what runs them, with the plain driver as the limit."""
    lines = []
    for figure in CONNECT_FIGURES:
        values = [
            [each[runner][figure.name] for each in rounds if figure.name in each.get(runner, {})]
            for runner in CONNECT_RUNNERS
        ]
        if any(values):
            shown = [
                f"{median(one):,.{figure.digits}f}"
                if one
                else NOT_THERE.get((figure.name, who), "")
                for who, one in zip(CONNECT_RUNNERS, values, strict=True)
            ]
            lines.append(f"| {figure.label}, {figure.unit} | {' | '.join(shown)} |")
    if not lines:
        return []
    return [
        "Connectors, with Barnabas brokers (Kafka's worker with a heap of 512 MB):",
        "",
        "| | Kafka's | Plain driver | Barnabas | Barnabas on Spark |",
        "|---|---:|---:|---:|---:|",
        *lines,
        "",
    ]


def _alone(found: list[tuple[Figure, float, float, float]]) -> list[str]:
    return [
        "| | Barnabas | Spread |",
        "|---|---:|---:|",
        *(
            f"| {figure.label} | {middle:,.{figure.digits}f} {figure.unit} "
            f"| {least:,.{figure.digits}f} to {most:,.{figure.digits}f} |"
            for figure, middle, least, most in found
        ),
        "",
    ]


def _row(comparison: Comparison) -> str:
    figure = comparison.figure
    sign = "≥" if figure.more_is_better else "≤"
    mark = {True: " ✓", False: " ✗", None: ""}[comparison.reached]
    aims = [f"{sign} {figure.aim:g}"] if figure.aim is not None else []
    if figure.aim_value is not None:
        aims.append(f"{sign} {figure.aim_value:g} {figure.unit}")
    aim = ", ".join(aims) + mark
    return (
        f"| {figure.label} | {comparison.rival:,.{figure.digits}f} {figure.unit} "
        f"| {comparison.barnabas:,.{figure.digits}f} {figure.unit} "
        f"| **{comparison.ratio:.2f}** "
        f"| {comparison.ratio_least:.2f} to {comparison.ratio_most:.2f} | {aim} |"
    )


def _limits(result: dict[str, Any], comparisons: list[Comparison]) -> list[str]:
    measured = {comparison.figure.name: comparison for comparison in comparisons}
    lines = []
    for limit, figure, what in LIMITS:
        if limit in result["limits"] and figure in measured:
            top = result["limits"][limit]
            comparison = measured[figure]
            lines.append(
                f"Share of the machine's limit ({what}: {top:,.0f} MB/s): "
                f"Barnabas {comparison.barnabas / top:.0%}, Kafka {comparison.rival / top:.0%}. "
                f"Measured by: {comparison.figure.label.lower()}."
            )
    return [*lines, ""] if lines else []


def _caption(result: dict[str, Any]) -> str:
    machine = result["machine"]
    rounds = len(result["rounds"])
    note = " Smoke run: the volumes are too small to mean anything." if result["quick"] else ""
    return (
        f"{result['date'][:10]}, {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gb']} GB, {machine['kernel']}, Python {machine['python']}, "
        f"Java {machine['java']}; Barnabas {machine['barnabas']} and Apache Kafka "
        f"{machine['kafka']} (heap 1 GB), clients and broker on the same machine; "
        f"{rounds} interleaved round{'s' if rounds > 1 else ''}. Figures are medians, the ratio "
        f"is the median of the rounds' ratios, memory is PSS.{note}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("result", nargs="?", type=Path, help="a JSON file; else the latest")
    parser.add_argument("--readme", type=Path, help="the file to write the table into")
    options = parser.parse_args()
    path = options.result or latest_result()
    table = render_table(json.loads(path.read_text()))
    if options.readme is None:
        print(table)
    else:
        chart = path.with_suffix(".svg").resolve().relative_to(options.readme.resolve().parent)
        write_into(options.readme, table, f"![Barnabas beside Apache Kafka]({chart})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
