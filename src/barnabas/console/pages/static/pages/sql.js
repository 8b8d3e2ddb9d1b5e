// A SQL server: statements and their results, streams and tables, queries and how they run.

import { get, lines, part, post, remove } from "../api.js";
import { duration, h, number, plural, put, say, time } from "../dom.js";
import { action, chart, confirmed, failed, field, listState, loaded, table, tabs } from "../widgets.js";
import { completion } from "./sql_completion.js";
import { inWords, planPicture } from "./sql_plan.js";

export function sqlPage(page) {
  const { names, go } = page;
  return [
    h("h1", {}, "SQL"),
    tabs(
      [
        ["editor", "Editor", () => editor(page)],
        ["sources", "Streams and tables", () => sources(page)],
        ["queries", "Queries", () => queries(page)],
      ],
      names[0] || "editor",
      (name) => go(name === "editor" ? "/sql" : `/sql/${name}`),
    ),
  ];
}

const ROWS_SHOWN = 500;
const QUERY = /^\s*(select|print)\b/i;

function editor(page) {
  const { me, query, go, signal } = page;
  const may = { run: me.everywhere.includes("view"), read: me.everywhere.includes("read") };
  const text = h("textarea", { class: "code", rows: 8, spellcheck: "false", id: "statement", value: query.get("sql") || "" });
  const status = h("p", { role: "status", class: "status" });
  const result = h("div", {});
  let running = null;
  const stop = action("Stop", may.read, "read", () => running?.abort());
  stop.disabled = true;
  stop.id = "stop";
  signal.addEventListener("abort", () => running?.abort());
  const run = async () => {
    running?.abort();
    put(result);
    go("/sql", { sql: text.value }, true);
    try {
      if (QUERY.test(text.value)) await select();
      else await statement();
    } catch (error) {
      if (error.name !== "AbortError") put(result, failed(error));
      put(status, error.name === "AbortError" ? status.textContent : "");
    }
  };
  const statement = async () => {
    const { confirm, right } = await post("sql/weigh", { sql: text.value });
    let found;
    const work = (written) => post("sql/statements", { sql: text.value, confirm: written });
    if (confirm === null) {
      put(status, "Running…");
      found = await work();
    } else {
      found = await confirmed({
        title: "Run a statement that may destroy something",
        lost: `It needs the right “${right}”. What it drops, ends or deletes is lost: ${text.value.trim()}`,
        name: confirm,
        button: "Run it",
        work,
      });
      if (!found) return;
    }
    put(status, plural(found.length, "answer"));
    put(result, found.map(answer));
  };
  const select = async () => {
    const own = new AbortController();
    running = own;
    stop.disabled = false;
    let columns = ["Line"];
    let rows = [];
    let total = 0;
    let drawing = 0;
    const draw = () => {
      drawing = 0;
      put(status, `${running === own ? "Running" : "Ended"}: ${plural(total, "row")}${total > rows.length ? `, the last ${number(rows.length)} shown` : ""}`);
      put(
        result,
        table(
          columns.map((title, place) => ({ title, show: (row) => shown(row[place]) })),
          rows,
          { caption: "Rows", empty: running === own ? "No row yet." : "No row." },
        ),
      );
    };
    draw();
    try {
      await lines(
        "sql/rows",
        { sql: text.value },
        (line) => {
          if (line.columns) columns = line.columns;
          if (line.rows) {
            total += line.rows.length;
            rows = [...rows, ...line.rows].slice(-ROWS_SHOWN);
          }
          if (!drawing) drawing = setTimeout(draw, 100);
        },
        own.signal,
      );
    } finally {
      clearTimeout(drawing);
      if (running === own) {
        running = null;
        stop.disabled = true;
        draw();
      }
    }
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
  const go_ = action("Run", may.run, "view", run, "main");
  go_.id = "run";
  return [
    field(
      "Statement",
      text,
      "Ctrl and Enter run it, Ctrl and Space suggest words. A query with EMIT CHANGES goes on until it is stopped or the page is left.",
    ),
    may.run ? completion(text, signal) : null,
    h("div", { class: "actions" }, go_, stop),
    status,
    result,
  ];
}

function shown(value) {
  if (value === null || value === undefined) return h("span", { class: "form-null" }, "null");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** An answer to a statement: a list of objects is a table, the rest a text. */
function answer(found) {
  const { "@type": kind, statementText, warnings = [], ...rest } = found;
  const list = Object.values(rest).find((one) => Array.isArray(one) && one.length && typeof one[0] === "object");
  const said = rest.commandStatus?.message ?? rest.message;
  const columns = list ? Object.keys(list[0]) : [];
  return h(
    "section",
    { class: "card" },
    h("h2", {}, statementText || kind),
    said ? h("p", {}, said) : null,
    warnings.map((one) => h("p", { class: "problem" }, one.message ?? String(one))),
    list
      ? table(columns.map((title) => ({ title, show: (row) => shown(row[title]) })), list, { caption: statementText || kind })
      : said
        ? null
        : h("pre", { tabindex: "0", "aria-label": statementText || kind }, JSON.stringify(rest, null, 2)),
  );
}

function sources(page) {
  const { me, again } = page;
  const may = me.everywhere.includes("admin");
  return listState(page, {
    address: "/sql/sources",
    load: (state, signal) => get("sql/sources", state, signal),
    columns: [
      { title: "Name", show: (row) => row.name },
      { title: "Kind", kind: "word", show: (row) => row.kind },
      { title: "Topic", show: (row) => h("a", { href: `#/topics/${part(row.topic)}` }, row.topic) },
      { title: "Key", kind: "word", show: (row) => `${row.key_format}${row.is_windowed ? " (windowed)" : ""}` },
      { title: "Value", kind: "word", show: (row) => row.value_format },
      { title: "Action", show: (row) => action("Drop", may, "admin", () => drop(row, again), "danger") },
    ],
    caption: "Streams and tables",
    search: "Search streams and tables",
    empty: "There are no streams and tables yet.",
  });
}

async function drop(row, again) {
  const done = await confirmed({
    title: `Drop ${row.kind.toLowerCase()} ${row.name}`,
    lost: `${row.name} and the query that writes it are lost. The topic ${row.topic} and its records stay.`,
    name: row.name,
    button: `Drop the ${row.kind.toLowerCase()}`,
    work: (confirm) => remove(`sql/sources/${part(row.name)}`, { kind: row.kind, confirm }),
  });
  if (done) {
    say(`${row.name} was dropped.`);
    again();
  }
}

function queries(page) {
  return listState(page, {
    address: "/sql/queries",
    load: (state, signal) => get("sql/queries", state, signal),
    columns: [
      { title: "Query", show: (row) => h("a", { href: `#/sql/queries/${part(row.id)}` }, row.id) },
      { title: "Kind", kind: "word", show: (row) => row.kind },
      { title: "State", kind: "word", show: (row) => stateTag(row.state) },
      { title: "Writes", show: (row) => row.sinks.join(", ") || "–" },
      { title: "Statement", show: (row) => [h("code", {}, row.text), row.reason ? h("p", { class: "problem" }, row.reason) : null] },
    ],
    caption: "Queries",
    search: "Search queries",
    empty: "No query runs.",
  });
}

function stateTag(state) {
  const kind = { RUNNING: "good", ERROR: "bad", UNRESPONSIVE: "bad" }[state] ?? "warning";
  return h("span", { class: `tag ${kind}` }, state);
}

export function queryPage(page) {
  const [id] = page.names;
  const { go, signal } = page;
  const path = `sql/queries/${part(id)}`;
  const body = loaded(
    () => get(path, {}, signal),
    (found) => [
      h("p", { class: "facts" }, stateTag(found.state), ` ${found.kind} · reads ${found.sources.join(", ") || "nothing"} · writes ${found.sinks.join(", ") || "nothing"}`),
      found.errors.map((text) => h("p", { class: "problem" }, text)),
      h("div", { class: "actions" }, action("Terminate", found.may.admin, "admin", () => terminate(path, id, found, go), "danger")),
      h("pre", { tabindex: "0", "aria-label": "Statement" }, found.text),
      activityOf(path, signal),
      h("h2", {}, "How it runs"),
      found.plan.length
        ? [
            planPicture(found.plan),
            h("details", {}, h("summary", {}, "The plan in words"), h("p", {}, inWords(found.plan))),
          ]
        : h("p", { class: "quiet" }, "The server’s plan of this query cannot be drawn; this is its text:"),
      found.stages.length
        ? table(
            [
              { title: "Stage", kind: "number", show: (row) => number(row.number) },
              { title: "Operator", kind: "number", show: (row) => number(row.operator) },
              { title: "Runs", kind: "word", show: (row) => h("span", { class: `tag ${row.form === "columns" ? "good" : ""}` }, row.form) },
              { title: "State", show: (row) => row.stores || "–" },
            ],
            found.stages,
            { caption: "Stages" },
          )
        : null,
      h("pre", { tabindex: "0", "aria-label": "Plan" }, found.topology),
    ],
    { signal },
  );
  return [h("h1", {}, id), body];
}

/** What a query does now: how far it is behind, and its last micro-batches. */
function activityOf(path, signal) {
  return loaded(
    () => get(`${path}/activity`, {}, signal),
    ({ group, lag, batches }) => [
      h("h2", {}, "Lag"),
      lag === null
        ? h("p", { class: "quiet" }, "The server does not say how far this query has read.")
        : table(
            [
              { title: "Topic", show: (row) => h("a", { href: `#/topics/${part(row.topic)}` }, row.topic) },
              { title: "Records to read", kind: "number", show: (row) => number(row.lag) },
              { title: "Partitions", kind: "number", show: (row) => number(row.partitions) },
            ],
            lag,
            { caption: "Lag", empty: "It has not read yet." },
          ),
      group ? h("p", { class: "quiet" }, `Consumer group ${group}`) : null,
      h("h2", {}, "Micro-batches"),
      batches === null
        ? h(
            "p",
            { class: "quiet" },
            "This server reports none: ksqlDB runs queries record by record, as Barnabas’ SQL server does without Spark.",
          )
        : batchesOf(batches),
    ],
    { every: 10000, signal },
  );
}

function batchesOf(batches) {
  if (!batches.length) return h("p", { class: "empty" }, "No micro-batch has run since the query started.");
  return [
    batches.length > 1
      ? chart(
          batches.map((one) => [one.began_ms / 1000, one.duration_ms]),
          { label: "Duration", format: duration },
        )
      : null,
    table(
      [
        { title: "Batch", kind: "number", show: (row) => number(row.id) },
        { title: "Began", kind: "word", show: (row) => time(row.began_ms) },
        { title: "Duration", kind: "number", show: (row) => duration(row.duration_ms) },
        { title: "Input rows", kind: "number", show: (row) => number(row.input_rows) },
      ],
      [...batches].reverse(),
      { caption: "The last micro-batches" },
    ),
  ];
}

async function terminate(path, id, found, go) {
  const done = await confirmed({
    title: `Terminate ${id}`,
    lost: `${id} ends, and its state is lost: ${found.sinks.join(", ") || "its result"} gets no more rows. It cannot be continued.`,
    name: id,
    button: "Terminate the query",
    work: (confirm) => remove(path, { confirm }),
  });
  if (done) {
    say(`${id} was terminated.`);
    go("/sql/queries");
  }
}
