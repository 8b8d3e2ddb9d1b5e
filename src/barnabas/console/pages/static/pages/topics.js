// Topics: the list, and one topic with its records, partitions, settings and groups.

import { get, part, post, remove } from "../api.js";
import { bytes, h, number, plural, rate, say } from "../dom.js";
import {
  action,
  confirmed,
  field,
  formDialog,
  listState,
  loaded,
  table,
  tabs,
} from "../widgets.js";
import { messagesTab } from "./messages.js";

export function topicsPage(page) {
  const { me, go } = page;
  return [
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Topics"),
      action("Create a topic", me.rights.includes("edit"), "edit", () => create(go), "main"),
    ),
    listState(page, {
      address: "/topics",
      load: (state, signal) => get("topics", state, signal),
      columns: COLUMNS,
      caption: "Topics",
      search: "Search topics",
      filters: [
        {
          name: "state",
          label: "State",
          options: [
            ["", "All"],
            ["under-replicated", "Under-replicated"],
            ["offline", "Without a leader"],
          ],
        },
        { name: "internal", label: "Internal topics" },
      ],
      sort: "name",
      empty: "There are no topics yet.",
      none: "No topic fits.",
    }),
  ];
}

const COLUMNS = [
  {
    title: "Topic",
    sort: "name",
    show: (row) => [
      h("a", { href: `#/topics/${part(row.name)}` }, row.name),
      row.is_internal ? h("span", { class: "tag" }, "internal") : null,
    ],
  },
  { title: "Partitions", kind: "number", sort: "partitions", show: (row) => number(row.partitions) },
  { title: "Replicas", kind: "number", show: (row) => number(row.replication) },
  { title: "Size", kind: "number", sort: "size", show: (row) => bytes(row.size_bytes) },
  { title: "Written", kind: "number", sort: "rate", show: (row) => rate(row.per_second) },
  { title: "State", show: (row) => topicState(row) },
];

function topicState(row) {
  if (row.offline) return h("span", { class: "tag bad" }, `${plural(row.offline, "partition")} without a leader`);
  if (row.under_replicated)
    return h("span", { class: "tag warning" }, `${number(row.under_replicated)} under-replicated`);
  return h("span", { class: "tag good" }, "healthy");
}

function create(go) {
  const fields = [
    field("Name", h("input", { name: "name", required: true, autocomplete: "off", maxlength: 249 })),
    field("Partitions", h("input", { name: "partitions", type: "number", min: 1, value: "1", required: true })),
    field(
      "Replicas",
      h("input", { name: "replication", type: "number", min: 1, placeholder: "default" }),
      "Empty: the cluster’s default.",
    ),
    field(
      "Settings",
      h("textarea", { name: "settings", rows: 4, placeholder: "retention.ms=604800000" }),
      "One key=value a line.",
    ),
  ];
  return formDialog("Create a topic", fields, "Create", async (values) => {
    const settings = {};
    for (const line of values.settings.split("\n").filter((one) => one.trim())) {
      const at = line.indexOf("=");
      if (at < 0) throw new Error(`“${line}” is not key=value`);
      settings[line.slice(0, at).trim()] = line.slice(at + 1).trim();
    }
    await post("topics", {
      name: values.name,
      partitions: Number(values.partitions),
      replication: Number(values.replication || -1),
      settings,
    });
    say(`Topic ${values.name} was created.`);
    go(`/topics/${part(values.name)}`);
  });
}

export function topicPage(page) {
  const [name, tab = "messages"] = page.names;
  const { me, go, signal } = page;
  const path = `topics/${part(name)}`;
  const head = loaded(
    () =>
      get(path, {}, signal).catch((error) => {
        if (error.kind === "absent") records.remove(); // the card says it once
        throw error;
      }),
    (found) => [
      h(
        "p",
        { class: "facts" },
        plural(found.partitions, "partition"),
        " · ",
        plural(found.replication, "replica"),
        " · ",
        bytes(found.size_bytes),
        " · ",
        rate(found.per_second),
        " ",
        topicState(found),
      ),
      h(
        "div",
        { class: "actions" },
        action("Add partitions", found.may.edit, "edit", () => grow(path, found, head)),
        action("Delete records", found.may.admin, "admin", () => empty(path, found), "danger"),
        action("Delete topic", found.may.admin, "admin", () => drop(path, found, go), "danger"),
      ),
    ],
    { signal },
  );
  const records = h(
    "div",
    {},
    tabs(
      [
        ["messages", "Messages", () => messagesTab(page, name)],
        ["partitions", "Partitions", () => partitionsTab(page, name)],
        ["settings", "Settings", () => settingsTab(path, name, me, signal)],
        ["groups", "Groups", () => groupsTab(path, signal)],
      ],
      tab,
      (to) => go(`/topics/${part(name)}/${to}`),
    ),
  );
  return [h("h1", {}, name), head, records];
}

function grow(path, found, head) {
  const fields = [
    h(
      "p",
      {},
      "Records with the same key may go to another partition from then on. Partitions cannot be removed again.",
    ),
    field(
      "Partitions",
      h("input", { name: "count", type: "number", min: found.partitions + 1, value: String(found.partitions + 1), required: true }),
    ),
  ];
  return formDialog(`Add partitions to ${found.name}`, fields, "Add", async (values) => {
    await post(`${path}/partitions`, { count: Number(values.count) });
    say("Partitions were added.");
    head.again();
  });
}

async function empty(path, found) {
  const done = await confirmed({
    title: `Delete all records of ${found.name}`,
    lost: `All records that ${found.name} has now (${bytes(found.size_bytes)} with replicas) are lost for good. Groups that have not read them never will.`,
    name: found.name,
    button: "Delete the records",
    work: (confirm) => remove(`${path}/records`, { confirm }),
  });
  if (done) say(`${plural(done.records, "record")} deleted.`);
}

async function drop(path, found, go) {
  const done = await confirmed({
    title: `Delete ${found.name}`,
    lost: `The topic, its ${plural(found.partitions, "partition")} and all records in it (${bytes(found.size_bytes)} with replicas) are lost for good. Producers and consumers that use it fail.`,
    name: found.name,
    button: "Delete the topic",
    work: (confirm) => remove(path, { confirm }),
  });
  if (done) {
    say(`${found.name} was deleted.`);
    go("/topics");
  }
}

function partitionsTab(page, name) {
  return listState(page, {
    address: `/topics/${part(name)}/partitions`,
    load: (state, signal) => get(`topics/${part(name)}/partitions`, state, signal),
    columns: [
      { title: "Partition", kind: "number", show: (row) => row.number },
      { title: "Replicas by node", show: replicas },
      { title: "First offset", kind: "number", show: (row) => number(row.first_offset) },
      { title: "Next offset", kind: "number", show: (row) => number(row.next_offset) },
      {
        title: "Offsets",
        kind: "number",
        show: (row) =>
          row.next_offset === null ? "–" : number(row.next_offset - (row.first_offset ?? 0)),
      },
      { title: "Size", kind: "number", show: (row) => bytes(row.size_bytes) },
    ],
    caption: "Partitions",
    size: 100,
  });
}

function replicas(row) {
  return h(
    "span",
    { class: "replicas" },
    row.replicas.map((node) => {
      const leads = node === row.leader;
      const insync = row.isr.includes(node);
      const kind = leads ? "leads" : insync ? "insync" : "behind";
      const text = leads ? "leader" : insync ? "in sync" : "behind or down";
      return h("span", { class: `replica ${kind}`, title: `node ${node}: ${text}` }, `${node} ${text}`);
    }),
    row.leader < 0 ? h("span", { class: "tag bad" }, "no leader") : null,
  );
}

function settingsTab(path, name, me, signal) {
  const list = loaded(
    () => Promise.all([get(`${path}/settings`, {}, signal), get(path, {}, signal)]),
    ([found, topic]) => settingsTable(found, topic.may.edit ? (row) => edit(path, name, row, list) : null),
    { signal },
  );
  return list;
}

export function settingsTable(found, onedit) {
  return table(
    [
      {
        title: "Setting",
        show: (row) => [
          h("code", {}, row.name),
          row.documentation ? h("small", { class: "doc" }, row.documentation) : null,
        ],
      },
      {
        title: "Value",
        show: (row) => [
          row.is_secret ? h("em", {}, "secret") : h("code", {}, row.value === "" ? "(empty)" : (row.value ?? "–")),
          row.inherited !== null ? h("small", { class: "doc" }, `without it: ${row.inherited}`) : null,
        ],
      },
      {
        title: "Source",
        show: (row) => h("span", { class: `tag ${row.is_default ? "" : "set"}` }, row.source),
      },
      ...(onedit
        ? [
            {
              title: "Change",
              show: (row) =>
                row.is_read_only
                  ? null
                  : h("button", { type: "button", "aria-label": `Change ${row.name}`, onclick: () => onedit(row) }, "Change"),
            },
          ]
        : []),
    ],
    found,
    { caption: "Settings" },
  );
}

function edit(path, name, row, list) {
  const fields = [
    row.documentation ? h("p", {}, row.documentation) : null,
    field(row.name, h("input", { name: "value", value: row.value ?? "", autocomplete: "off" })),
    row.source === "topic"
      ? h("label", { class: "check" }, h("input", { type: "checkbox", name: "remove" }), `Remove it, so that ${row.inherited ?? "the default"} applies`)
      : null,
  ];
  return formDialog(`Change a setting of ${name}`, fields, "Change", async (values) => {
    await post(`${path}/settings`, { settings: { [row.name]: values.remove ? null : values.value } });
    say(`${row.name} was changed.`);
    list.again();
  });
}

function groupsTab(path, signal) {
  return loaded(
    () => get(`${path}/groups`, {}, signal),
    (found) =>
      table(
        [
          { title: "Group", show: (row) => h("a", { href: `#/groups/${part(row.name)}` }, row.name) },
          { title: "State", show: (row) => row.state },
          { title: "Lag here", kind: "number", show: (row) => number(row.lag) },
        ],
        found,
        { caption: "Groups that read this topic", empty: "No group has committed offsets of this topic." },
      ),
    { every: 10000, signal },
  );
}
