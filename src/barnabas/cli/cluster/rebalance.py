"""`barnabas rebalance`: replicas and leaders spread evenly over the nodes there are."""

import json

import click

from barnabas.cli.balance.options import Wishes, move_options
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.output import print_json
from barnabas.cli.reaching import reached

EPILOG = """\b
Examples:
  barnabas rebalance --dry-run
  barnabas rebalance --throttle 50MB
  barnabas rebalance --dry-run --write-plan plan.json
  barnabas rebalance --plan plan.json --yes

It shows the plan first. Ctrl-C is safe at any time; the same command continues later. Replicas on
nodes that are down stay there; `barnabas cluster drain NODE` moves them away for good.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(dir_okay=False),
    help="Carry out this plan (JSON of kafka-reassign-partitions) instead of making one.",
)
@click.option(
    "--write-plan", type=click.Path(dir_okay=False), help="Write the plan to this file too."
)
@move_options
@connection_options
def command(
    connection: Connection,
    wishes: Wishes,
    plan_path: str | None,
    write_plan: str | None,
    as_json: bool,
) -> None:
    """Spread replicas and leaders evenly over all live nodes, moving as little as possible.

    It respects racks if every node has one. At the end it elects the preferred leaders.
    """
    from barnabas.cli.balance.flow import carry_out
    from barnabas.cli.balance.plan_file import moves_to, read_plan, to_document
    from barnabas.cli.balance.planner import plan_rebalance
    from barnabas.cli.balance.survey import survey

    wanted = None if plan_path is None else read_plan(plan_path)
    with reached(connection) as admin:
        surveyed = survey(admin)
        if wanted is not None:
            moves = moves_to(surveyed, wanted)
        else:
            moves = plan_rebalance(surveyed.brokers(), surveyed.placement())
        if write_plan is not None:
            with open(write_plan, "w", encoding="utf-8") as file:
                json.dump(to_document(moves), file, indent=2)
                file.write("\n")
        again = "barnabas rebalance" + (f" --plan {plan_path}" if plan_path else "")
        value = carry_out(admin, surveyed, moves, wishes, as_json=as_json, go_on=again)
    if as_json:
        print_json(value)
