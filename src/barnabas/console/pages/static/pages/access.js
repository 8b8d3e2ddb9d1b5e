// Who may do what: ACLs, and users who log in by SCRAM.

import { get, part, post, remove } from "../api.js";
import { append, h, number, put, say } from "../dom.js";
import { action, confirmed, field, formDialog, listState, select, tabs } from "../widgets.js";

export function accessPage(page) {
  const { names, go } = page;
  return [
    h("h1", {}, "Access"),
    tabs(
      [
        ["acls", "ACLs", () => acls(page)],
        ["users", "Users", () => users(page)],
      ],
      names[0] || "acls",
      (name) => go(name === "acls" ? "/access" : `/access/${name}`),
    ),
  ];
}

const KINDS = ["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"];

function acls(page) {
  const { me, again } = page;
  const may = me.everywhere.includes("admin");
  return [
    h("div", { class: "actions" }, action("Add ACLs", may, "admin", () => addAcls(again))),
    listState(page, {
      address: "/access",
      load: (state, signal) => get("acls", state, signal),
      columns: [
        { title: "Principal", show: (row) => row.principal },
        {
          title: "Permission",
          show: (row) => h("span", { class: `tag ${row.permission === "DENY" ? "bad" : "good"}` }, row.permission),
        },
        { title: "Operation", kind: "word", show: (row) => row.operation },
        { title: "Resource", kind: "word", show: (row) => row.resource_type },
        {
          title: "Name",
          show: (row) => [row.name, row.pattern === "PREFIXED" ? h("span", { class: "tag" }, "prefix") : null],
        },
        { title: "Host", kind: "word", show: (row) => row.host },
        { title: "Action", show: (row) => action("Remove", may, "admin", () => dropAcl(row, again), "danger") },
      ],
      caption: "ACLs",
      search: "Search ACLs",
      filters: [
        { name: "kind", label: "Resource", options: [["", "All resources"], ...KINDS.map((one) => [one, one])] },
        { name: "permission", label: "Permission", options: [["", "Allow and deny"], ["ALLOW", "ALLOW"], ["DENY", "DENY"]] },
      ],
      empty: "There are no ACLs yet.",
      none: "No ACL fits.",
    }),
  ];
}

async function addAcls(again) {
  const words = await get("acls/words");
  const kind = select(KINDS.map((one) => [one, one]), "TOPIC", () => changed(), { name: "resource_type" });
  const operations = h("select", { name: "operations", multiple: true, size: "6", required: true });
  const name = h("input", { name: "name", required: true, autocomplete: "off", spellcheck: "false" });
  const nameField = field("Name", name, "* is all of them");
  const pattern = field(
    "Pattern",
    select([["LITERAL", "this name"], ["PREFIXED", "all names that begin so"]], "LITERAL", null, { name: "pattern" }),
  );
  const changed = () => {
    put(operations);
    append(operations, words[kind.value].map((one) => h("option", { value: one }, one)));
    nameField.hidden = pattern.hidden = kind.value === "CLUSTER";
    name.required = kind.value !== "CLUSTER";
  };
  changed();
  const done = await formDialog(
    "Add ACLs",
    [
      field("Principal", h("input", { name: "principal", required: true, placeholder: "User:alice", autocomplete: "off" }), "User:* is everybody"),
      field("Permission", select([["ALLOW", "allow"], ["DENY", "deny"]], "ALLOW", null, { name: "permission" })),
      field("Resource", kind),
      nameField,
      pattern,
      field("Operations", operations, "Several: with Ctrl or Shift"),
      field("Host", h("input", { name: "host", value: "*", required: true })),
    ],
    "Add",
    (values) => post("acls", { ...values, operations: [...operations.selectedOptions].map((one) => one.value) }),
  );
  if (done) {
    say(`${number(done.added.length)} added.`);
    again();
  }
}

async function dropAcl(row, again) {
  const { text, ...acl } = row;
  const done = await confirmed({
    title: "Remove an ACL",
    lost:
      row.permission === "DENY"
        ? `This no longer holds: ${text}. Other ACLs may then allow it.`
        : `This is lost at once, also for clients that are connected: ${text}.`,
    name: row.principal,
    button: "Remove the ACL",
    work: (confirm) => remove("acls", { ...acl, confirm }),
  });
  if (done) {
    say("The ACL was removed.");
    again();
  }
}

function users(page) {
  const { me, again } = page;
  const may = me.everywhere.includes("admin");
  return [
    h("div", { class: "actions" }, action("Create a user", may, "admin", () => createUser(again))),
    listState(page, {
      address: "/access/users",
      load: (state, signal) => get("users", state, signal),
      columns: [
        { title: "User", show: (row) => row.name },
        { title: "Mechanisms", show: (row) => row.credentials.map((one) => one.mechanism).join(", ") },
        { title: "Iterations", kind: "number", show: (row) => [...new Set(row.credentials.map((one) => number(one.iterations)))].join(", ") },
        {
          title: "Actions",
          show: (row) => [
            action("Change password", may, "admin", () => changePassword(row.name, again)),
            " ",
            action("Delete", may, "admin", () => dropUser(row.name, again), "danger"),
          ],
        },
      ],
      caption: "Users",
      search: "Search users",
      empty: "There are no users that log in by SCRAM yet.",
      none: "No user fits.",
    }),
  ];
}

function passwordField(label) {
  return field(label, h("input", { name: "password", type: "password", required: true, autocomplete: "new-password" }));
}

async function createUser(again) {
  const done = await formDialog(
    "Create a user",
    [
      field("Name", h("input", { name: "name", required: true, autocomplete: "off", spellcheck: "false" })),
      passwordField("Password"),
      h("p", { class: "quiet" }, "The user may then do what ACLs allow."),
    ],
    "Create",
    ({ name, password }) => post("users", { name, password }),
  );
  if (done) {
    say(`${done.name} was created.`);
    again();
  }
}

async function changePassword(name, again) {
  const done = await formDialog(
    `Change the password of ${name}`,
    [passwordField("New password"), h("p", { class: "quiet" }, "Clients with the old one cannot log in any more.")],
    "Change",
    ({ password }) => post(`users/${part(name)}/password`, { password }),
  );
  if (done) {
    say(`The password of ${name} was changed.`);
    again();
  }
}

async function dropUser(name, again) {
  const done = await confirmed({
    title: `Delete user ${name}`,
    lost: `${name} cannot log in any more; its ACLs and quotas stay. Clients that are connected stay so until they log in again.`,
    name,
    button: "Delete the user",
    work: (confirm) => remove(`users/${part(name)}`, { confirm }),
  });
  if (done) {
    say(`${name} was deleted.`);
    again();
  }
}
