// Records of a topic: pages, the live tail, searches on the server, producing.

import { get, lines, part, post } from "../api.js";
import { bytes, h, number, plural, put, say, time } from "../dom.js";
import { copy, dialog, failed, field, formDialog, select, VirtualList } from "../widgets.js";

const ROWS_MAX = 10000;
const HEIGHT = 34;
const FORMS = {
  avro: "Avro",
  "json-schema": "JSON Schema",
  protobuf: "Protobuf",
  json: "JSON",
  text: "text",
  bytes: "bytes",
  null: "null",
};

export function messagesTab({ query, me, go, signal }, topic) {
  const path = `topics/${part(topic)}`;
  const state = {
    from: query.get("from") || "newest",
    value: query.get("value") || "",
    partition: query.get("partition") || "",
    filter: query.get("filter") || "",
  };
  let rows = [];
  let cursor = "";
  let running = new AbortController();
  signal.addEventListener("abort", () => running.abort());

  const filter = h("input", {
    id: "filter",
    type: "search",
    spellcheck: "false",
    autocomplete: "off",
    value: state.filter,
    placeholder: 'value.amount > 100 and key startswith "customer-"',
    "aria-describedby": "filter-problem",
    onkeydown: (event) => {
      if (event.key === "Enter") search();
    },
  });
  const problem = h("p", { class: "problem where", id: "filter-problem", role: "alert" });
  const value = h("input", {
    id: "from-value",
    value: state.value,
    "aria-label": "Offset or time",
    onchange: () => {
      state.value = value.value;
      read();
    },
  });
  const from = select(
    [
      ["newest", "Newest first"],
      ["oldest", "From the beginning"],
      ["offset", "From an offset"],
      ["time", "From a time"],
    ],
    state.from,
    (to) => {
      state.from = to;
      state.value = "";
      value.value = "";
      drawValue();
      if (to === "newest" || to === "oldest") read();
      else value.focus();
    },
    { id: "from" },
  );
  const partition = h("input", {
    id: "partition",
    type: "number",
    min: 0,
    placeholder: "all",
    value: state.partition,
    onchange: () => {
      state.partition = partition.value;
      read();
    },
  });
  const status = h("p", { class: "status", role: "status", id: "status" });
  const progress = h("progress", { max: 1, value: "0", hidden: true, "aria-label": "Search" });
  const more = h("button", { type: "button", hidden: true, onclick: () => read(true) }, "Load more");
  const stop = h(
    "button",
    { type: "button", id: "stop", hidden: true, onclick: () => running.abort() },
    "Stop",
  );
  const live = h("button", { type: "button", id: "live", onclick: () => tail() }, "Live tail");
  const find = h("button", { type: "button", class: "main", id: "find", onclick: () => search() }, "Search");
  const list = new VirtualList({
    height: HEIGHT,
    label: `Records of ${topic}`,
    make: rowOf,
    onopen: (row) => open(path, topic, row),
  });
  const place = h("div", {});

  function drawValue() {
    value.hidden = !["offset", "time"].includes(state.from);
    value.type = state.from === "time" ? "datetime-local" : "number";
    if (state.from === "time") value.step = "1";
  }

  function asked() {
    const given = { from: state.from, partition: state.partition };
    if (state.from === "time") given.value = state.value ? new Date(state.value).getTime() : "";
    else if (state.from === "offset") given.value = state.value || "0";
    return given;
  }

  function begin(text) {
    running.abort();
    running = new AbortController();
    put(problem);
    put(place);
    put(status, text);
    progress.hidden = true;
    more.hidden = true;
    stop.hidden = true;
    state.filter = filter.value;
    const { from: kind, value: at, partition: number_, filter: text_ } = state;
    const shown = { from: kind === "newest" ? "" : kind, value: at, partition: number_, filter: text_ };
    go(`/topics/${part(topic)}`, shown, true);
    return running.signal;
  }

  function show(found) {
    rows = found.length > ROWS_MAX ? found.slice(0, ROWS_MAX) : found;
    list.set(rows);
  }

  function failedAt(error) {
    if (error.name === "AbortError") return;
    put(status);
    if (error.position !== undefined) {
      put(problem, `${error.message} (at character ${error.position + 1})`);
      filter.focus();
      filter.setSelectionRange(error.position, Math.max(error.position + 1, filter.value.length));
    } else put(place, failed(error, () => read()));
  }

  async function read(isMore = false) {
    const mine = begin(isMore ? "Loading more…" : "Loading…");
    try {
      const given = { ...asked(), limit: 100, cursor: isMore ? cursor : "" };
      const page = await get(`${path}/messages`, given, mine);
      if (mine.aborted) return;
      cursor = page.cursor;
      show(isMore ? [...rows, ...page.records] : page.records);
      more.hidden = !page.has_more || rows.length >= ROWS_MAX;
      const late = page.is_complete ? "" : "; not all partitions answered in time";
      put(status, rows.length ? `${plural(rows.length, "record")}${late}` : `No records here${late}.`);
    } catch (error) {
      failedAt(error);
    }
  }

  async function search() {
    if (!filter.value.trim()) {
      read();
      return;
    }
    const mine = begin("Searching…");
    show([]);
    progress.hidden = false;
    progress.value = 0;
    stop.hidden = false;
    let last = null;
    try {
      const given = { ...asked(), filter: filter.value, limit: 500 };
      await lines(
        `${path}/search`,
        given,
        (line) => {
          if (line.record) rows.push(line.record);
          else {
            last = line.progress;
            progress.value = last.total ? Math.min(1, last.scanned / last.total) : 1;
            put(status, searched(last));
            list.set(rows);
          }
        },
        mine,
      );
      list.set(rows);
    } catch (error) {
      if (error.name === "AbortError" && last && !signal.aborted && mine === running.signal)
        put(status, `Stopped. ${searched(last)}`);
      failedAt(error);
    } finally {
      if (mine === running.signal) {
        stop.hidden = true;
        progress.hidden = true;
      }
    }
  }

  async function tail() {
    const mine = begin("Waiting for new records…");
    show([]);
    stop.hidden = false;
    let seen = 0;
    let skipped = 0;
    try {
      await lines(
        `${path}/tail`,
        { partition: state.partition, filter: filter.value },
        (line) => {
          seen += line.records.length;
          skipped += line.skipped;
          if (line.records.length) show([...line.records.reverse(), ...rows]);
          const left = skipped ? `, ${number(skipped)} more came too fast to show` : "";
          put(status, `Live: ${plural(seen, "record")}${left}`);
        },
        mine,
      );
    } catch (error) {
      if (error.name === "AbortError" && mine === running.signal)
        put(status, `Stopped after ${plural(seen, "record")}.`);
      failedAt(error);
    } finally {
      if (mine === running.signal) stop.hidden = true;
    }
  }

  const write = me.rights.includes("produce");
  drawValue();
  if (state.filter) queueMicrotask(search);
  else queueMicrotask(() => read());
  return [
    h(
      "div",
      { class: "filters messages" },
      field("Show", from),
      value,
      field("Partition", partition),
      h("div", { class: "field wide" }, h("label", { for: "filter" }, "Filter"), filter),
      find,
      live,
      stop,
      h(
        "button",
        {
          type: "button",
          id: "produce",
          disabled: !write,
          title: write ? null : "needs the right “produce”",
          onclick: () => produce(path, topic, () => read()),
        },
        "Produce",
      ),
      h("button", { type: "button", onclick: help, "aria-label": "Help with filters" }, "?"),
    ),
    problem,
    h("div", { class: "statusbar" }, status, progress, downloadButton(() => rows, topic)),
    place,
    h(
      "div",
      { class: "virtual-head", "aria-hidden": "true" },
      ["Partition", "Offset", "Time", "Key", "Value"].map((text) => h("span", {}, text)),
    ),
    list.element,
    more,
  ];
}

function searched(progress) {
  const speed = progress.seconds > 0 ? Math.round(progress.scanned / progress.seconds) : 0;
  const done = progress.is_full
    ? "; as many matches as are shown"
    : progress.is_done
      ? ""
      : ` of ${number(progress.total)}`;
  return `${plural(progress.matches, "match", "matches")} in ${number(progress.scanned)} records${done} (${number(speed)} /s)`;
}

function rowOf(row) {
  const cell = (text, kind = "") => h("span", { class: kind, role: "gridcell" }, text);
  return h(
    "div",
    {},
    cell(row.partition, "number"),
    cell(row.offset, "number"),
    cell(time(row.timestamp), "time"),
    cell(short(row.key), `form-${row.key.form}`),
    cell(short(row.value), `form-${row.value.form}`),
  );
}

function short(found) {
  if (found.form === "null") return "null";
  return found.text.length > 300 ? `${found.text.slice(0, 300)}…` : found.text;
}

function pretty(found) {
  if (found.form === "null") return "null";
  if (found.form === "text" || found.form === "bytes") return found.text;
  try {
    return JSON.stringify(JSON.parse(found.text), null, 2);
  } catch {
    return found.text;
  }
}

async function open(path, topic, row) {
  let whole = row;
  const at = `${path}/messages/${row.partition}/${row.offset}`;
  if (row.key.is_cut || row.value.is_cut) {
    try {
      whole = await get(at);
    } catch (error) {
      say(error.message, "bad");
    }
  }
  const piece = (title, found, name) =>
    h(
      "section",
      {},
      h(
        "h3",
        {},
        title,
        " ",
        h("span", { class: "tag" }, FORMS[found.form]),
        found.schema ? h("span", { class: "tag" }, `schema ${found.schema}`) : null,
        h("span", { class: "quiet" }, ` ${bytes(found.size)}`),
      ),
      found.reason ? h("p", { class: "problem" }, `Shown as it is: ${found.reason}`) : null,
      h("pre", { tabindex: "0", "aria-label": title }, pretty(found)),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: () => copy(pretty(found)) }, `Copy ${name}`),
        found.form === "null"
          ? null
          : h("a", { class: "button", href: `api/${at}/${name}`, download: true }, "Download bytes"),
      ),
    );
  await dialog(`${topic}, partition ${row.partition}, offset ${row.offset}`, (close) =>
    h(
      "div",
      { class: "record" },
      h("p", { class: "quiet" }, time(whole.timestamp)),
      piece("Key", whole.key, "key"),
      piece("Value", whole.value, "value"),
      whole.headers.length
        ? h(
            "section",
            {},
            h("h3", {}, "Headers"),
            h(
              "dl",
              {},
              whole.headers.map((one) => [h("dt", {}, one.name), h("dd", {}, one.form === "null" ? "null" : one.text)]),
            ),
          )
        : null,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: () => close() }, "Close"),
      ),
    ),
  );
}

function downloadButton(rows, topic) {
  return h(
    "button",
    {
      type: "button",
      onclick: () => {
        const text = rows()
          .map((row) => `${JSON.stringify(row)}\n`)
          .join("");
        const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
        h("a", { href: url, download: `${topic}.jsonl` }).click();
        setTimeout(() => URL.revokeObjectURL(url), 1000);
      },
    },
    "Download rows",
  );
}

function produce(path, topic, again) {
  const fields = [
    field("Key", h("textarea", { name: "key", rows: 2 }), "Empty: no key."),
    field("Value", h("textarea", { name: "value", rows: 6 })),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "tombstone" }), "The value is null (a tombstone)"),
    field("Headers", h("textarea", { name: "headers", rows: 2 }), "One name=value a line."),
    field("Partition", h("input", { name: "partition", type: "number", min: 0, placeholder: "by key" })),
  ];
  return formDialog(`Produce to ${topic}`, fields, "Produce", async (values) => {
    const headers = values.headers
      .split("\n")
      .filter((line) => line.trim())
      .map((line) => {
        const at = line.indexOf("=");
        return at < 0 ? [line.trim(), null] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      });
    const done = await post(`${path}/messages`, {
      key: values.key === "" ? null : values.key,
      value: values.tombstone ? null : values.value,
      headers,
      partition: values.partition === "" ? null : Number(values.partition),
    });
    say(`Written to partition ${done.partition} at offset ${number(done.offset)}.`);
    again();
  });
}

function help() {
  const rows = [
    ['value.amount > 100', "a field of the value"],
    ['key startswith "customer-"', "also: endswith, contains, =="],
    ['value.user.email matches "@example\\\\.org$"', "a pattern (RE2)"],
    ['value.state in ("open", "late")', "one of several"],
    ['headers["trace-id"] == "abc"', "a header"],
    ['exists(value.error) and not value.retried', "and, or, not, brackets"],
    ["partition == 3 and offset >= 1000", "also: timestamp, in milliseconds"],
    ['"Ghent"', "a text alone: anywhere in key, value or headers"],
    ['lower(value.city) == "ghent" or length(value.items) > 10', "functions: lower, length, text, exists"],
  ];
  return dialog("Filters", (close) =>
    h(
      "div",
      {},
      h("dl", { class: "help" }, rows.map(([code, what]) => [h("dt", {}, h("code", {}, code)), h("dd", {}, what)])),
      h("div", { class: "actions" }, h("button", { type: "button", onclick: () => close() }, "Close")),
    ),
  );
}
