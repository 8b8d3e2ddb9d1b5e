// Nodes with their disks, the quorum, and a node's settings.

import { get } from "../api.js";
import { bytes, h, number, plural } from "../dom.js";
import { failed, loaded, table } from "../widgets.js";
import { settingsTable } from "./topics.js";

export function nodesPage({ signal }) {
  return [
    h("h1", {}, "Nodes"),
    loaded(
      () => get("nodes", {}, signal),
      (found) => [
        table(
          [
            { title: "Node", kind: "number", show: (row) => h("a", { href: `#/nodes/${row.id}` }, `node ${row.id}`) },
            { title: "Address", show: (row) => (row.host ? `${row.host}:${row.port}` : "–") },
            { title: "Rack", show: (row) => row.rack ?? "–" },
            { title: "State", show: (row) => (row.is_up ? h("span", { class: "tag good" }, "up") : h("span", { class: "tag bad" }, "down")) },
            { title: "Leads", kind: "number", show: (row) => number(row.leads) },
            { title: "Replicas", kind: "number", show: (row) => number(row.replicas) },
            { title: "Behind", kind: "number", show: (row) => number(row.behind) },
          ],
          found.nodes,
          { caption: "Nodes" },
        ),
        h("h2", {}, "Log directories"),
        found.sizes.error ? failed(new Error(found.sizes.error)) : directories(found.sizes),
        h("h2", {}, "Quorum"),
        found.quorum.error ? failed(new Error(found.quorum.error)) : quorum(found.quorum),
      ],
      { every: 5000, signal },
    ),
  ];
}

function directories(sizes) {
  return [
    table(
      [
        { title: "Node", kind: "number", show: (row) => `node ${row.node}` },
        { title: "Directory", show: (row) => h("code", {}, row.path) },
        { title: "Replicas", kind: "number", show: (row) => number(row.replicas) },
        { title: "Logs", kind: "number", show: (row) => bytes(row.used_bytes) },
        { title: "Disk", show: disk },
      ],
      sizes.directories,
      { caption: "Log directories" },
    ),
    Object.entries(sizes.missing).map(([node, why]) => h("p", { class: "problem" }, `Node ${node}: ${why}`)),
  ];
}

function disk(row) {
  if (row.error) return h("span", { class: "tag bad" }, row.error);
  if (row.total_bytes <= 0) return "–";
  const used = row.total_bytes - row.usable_bytes;
  const text = `${bytes(used)} of ${bytes(row.total_bytes)}`;
  return [h("meter", { min: 0, max: 1, high: 0.9, value: String(used / row.total_bytes), "aria-label": text }), ` ${text}`];
}

function quorum(found) {
  return [
    h("p", {}, `Node ${found.leader} leads in epoch ${number(found.epoch)}; high watermark ${number(found.high_watermark)}.`),
    table(
      [
        { title: "Node", kind: "number", show: (row) => `node ${row.id}` },
        { title: "Role", show: (row) => (row.is_leader ? "leader" : row.is_voter ? "voter" : "observer") },
        { title: "Log end", kind: "number", show: (row) => number(row.log_end_offset) },
        { title: "Lag", kind: "number", show: (row) => number(row.lag) },
        { title: "Last fetch", kind: "number", show: (row) => (row.fetch_age_ms === null ? "–" : `${number(row.fetch_age_ms)} ms ago`) },
      ],
      found.replicas,
      { caption: "Replicas of the metadata log" },
    ),
  ];
}

export function nodePage({ names: [id], signal }) {
  return [
    h("h1", {}, `Node ${id}`),
    loaded(() => get(`nodes/${id}/settings`, {}, signal), settings, { signal }),
  ];
}

/** Settings of a node; the hundreds that nobody has set are folded away. */
function settings(found) {
  const unset = found.filter((one) => one.is_default);
  return [
    settingsTable(
      found.filter((one) => !one.is_default),
      null,
    ),
    h("details", {}, h("summary", {}, plural(unset.length, "default")), settingsTable(unset, null)),
  ];
}
