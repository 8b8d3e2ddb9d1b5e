// Transactions: those that are open, by age, and those that no coordinator will end.

import { get, part, post } from "../api.js";
import { duration, h, number, plural, put, say } from "../dom.js";
import { action, confirmed, field, listState, loaded, table, tabs } from "../widgets.js";

const KINDS = { Ongoing: "warning", PrepareCommit: "warning", PrepareAbort: "warning", Dead: "bad" };
const STATES = ["Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Empty"];

export function transactionsPage(page) {
  const { names, go } = page;
  return [
    h("h1", {}, "Transactions"),
    tabs(
      [
        ["open", "Transactions", () => open(page)],
        ["hanging", "Hanging", () => hanging(page)],
      ],
      names[0] || "open",
      (name) => go(name === "open" ? "/transactions" : `/transactions/${name}`),
    ),
  ];
}

function open(page) {
  const { me, again } = page;
  const may = me.everywhere.includes("admin");
  return listState(page, {
    address: "/transactions",
    load: (state, signal) => get("transactions", state, signal),
    columns: [
      { title: "Transactional id", show: (row) => row.transactional_id },
      { title: "State", show: (row) => h("span", { class: `tag ${KINDS[row.state] ?? ""}` }, row.state) },
      { title: "Open for", kind: "number", show: (row) => duration(row.age_ms) },
      { title: "Time-out", kind: "number", show: (row) => duration(row.timeout_ms) },
      { title: "Producer", kind: "number", show: (row) => (row.producer_epoch === null ? row.producer_id : `${row.producer_id}, epoch ${row.producer_epoch}`) },
      { title: "Coordinator", kind: "number", show: (row) => h("a", { href: `#/nodes/${row.coordinator}` }, `node ${row.coordinator}`) },
      { title: "Partitions", show: (row) => places(row.partitions) },
      {
        title: "Action",
        show: (row) => (row.state === "Ongoing" ? action("Abort", may, "admin", () => end(row, again), "danger") : null),
      },
    ],
    caption: "Transactions",
    search: "Search ids, or a producer’s number",
    filters: [
      {
        name: "state",
        label: "State",
        options: [["", "Open, the oldest first"], ["all", "All"], ...STATES.map((one) => [one, one])],
      },
    ],
    empty: "No transaction is open.",
    none: "No transaction fits.",
    every: 5000,
  });
}

function places(list) {
  if (!list.length) return "–";
  const shown = list.slice(0, 5).join(", ");
  return list.length > 5 ? `${shown} and ${number(list.length - 5)} more` : shown;
}

async function end(row, again) {
  const name = row.transactional_id;
  const done = await confirmed({
    title: `Abort the transaction of ${name}`,
    lost:
      `What it has written to ${plural(row.partitions.length, "partition")} is lost: consumers with read_committed ` +
      "skip it. Its producer is fenced: if it still runs, it fails with PRODUCER_FENCED.",
    name,
    button: "Abort the transaction",
    work: (confirm) => post(`transactions/${part(name)}/abort`, { confirm }),
  });
  if (done) {
    say(`The transaction of ${name} was aborted.`);
    again();
  }
}

function hanging(page) {
  const { me, query, go, signal } = page;
  const may = me.everywhere.includes("admin");
  const minutes = h("input", { type: "number", min: "0", value: query.get("minutes") ?? "15", id: "minutes" });
  const topic = h("input", { value: query.get("topic") ?? "", id: "topic", spellcheck: "false" });
  const place = h("div", {});
  const find = () => {
    const asked = { minutes: minutes.value, topic: topic.value.trim() };
    go("/transactions/hanging", { ...asked, find: "1" }, true);
    const list = loaded(() => get("hanging", { ...asked, size: 500 }, signal), (found) => hangingTable(found, may, () => list.again()), { signal });
    put(place, list);
  };
  if (query.get("find")) find();
  return [
    h(
      "p",
      { class: "quiet" },
      "A hanging transaction is open in a partition, and no coordinator will end it. Consumers with read_committed do not read past it.",
    ),
    h(
      "form",
      {
        class: "filters",
        onsubmit: (event) => {
          event.preventDefault();
          find();
        },
      },
      field("Not written to for minutes", minutes),
      field("Topic (all if empty)", topic),
      h("button", { class: "main", id: "find-hanging" }, "Find hanging transactions"),
    ),
    place,
  ];
}

function hangingTable(found, may, again) {
  return [
    table(
      [
        { title: "Partition", show: (row) => h("a", { href: `#/topics/${part(row.topic)}` }, `${row.topic}-${row.partition}`) },
        { title: "Producer", kind: "number", show: (row) => `${row.producer_id}, epoch ${row.producer_epoch}` },
        { title: "Open from offset", kind: "number", show: (row) => number(row.start_offset) },
        { title: "Not written to for", kind: "number", show: (row) => duration(row.idle_ms) },
        { title: "Action", show: (row) => action("Abort", may, "admin", () => endHanging(row, again), "danger") },
      ],
      found.rows,
      { caption: "Hanging transactions", empty: "No transaction hangs." },
    ),
    found.total > found.rows.length
      ? h("p", { class: "quiet" }, `${number(found.total)} in all; these are the first ${number(found.rows.length)}.`)
      : null,
  ];
}

async function endHanging(row, again) {
  const name = `${row.topic}-${row.partition}`;
  const { topic, partition, producer_id, start_offset } = row;
  const done = await confirmed({
    title: `Abort the hanging transaction in ${name}`,
    lost:
      `What producer ${producer_id} has written to this partition from offset ${number(start_offset)} on is lost: ` +
      "consumers with read_committed skip it, and read on.",
    name,
    button: "Abort the transaction",
    work: (confirm) => post("hanging/abort", { topic, partition, producer_id, start_offset, confirm }),
  });
  if (done) {
    say(`The hanging transaction in ${name} was aborted.`);
    again();
  }
}
