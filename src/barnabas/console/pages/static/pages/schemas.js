// Schemas of a registry: subjects, versions and what differs between them, levels, checks.

import { get, part, post, remove } from "../api.js";
import { h, number, plural, put, say } from "../dom.js";
import { action, confirmed, copy, field, formDialog, listState, loaded, select } from "../widgets.js";

export function schemasPage(page) {
  const { go, signal, me } = page;
  const head = loaded(
    () => get("schemas", {}, signal),
    (found) => [
      h("p", { class: "facts" }, `Compatibility of subjects without a level of their own: ${found.level ?? "unknown"}`),
      h(
        "div",
        { class: "actions" },
        action("Register a schema", found.may.register, "edit", () => register({ types: found.types }, (name) => go(`/schemas/${part(name)}`)), "main"),
        action("Change the level", found.may.edit, "edit", () => changeLevel("schemas", "all subjects", found, false, head.again)),
      ),
    ],
    { signal },
  );
  return [
    h("h1", {}, "Schemas"),
    head,
    listState(page, {
      address: "/schemas",
      load: (state, leaving) => get("schemas/subjects", state, leaving),
      columns: [
        {
          title: "Subject",
          show: (row) => [
            h("a", { href: `#/schemas/${part(row.name)}` }, row.name),
            row.is_deleted ? h("span", { class: "tag warning" }, "deleted") : null,
            row.reason ? h("p", { class: "problem" }, row.reason) : null,
          ],
        },
        { title: "Type", kind: "word", show: (row) => row.type ?? "–" },
        { title: "Latest version", kind: "number", show: (row) => number(row.version) },
        { title: "Compatibility", kind: "word", show: (row) => row.level ?? "–" },
      ],
      caption: "Subjects",
      search: "Search subjects",
      filters: [{ name: "deleted", label: "Deleted subjects" }],
      empty: me.everywhere.includes("view") ? "There are no schemas yet." : "There are no schemas that you may see.",
      none: "No subject fits.",
      every: 30000,
    }),
  ];
}

export function schemaPage(page) {
  const [name] = page.names;
  const { query, go, signal } = page;
  const path = `schemas/subjects/${part(name)}`;
  const here = `/schemas/${part(name)}`;
  const body = loaded(
    () => get(path, {}, signal),
    (found) => {
      const there = found.versions.filter((one) => !one.is_deleted);
      const latest = (there.at(-1) ?? found.versions.at(-1)).version;
      const asked = Number(query.get("version"));
      const known = (wanted) => found.versions.some(({ version }) => version === wanted);
      const shown = known(asked) ? asked : latest;
      const before = Number(query.get("before"));
      const gone = there.length === 0;
      const again = () => body.again();
      const fresh = () => {
        query.delete("version");
        query.delete("before");
        go(here, {}, true);
        again();
      };
      const move = (version, other) => {
        query.set("version", version);
        query.set("before", other || "");
        go(here, { version, before: other || "" }, true);
        again();
      };
      const options = found.versions.map(({ version, is_deleted }) => [
        String(version),
        `Version ${version}${is_deleted ? " (deleted)" : ""}`,
      ]);
      return [
        h(
          "p",
          { class: "facts" },
          plural(there.length, "version"),
          ` · compatibility ${found.level.value ?? "unknown"}${found.level.is_own ? "" : " (the registry’s)"}`,
          found.mode.value ? ` · mode ${found.mode.value}` : "",
          gone ? h("span", { class: "tag warning" }, "deleted") : null,
        ),
        h(
          "div",
          { class: "actions" },
          action("Register a version", found.may.edit, "edit", () => registerNext(path, name, shown, found, fresh), "main"),
          action("Change the level", found.may.edit, "edit", () => changeLevel(path, name, found, true, again)),
          action("Change the mode", found.may.admin, "admin", () => changeMode(path, name, found, again)),
          action(gone ? "Delete for good" : "Delete subject", found.may.admin, "admin", () => drop(path, name, found, gone, go, again), "danger"),
        ),
        h(
          "div",
          { class: "filters" },
          field("Version", select(options, String(shown), (value) => move(Number(value), before), { id: "version" })),
          field(
            "Compared with",
            select([["", "nothing"], ...options], known(before) ? String(before) : "", (value) => move(shown, Number(value)), { id: "before" }),
          ),
        ),
        loaded(
          () => get(`${path}/versions/${shown}`, {}, signal),
          (one) => versionOf(path, name, one, found, known(before) ? before : 0, signal, again),
          { signal },
        ),
      ];
    },
    { signal },
  );
  return [h("h1", {}, name), body];
}

function versionOf(path, name, one, found, before, signal, again) {
  const isDeleted = found.versions.find(({ version }) => version === one.version)?.is_deleted;
  const what = `version ${one.version}`;
  return h(
    "section",
    {},
    h(
      "p",
      {},
      h("span", { class: "tag" }, one.type),
      ` id ${one.id}`,
      one.referrers.length ? ` · ${plural(one.referrers.length, "schema")} refer to it (ids ${one.referrers.join(", ")})` : "",
    ),
    one.references.length
      ? [
          h("h2", {}, "References"),
          h(
            "ul",
            {},
            one.references.map((to) =>
              h("li", {}, `${to.name}: `, h("a", { href: `#/schemas/${part(to.subject)}?version=${to.version}` }, `${to.subject} version ${to.version}`)),
            ),
          ),
        ]
      : null,
    before && before !== one.version
      ? [h("h2", {}, `What differs from version ${before}`), difference(path, before, one.version, signal)]
      : [h("h2", {}, "Schema"), h("pre", { tabindex: "0", "aria-label": `Schema of ${what}` }, one.text)],
    one.metadata || one.rules
      ? [h("h2", {}, "Metadata and rules"), h("pre", { tabindex: "0", "aria-label": "Metadata and rules" }, JSON.stringify({ metadata: one.metadata, rules: one.rules }, null, 2))]
      : null,
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", onclick: () => copy(one.text) }, "Copy schema"),
      action(isDeleted ? `Delete ${what} for good` : `Delete ${what}`, found.may.admin, "admin", () => dropVersion(path, name, one, isDeleted, again), "danger"),
    ),
  );
}

const SIGNS = { same: "  ", added: "+ ", removed: "- " };

function difference(path, before, after, signal) {
  return loaded(
    () => get(`${path}/difference`, { before, after }, signal),
    (lines) =>
      lines.every(({ kind }) => kind === "same")
        ? h("p", { class: "empty" }, "Nothing differs in the text.")
        : h(
            "pre",
            { class: "diff", tabindex: "0", "aria-label": `Lines that differ between versions ${before} and ${after}` },
            lines.map((line) => h("span", { class: line.kind }, `${SIGNS[line.kind]}${line.text}`)),
          ),
    { signal },
  );
}

async function registerNext(path, name, shown, found, done) {
  let one;
  try {
    one = await get(`${path}/versions/${shown}`);
  } catch (error) {
    say(error.message, "bad");
    return;
  }
  await register({ name, types: found.types, one }, done);
}

/** The dialog that checks and registers; `name` and `one`, the version to begin with, if there are. */
async function register({ name, types, one }, registered) {
  const subject = h("input", { name: "subject", required: true, autocomplete: "off", spellcheck: "false", value: name ?? "" });
  const kind = select(types.map((type) => [type, type]), one?.type ?? "AVRO", null, { name: "type" });
  const schema = h("textarea", { name: "schema", class: "code", rows: 12, required: true, spellcheck: "false", value: one?.text ?? "" });
  const links = (one?.references ?? []).map((to) => `${to.name} ${to.subject} ${to.version}`).join("\n");
  const references = h("textarea", { name: "references", class: "code", rows: 2, spellcheck: "false", value: links });
  const result = h("div", { role: "status", id: "checked" });
  const given = () => ({ type: kind.value, schema: schema.value, references: read(references.value) });
  const address = () => `schemas/subjects/${part(name ?? subject.value)}`;
  const check = async () => {
    put(result, "Checking…");
    try {
      if (!subject.value) throw new Error("write the subject first");
      const { is_compatible, messages } = await post(`${address()}/check`, given());
      put(result, is_compatible ? "It may become the next version." : ["It may not become the next version.", h("ul", {}, messages.map((text) => h("li", {}, text)))]);
    } catch (error) {
      put(result, error.message);
    }
  };
  await formDialog(
    name === undefined ? "Register a schema" : `Register a version of ${name}`,
    [
      name === undefined ? field("Subject", subject, "Such as orders-value") : null,
      field("Type", kind),
      field("Schema", schema),
      field("References", references, "One name, subject and version a line, with spaces between."),
      h("div", { class: "actions" }, h("button", { type: "button", id: "check", onclick: check }, "Check compatibility")),
      result,
    ],
    "Register",
    async () => {
      const done = await post(`${address()}/versions`, given());
      say(`Registered with id ${done.id}.`);
      registered(name ?? subject.value);
    },
  );
}

/** References of lines such as `other.proto other-value 3`; names have no spaces. */
function read(text) {
  return text
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const [name, subject, version, ...more] = line.trim().split(/\s+/);
      if (!/^\d+$/.test(version ?? "") || more.length) throw new Error(`“${line}” is not a name, a subject and a version`);
      return { name, subject, version: Number(version) };
    });
}

async function changeLevel(path, name, found, mayInherit, again) {
  const own = mayInherit ? found.level.is_own && found.level.value : found.level;
  const options = [...(mayInherit ? [["", "the registry’s"]] : []), ...found.levels.map((level) => [level, level])];
  const done = await formDialog(
    `Compatibility of ${name}`,
    [
      field("Level", select(options, own || options[0][0], null, { name: "level" })),
      h("p", { class: "quiet" }, "It decides which schemas may become the next version; versions that exist stay."),
    ],
    "Save",
    ({ level }) => post(`${path}/level`, { level: level || null }),
  );
  if (done) {
    say(`The level of ${name} was changed.`);
    again();
  }
}

async function changeMode(path, name, found, again) {
  const options = [["", "the registry’s"], ...found.modes.map((mode) => [mode, mode])];
  const done = await formDialog(
    `Mode of ${name}`,
    [
      field("Mode", select(options, (found.mode.is_own && found.mode.value) || "", null, { name: "mode" })),
      h("p", { class: "quiet" }, "READONLY takes no new versions; IMPORT takes ids from outside, for subjects without versions."),
    ],
    "Save",
    ({ mode }) => post(`${path}/mode`, { mode: mode || null }),
  );
  if (done) {
    say(`The mode of ${name} was changed.`);
    again();
  }
}

const AGAIN = "To bring it back, register the same schema again.";

async function drop(path, name, found, permanent, go, again) {
  const count = found.versions.filter(({ is_deleted }) => permanent || !is_deleted).length;
  const lost = permanent
    ? `${plural(count, "version")} of ${name} are lost for good. Records with their ids cannot be decoded any more, unless another subject has the same schemas.`
    : `Clients that ask for ${name} do not find its ${plural(count, "version")} any more. Records that were written are still decoded by id. ${AGAIN}`;
  const done = await confirmed({
    title: `Delete ${name}`,
    lost,
    name,
    button: permanent ? "Delete for good" : "Delete the subject",
    work: (confirm) => remove(path, { confirm, permanent }),
  });
  if (!done) return;
  say(`${name} was deleted.`);
  if (permanent) go("/schemas");
  else again();
}

async function dropVersion(path, name, one, permanent, again) {
  const lost = permanent
    ? `Version ${one.version} of ${name} is lost for good. Records with id ${one.id} cannot be decoded any more, unless another version or subject has the same schema.`
    : `Clients that ask for version ${one.version} of ${name} do not find it any more. Records with id ${one.id} are still decoded. ${AGAIN}`;
  const done = await confirmed({
    title: `Delete version ${one.version} of ${name}`,
    lost,
    name,
    button: "Delete the version",
    work: (confirm) => remove(`${path}/versions/${one.version}`, { confirm, permanent }),
  });
  if (done) {
    say(`Version ${one.version} was deleted.`);
    again();
  }
}
