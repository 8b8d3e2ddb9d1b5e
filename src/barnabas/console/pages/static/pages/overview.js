// What needs attention first, then health and throughput.

import { get, part } from "../api.js";
import { duration, h, number, plural, rate } from "../dom.js";
import { chart, loaded, table } from "../widgets.js";

export function overviewPage({ signal }) {
  return [
    h("h1", {}, "Overview"),
    loaded(() => get("findings", {}, signal), findings, { every: 5000, signal }),
    loaded(() => get("overview", {}, signal), facts, { every: 5000, signal }),
    loaded(() => get("late-groups", {}, signal), late, { every: 15000, signal }),
  ];
}

function findings(found) {
  if (!found.length)
    return h(
      "section",
      { class: "card good" },
      h("h2", {}, "Nothing needs attention"),
      h("p", {}, "All nodes are up, and every partition has its replicas in sync."),
    );
  return found.map((one) =>
    h(
      "section",
      { class: `card ${one.severity}` },
      h("h2", {}, one.title),
      h("p", {}, one.detail),
      h("p", { class: "advice" }, one.advice),
      one.link ? h("p", {}, h("a", { href: one.link }, "Show me")) : null,
    ),
  );
}

function facts(found) {
  const tile = (title, value, link, kind = "") =>
    h(
      "a",
      { class: `tile ${kind}`, href: link },
      h("span", { class: "value" }, value),
      h("span", {}, title),
    );
  return [
    h("p", { class: "quiet" }, `Cluster ${found.cluster_id}`),
    h(
      "section",
      { class: "tiles", "aria-label": "Health" },
      tile("nodes up", `${found.nodes_up} of ${found.nodes}`, "#/nodes", found.nodes_up < found.nodes ? "bad" : ""),
      tile("topics", number(found.topics), "#/topics"),
      tile("partitions", number(found.partitions), "#/topics"),
      tile("under-replicated", number(found.under_replicated), "#/topics?state=under-replicated", found.under_replicated ? "warning" : ""),
      tile("without a leader", number(found.offline), "#/topics?state=offline", found.offline ? "bad" : ""),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Throughput"),
      chart(found.throughput, { label: "Records written per second", format: rate }),
      found.busiest.length
        ? table(
            [
              { title: "Busiest topics", show: (row) => h("a", { href: `#/topics/${part(row.name)}` }, row.name) },
              { title: "Rate", kind: "number", show: (row) => rate(row.per_second) },
            ],
            found.busiest,
            { caption: "Busiest topics" },
          )
        : null,
    ),
  ];
}

function late(found) {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Late groups"),
    table(
      [
        { title: "Group", show: (row) => h("a", { href: `#/groups/${part(row.name)}` }, row.name) },
        { title: "State", show: (row) => row.state },
        { title: "Records to read", kind: "number", show: (row) => number(row.lag) },
        { title: "Oldest unread record", kind: "number", show: (row) => (row.lag_s === null ? "–" : `${duration(row.lag_s * 1000)} ago`) },
        { title: "Largest lag in", show: (row) => row.worst },
      ],
      found.groups,
      {
        caption: "Groups with the most records still to read",
        empty: found.is_partial ? "No group has records to read in topics that you may see." : "No group has records to read.",
      },
    ),
    found.is_partial ? h("p", { class: "quiet" }, "Topics that you may not see are not counted.") : null,
    found.left_out ? h("p", { class: "quiet" }, `${plural(found.left_out, "group")} were not looked at.`) : null,
  );
}
