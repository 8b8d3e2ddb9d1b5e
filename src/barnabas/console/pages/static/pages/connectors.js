// Connectors of a Kafka Connect worker: states, tasks and why they failed, settings.

import { get, part, post, remove } from "../api.js";
import { append, h, number, plural, put, say, time } from "../dom.js";
import { action, confirmed, dialog, field, listState, loaded, select, table } from "../widgets.js";

const KINDS = { RUNNING: "good", FAILED: "bad", PAUSED: "warning", STOPPED: "warning", UNASSIGNED: "warning" };

function stateTag(state, text = state) {
  return h("span", { class: `tag ${KINDS[state] ?? ""}` }, text);
}

export function connectorsPage(page) {
  const { me, go } = page;
  return [
    h("h1", {}, "Connectors"),
    h("div", { class: "actions" }, action("Create a connector", me.rights.includes("edit"), "edit", () => create(go), "main")),
    listState(page, {
      address: "/connectors",
      load: (state, signal) => get("connectors", state, signal),
      columns: [
        {
          title: "Connector",
          show: (row) => [
            h("a", { href: `#/connectors/${part(row.name)}` }, row.name),
            row.reason ? h("p", { class: "problem" }, row.reason) : null,
            row.elsewhere.length
              ? h("p", { class: "problem" }, `Another connector has this name, at ${row.elsewhere.join(", ")}: it is not shown here.`)
              : null,
            row.address ? h("p", { class: "quiet" }, row.address) : null,
          ],
        },
        { title: "Type", kind: "word", show: (row) => row.type },
        { title: "Plugin", show: (row) => row.plugin },
        { title: "State", kind: "word", show: (row) => stateTag(row.state) },
        {
          title: "Tasks",
          show: (row) => Object.entries(row.tasks).map(([state, count]) => stateTag(state, `${number(count)} ${state}`)),
        },
      ],
      above: ({ away }) =>
        away.length
          ? h("section", { class: "card away" }, h("h2", {}, "A worker is away"), away.map((text) => h("p", {}, text)))
          : null,
      caption: "Connectors",
      search: "Search connectors",
      filters: [{ name: "state", label: "State", options: [["", "All states"], ...Object.keys(KINDS).map((one) => [one, one])] }],
      empty: me.everywhere.includes("view") ? "There are no connectors yet." : "There are no connectors that you may see.",
      none: "No connector fits.",
    }),
  ];
}

export function connectorPage(page) {
  const [name] = page.names;
  const { go, signal } = page;
  const path = `connectors/${part(name)}`;
  const settings = h("div", {});
  const body = loaded(
    () => get(path, {}, signal),
    (found) => {
      const may = found.may.edit;
      const work = (text, send) =>
        action(text, may, "edit", async () => {
          try {
            await send();
            say(`${text}: the worker was asked.`);
          } catch (error) {
            say(error.message, "bad");
          }
          body.again();
          setTimeout(() => signal.aborted || body.again(), 1000); // the worker does it a little later
        });
      const change = (what) => () => post(`${path}/state`, { what });
      const restart = (given) => () => post(`${path}/restart`, given);
      put(settings, h("h2", {}, "Configuration"), configTable(found.config));
      const failing = [found, ...found.tasks].some(({ state }) => state === "FAILED");
      return [
        h("p", { class: "facts" }, found.type, " ", stateTag(found.state), found.worker ? ` on ${found.worker}` : ""),
        found.trace ? trace("The connector", found) : null,
        h(
          "div",
          { class: "actions" },
          found.state === "RUNNING" ? work("Pause", change("pause")) : work("Resume", change("resume")),
          found.state === "STOPPED" ? null : work("Stop", change("stop")),
          work("Restart the connector", restart({})),
          work("Restart with tasks", restart({ tasks: true })),
          failing ? work("Restart what failed", restart({ tasks: true, only_failed: true })) : null,
          action("Change the configuration", may, "edit", () => edit(name, found.config, false, () => body.again()), "main"),
          action("Delete", found.may.admin, "admin", () => drop(path, name, found, go), "danger"),
        ),
        h("h2", {}, "Tasks"),
        table(
          [
            { title: "Task", kind: "number", show: (row) => number(row.id) },
            { title: "State", kind: "word", show: (row) => stateTag(row.state) },
            { title: "Worker", show: (row) => row.worker },
            { title: "Action", show: (row) => work(`Restart task ${row.id}`, () => post(`${path}/tasks/${row.id}/restart`)) },
          ],
          found.tasks,
          { caption: "Tasks", empty: "It has no tasks." },
        ),
        found.tasks.filter((row) => row.trace).map((row) => trace(`Task ${row.id}`, row)),
      ];
    },
    { every: 5000, signal },
  );
  return [h("h1", {}, name), body, h("h2", {}, "Dead letters"), deadLetters(name, signal), settings];
}

function configTable(config) {
  return table(
    [
      { title: "Setting", show: ([key]) => h("code", {}, key) },
      { title: "Value", show: ([, value]) => (value === HIDDEN ? h("span", { class: "quiet" }, "hidden") : value) },
    ],
    Object.entries(config),
    { caption: "Configuration" },
  );
}

/** The dead letter queue: how much it holds, and its newest records, read again if that changes. */
function deadLetters(name, signal) {
  let list = null;
  return loaded(
    () => get(`connectors/${part(name)}/dead-letters`, {}, signal),
    (found) => {
      const { topic, may } = found;
      if (found.kind === "source")
        return h("p", { class: "empty" }, "A source has no dead letter queue: in Kafka Connect only sinks have one.");
      if (!topic)
        return h(
          "p",
          { class: "empty" },
          "It has no dead letter queue: ",
          h("code", {}, "errors.deadletterqueue.topic.name"),
          " is not set. A record that fails ends its task, or is skipped if ",
          h("code", {}, "errors.tolerance"),
          " is all.",
        );
      const lacks = (right) => h("p", { class: "quiet" }, `What ${topic} holds needs the right “${right}” on that topic.`);
      if (!may.view) return lacks("view");
      if (!found.exists)
        return h("p", { class: "empty" }, `The topic ${topic} does not exist in this cluster: nothing failed yet, or the worker uses another cluster.`);
      const link = h("a", { href: `#/topics/${part(topic)}` }, topic);
      const head = h("p", {}, link, ` holds ${plural(found.records, "record")}.`);
      if (!may.read) return [head, lacks("read")];
      if (!found.records) return head;
      if (list?.records !== found.records) {
        const load = () => get(`topics/${part(topic)}/dead-letters`, { connector: name }, signal);
        const element = loaded(load, (letters) => lettersTable(letters, found, name), { signal });
        list = { records: found.records, element };
      }
      return [head, list.element];
    },
    { every: 10000, signal },
  );
}

function lettersTable({ letters, others, is_complete, has_more }, { topic, has_reason }, name) {
  const record = (of, partition, offset) => {
    const at = new URLSearchParams({ from: "offset", value: offset, partition });
    return h("a", { href: `#/topics/${part(of)}?${at}` }, `${of}-${partition}, offset ${number(offset)}`);
  };
  const silent = letters.some(({ reason }) => !reason.exception && !reason.message);
  return [
    table(
      [
        { title: "Record", show: (row) => record(topic, row.record.partition, row.record.offset) },
        { title: "Time", kind: "word", show: (row) => time(row.record.timestamp) },
        { title: "Why", show: ({ reason }) => why(reason) },
        { title: "Stage", kind: "word", show: ({ reason }) => reason.stage ?? "–" },
        {
          title: "Came from",
          show: ({ reason: { topic: of, partition, offset } }) =>
            of !== null && partition !== null && offset !== null ? record(of, partition, offset) : "–",
        },
        { title: "Value", show: ({ record: { value } }) => h("code", { class: `form-${value.form}` }, value.form === "null" ? "null" : value.text.slice(0, 200)) },
      ],
      letters,
      { caption: "Dead letters", empty: `None of the newest records of ${topic} is from ${name}.` },
    ),
    silent && !has_reason
      ? h("p", { class: "quiet" }, "Records have no reason: the connector writes it if ", h("code", {}, "errors.deadletterqueue.context.headers.enable"), " is true.")
      : null,
    others ? h("p", { class: "quiet" }, `${plural(others, "record")} among the newest are of other connectors that share ${topic}.`) : null,
    is_complete ? null : h("p", { class: "quiet" }, "Not all partitions answered in time."),
    has_more ? h("p", { class: "quiet" }, "These are the newest; the topic’s page has all, with a filter.") : null,
  ];
}

function why({ exception, message, trace: text, task, class_name }) {
  if (!exception && !message) return "–";
  const facts = [exception, task === null ? null : `task ${task}`, class_name].filter(Boolean);
  return [
    h("p", { class: "problem" }, message ?? exception),
    h("p", { class: "quiet" }, facts.join(" · ")),
    text
      ? h("details", {}, h("summary", {}, "Stack trace"), h("pre", { tabindex: "0", "aria-label": "Stack trace" }, text))
      : null,
  ];
}

const HIDDEN = "[hidden]";

/** Why it failed; or what a task waits for that does not run yet, such as Spark. */
function trace(what, { state, trace: text }) {
  const failed = state === "FAILED";
  const title = failed ? `${what} failed` : `${what} is ${state.toLowerCase()}`;
  return h(
    "section",
    { class: failed ? "card bad" : "card" },
    h("h3", {}, title),
    h("pre", { tabindex: "0", "aria-label": title }, text),
  );
}

async function create(go) {
  let plugins;
  try {
    plugins = await get("connector-plugins");
  } catch (error) {
    say(error.message, "bad");
    return;
  }
  const name = h("input", { required: true, autocomplete: "off", spellcheck: "false" });
  const plugin = select(plugins.map((one) => [one.name, `${one.name} (${one.type})`]), plugins[0]?.name ?? "");
  // Workers that know nothing of each other: which of them is to have it?
  const worker = select([], "");
  const draw = () => {
    const addresses = plugins.find((one) => one.name === plugin.value)?.addresses ?? [];
    put(worker, addresses.map((one) => h("option", { value: one }, one)));
  };
  plugin.addEventListener("change", draw);
  draw();
  const isSeveral = new Set(plugins.flatMap((one) => one.addresses)).size > 1;
  const done = await dialog("Create a connector", (close) =>
    h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          close(name.value);
        },
      },
      field("Name", name),
      field("Plugin", plugin),
      isSeveral ? field("Worker", worker) : null,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: () => close(undefined) }, "Cancel"),
        h("button", { class: "main" }, "Next"),
      ),
    ),
  );
  if (done) await edit(done, { "connector.class": plugin.value, "tasks.max": "1" }, true, () => go(`/connectors/${part(done)}`), worker.value);
}

/** A form with a field for each setting, in which the worker says what is wrong with which. */
function edit(name, config, isNew, done, address = "") {
  const path = `connectors/${part(name)}`;
  const rows = new Map();
  const place = h("div", {});
  const problem = h("p", { class: "problem", role: "alert" });
  const add = (key, value, about) => {
    if (key === "name") return null;
    let row = rows.get(key);
    if (!row) {
      const isSecret = value === HIDDEN || about?.type === "PASSWORD";
      const given = { autocomplete: isSecret ? "new-password" : "off", spellcheck: "false", type: isSecret ? "password" : "text" };
      const control = h("input", { ...given, value: isSecret && value === HIDDEN ? "" : value, placeholder: value === HIDDEN ? "unchanged" : about?.default ?? "" });
      const said = h("p", { class: "problem" });
      row = { control, said, isKept: value === HIDDEN, box: h("div", {}, field(key, control, about?.doc ?? ""), said) };
      said.id = `${control.id}-said`;
      control.setAttribute("aria-describedby", `${control.getAttribute("aria-describedby") ?? ""} ${said.id}`.trim());
      rows.set(key, row);
      append(place, [row.box]);
    }
    return row;
  };
  const current = () => {
    const found = {};
    for (const [key, { control, isKept }] of rows) {
      if (control.value !== "") found[key] = control.value;
      else if (isKept) found[key] = HIDDEN;
    }
    return found;
  };
  /** Asks the worker; returns how many settings are wrong. */
  const check = async () => {
    for (const { said, control } of rows.values()) {
      put(said);
      control.removeAttribute("aria-invalid");
    }
    let count = 0;
    let first = null;
    const found = await post(`${path}/check`, { config: current(), is_new: isNew, address });
    for (const one of found) {
      if (one.is_required && isNew) add(one.name, "", one);
      if (!one.errors.length) continue;
      count += 1;
      const row = add(one.name, "", one);
      if (row === null) {
        put(problem, one.errors.join(" "));
        continue;
      }
      put(row.said, one.errors.join(" "));
      row.control.setAttribute("aria-invalid", "true");
      first ??= row.control;
    }
    first?.focus();
    return count;
  };
  const more = h("input", { autocomplete: "off", spellcheck: "false", "aria-label": "Another setting", placeholder: "another.setting" });
  for (const [key, value] of Object.entries(config)) add(key, value, null);
  return dialog(isNew ? `Create ${name}` : `Configuration of ${name}`, (close) => {
    const go = h("button", { class: "main" }, isNew ? "Create" : "Save");
    const attempt = async (work) => {
      go.disabled = true;
      put(problem);
      try {
        const wrong = await check();
        if (wrong) put(problem, `The worker refuses ${plural(wrong, "setting")}.`);
        else await work();
      } catch (error) {
        if (error.kind === "changed") put(problem, ...changed(error));
        else put(problem, error.message);
      } finally {
        go.disabled = false;
      }
    };
    /** Somebody else was faster: nothing is saved, and the form can begin again with theirs. */
    const changed = (error) => [
      `Nothing was saved: ${error.message}. Note your changes before you load the new configuration. `,
      h(
        "button",
        {
          type: "button",
          id: "load",
          onclick: () => {
            close(undefined);
            edit(name, error.config, false, done);
          },
        },
        "Load the new configuration",
      ),
    ];
    const form = h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          attempt(async () => {
            await post(`${path}/config`, isNew ? { config: current(), is_new: true, address } : { config: current(), before: config });
            say(isNew ? `${name} was created.` : `The configuration of ${name} was changed.`);
            close(true);
            done();
          });
        },
      },
      h("p", { class: "quiet" }, "An empty field is a setting that is left out. Secrets stay as they are unless they are written again."),
      place,
      h(
        "div",
        { class: "filters" },
        more,
        h(
          "button",
          {
            type: "button",
            onclick: () => {
              const key = more.value.trim();
              if (key) add(key, "", null)?.control.focus();
              more.value = "";
            },
          },
          "Add a setting",
        ),
      ),
      problem,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", id: "check", onclick: () => attempt(async () => put(problem, "The worker finds nothing wrong.")) }, "Check"),
        h("button", { type: "button", onclick: () => close(undefined) }, "Cancel"),
        go,
      ),
    );
    if (isNew) check().catch((error) => put(problem, error.message));
    return form;
  });
}

async function drop(path, name, found, go) {
  const lost =
    `${name} and its ${plural(found.tasks.length, "task")} end, and its configuration is lost, with the secrets in it. ` +
    (found.type === "source"
      ? "Its offsets stay: a source of the same name goes on where it ended."
      : "The offsets of its consumer group stay.");
  const done = await confirmed({
    title: `Delete ${name}`,
    lost,
    name,
    button: "Delete the connector",
    work: (confirm) => remove(path, { confirm }),
  });
  if (done) {
    say(`${name} was deleted.`);
    go("/connectors");
  }
}
