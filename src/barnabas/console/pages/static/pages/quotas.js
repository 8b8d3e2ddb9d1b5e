// Quotas of users, client ids and addresses, and the defaults of each.

import { get, post, remove } from "../api.js";
import { h, number, say } from "../dom.js";
import { action, confirmed, field, formDialog, listState, select } from "../widgets.js";

const KINDS = [
  ["user", "User"],
  ["client-id", "Client id"],
  ["ip", "Address"],
];

export function quotasPage(page) {
  const { me, again } = page;
  const may = { edit: me.everywhere.includes("edit"), admin: me.everywhere.includes("admin") };
  return [
    h("h1", {}, "Quotas"),
    h("div", { class: "actions" }, action("Set a quota", may.edit, "edit", () => setQuota(null, again))),
    listState(page, {
      address: "/quotas",
      load: (state, signal) => get("quotas", state, signal),
      columns: [
        { title: "Of", show: (row) => entity(row.entity) },
        {
          title: "Quotas",
          show: (row) => Object.entries(row.values).map(([key, value]) => h("div", {}, `${key} = ${number(value)}`)),
        },
        {
          title: "Actions",
          show: (row) => [
            action("Change", may.edit, "edit", () => setQuota(row, again)),
            " ",
            action("Remove", may.admin, "admin", () => drop(row, again), "danger"),
          ],
        },
      ],
      caption: "Quotas",
      search: "Search quotas",
      filters: [{ name: "kind", label: "Kind", options: [["", "All kinds"], ...KINDS] }],
      empty: "There are no quotas yet.",
      none: "No quota fits.",
    }),
  ];
}

function entity(found) {
  return KINDS.filter(([kind]) => kind in found).map(([kind, title]) =>
    h("div", {}, `${title}: `, found[kind] === null ? h("span", { class: "tag" }, "default") : found[kind]),
  );
}

async function setQuota(row, again) {
  const words = await get("quotas/words");
  const names = Object.fromEntries(
    KINDS.map(([kind, title]) => [kind, h("input", { autocomplete: "off", spellcheck: "false", "aria-label": `${title}’s name` })]),
  );
  const which = Object.fromEntries(
    KINDS.map(([kind, title]) => [
      kind,
      select(
        [["", "–"], ["name", "this one"], ["default", "all without a quota of their own"]],
        "",
        () => changed(),
        { "aria-label": title },
      ),
    ]),
  );
  const changed = () => {
    for (const [kind] of KINDS) {
      names[kind].hidden = which[kind].value !== "name";
      names[kind].required = which[kind].value === "name";
    }
  };
  changed();
  const limits = Object.entries(words).map(([key, what]) =>
    field(key, h("input", { name: key, type: "number", min: "0", step: "any", value: row?.values[key] ?? "" }), `${what}; empty is none`),
  );
  const about = row
    ? h("p", {}, row.text)
    : KINDS.map(([kind, title]) => h("div", { class: "field" }, h("span", {}, title), which[kind], names[kind]));
  const chosen = () =>
    Object.fromEntries(
      KINDS.filter(([kind]) => which[kind].value).map(([kind]) => [kind, which[kind].value === "name" ? names[kind].value : null]),
    );
  const done = await formDialog(row ? "Change quotas" : "Set a quota", [about, limits], "Save", (given) => {
    const values = {};
    for (const key of Object.keys(words)) {
      if (given[key] !== "") values[key] = Number(given[key]);
      else if (row && key in row.values) values[key] = null;
    }
    return post("quotas", { entity: row ? row.entity : chosen(), values });
  });
  if (done) {
    say("The quotas were saved.");
    again();
  }
}

async function drop(row, again) {
  const limits = Object.keys(row.values).join(", ");
  const done = await confirmed({
    title: "Remove quotas",
    lost: `${row.text} has no limit of its own any more: ${limits} are lost, and defaults apply at once.`,
    name: row.text,
    button: "Remove the quotas",
    work: (confirm) => remove("quotas", { entity: row.entity, confirm }),
  });
  if (done) {
    say("The quotas were removed.");
    again();
  }
}
