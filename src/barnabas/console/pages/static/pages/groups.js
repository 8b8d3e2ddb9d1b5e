// Consumer groups: the list, and one group with members, lag and a reset with a preview.

import { get, part, post, remove } from "../api.js";
import { h, number, plural, put, say } from "../dom.js";
import {
  action,
  chart,
  confirmed,
  dialog,
  field,
  listState,
  loaded,
  select,
  table,
} from "../widgets.js";

const KINDS = { Stable: "good", Empty: "", Dead: "bad" };

export function groupsPage(page) {
  return [
    h("h1", {}, "Groups"),
    listState(page, {
      address: "/groups",
      load: (state, signal) => get("groups", state, signal),
      columns: [
        { title: "Group", show: (row) => h("a", { href: `#/groups/${part(row.name)}` }, row.name) },
        { title: "State", show: (row) => h("span", { class: `tag ${KINDS[row.state] ?? "warning"}` }, row.state) },
        { title: "Type", show: (row) => row.type },
        { title: "Coordinator", kind: "number", show: (row) => h("a", { href: `#/nodes/${row.coordinator}` }, `node ${row.coordinator}`) },
      ],
      caption: "Groups",
      search: "Search groups",
      filters: [
        {
          name: "state",
          label: "State",
          options: [
            ["", "All states"],
            ["Stable", "Stable"],
            ["Empty", "Empty"],
            ["PreparingRebalance", "Preparing a rebalance"],
            ["CompletingRebalance", "Completing a rebalance"],
          ],
        },
      ],
      empty: "There are no groups yet.",
      none: "No group fits.",
    }),
  ];
}

export function groupPage({ names: [name], go, signal }) {
  const path = `groups/${part(name)}`;
  const place = loaded(
    () => get(path, {}, signal),
    (found) => [
      h(
        "p",
        { class: "facts" },
        h("span", { class: `tag ${KINDS[found.row.state] ?? "warning"}` }, found.row.state),
        ` ${found.row.type}, ${found.row.protocol || "no assignor"}, coordinated by node ${found.row.coordinator}`,
      ),
      h(
        "div",
        { class: "actions" },
        action("Reset offsets", found.may.edit, "edit", () => reset(path, name, found, place)),
        action("Delete group", found.may.admin, "admin", () => drop(path, name, found, go), "danger"),
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, `Lag: ${plural(found.total, "record")}`),
        chart(found.history, { label: "Lag in records, while this page is open" }),
        found.is_partial
          ? h("p", { class: "quiet" }, "The group has more topics: those that you may not see are neither shown nor counted.")
          : null,
      ),
      h("h2", {}, "Partitions"),
      table(
        [
          { title: "Topic", show: (row) => h("a", { href: `#/topics/${part(row.topic)}` }, row.topic) },
          { title: "Partition", kind: "number", show: (row) => row.partition },
          { title: "Committed", kind: "number", show: (row) => (row.committed < 0 ? "–" : number(row.committed)) },
          { title: "End", kind: "number", show: (row) => number(row.end) },
          { title: "Lag", kind: "number", show: (row) => number(row.lag) },
          { title: "Member", show: (row) => row.member ?? "–" },
        ],
        found.lags,
        { caption: "Lag by partition", empty: found.is_partial ? "The group has committed nothing in topics that you may see." : "The group has committed nothing." },
      ),
      h("h2", {}, "Members"),
      table(
        [
          { title: "Member", show: (row) => row.id },
          { title: "Client", show: (row) => row.client_id },
          { title: "Host", show: (row) => row.host },
          { title: "Partitions", kind: "number", show: (row) => number(row.partitions.length) },
        ],
        found.members,
        { caption: "Members", empty: "No member is connected." },
      ),
    ],
    { every: 5000, signal },
  );
  return [h("h1", {}, name), place];
}

async function drop(path, name, found, go) {
  const done = await confirmed({
    title: `Delete group ${name}`,
    lost: `The group’s committed offsets of ${plural(found.lags.length, "partition")}${found.is_partial ? ", and those of topics that you may not see," : ""} are lost: its consumers begin where auto.offset.reset says.`,
    name,
    button: "Delete the group",
    work: (confirm) => remove(path, { confirm }),
  });
  if (done) {
    say(`${name} was deleted.`);
    go("/groups");
  }
}

function reset(path, name, found, place) {
  const topics = [...new Set(found.lags.map((one) => one.topic))];
  return dialog(`Reset offsets of ${name}`, (close) => {
    const to = select(
      [
        ["earliest", "The beginning"],
        ["latest", "The end"],
        ["time", "A time"],
        ["offset", "An offset"],
        ["shift", "So many records on or back"],
      ],
      "earliest",
      () => changed(),
    );
    const topic = select([["", found.is_partial ? "All topics that you may see" : "All topics"], ...topics.map((one) => [one, one])], "", () => changed());
    const value = h("input", { type: "number", value: "0", oninput: () => changed() });
    const at = h("input", { type: "datetime-local", step: "1", oninput: () => changed() });
    const valueField = field("Value", value);
    const timeField = field("Time", at);
    const preview = h("div", { class: "preview", "aria-live": "polite" });
    const problem = h("p", { class: "problem", role: "alert" });
    const typed = h("input", { autocomplete: "off", oninput: () => allow() });
    const go = h("button", { class: "danger", disabled: true }, "Reset");
    let moves = null;
    const allow = () => {
      go.disabled = !moves || typed.value !== name;
    };
    const changed = () => {
      moves = null;
      allow();
      put(preview);
      valueField.hidden = !["offset", "shift"].includes(to.value);
      timeField.hidden = to.value !== "time";
    };
    const plan = async () => {
      put(problem);
      try {
        const given = to.value === "time" ? new Date(at.value).getTime() : Number(value.value);
        if (Number.isNaN(given)) throw new Error("Choose a time first.");
        const answer = await post(`${path}/plan`, {
          to: to.value,
          value: given,
          topics: topic.value ? [topic.value] : [],
        });
        moves = answer.moves;
        put(
          preview,
          h(
            "p",
            { class: "lost" },
            `${plural(answer.records.again, "record")} will be read again, ${plural(answer.records.skipped, "record")} will be left out.`,
          ),
          table(
            [
              { title: "Partition", show: (row) => `${row.topic}-${row.partition}` },
              { title: "Now", kind: "number", show: (row) => (row.before === null ? "–" : number(row.before)) },
              { title: "Then", kind: "number", show: (row) => number(row.after) },
            ],
            moves,
            { caption: "What moves" },
          ),
        );
        allow();
      } catch (error) {
        put(problem, error.message);
      }
    };
    const form = h(
      "form",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            await post(`${path}/reset`, { moves, confirm: typed.value });
            say(`Offsets of ${name} were reset.`);
            close(true);
            place.again();
          } catch (error) {
            put(problem, error.message);
          }
        },
      },
      found.members.length
        ? h("p", { class: "lost" }, `The group has ${plural(found.members.length, "member")}: stop them first, or the reset is refused.`)
        : null,
      field("Begin at", to),
      field("Topic", topic),
      valueField,
      timeField,
      h("button", { type: "button", id: "plan", onclick: plan }, "Show what moves"),
      preview,
      field(`Write ${name} to confirm`, typed),
      problem,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: () => close(undefined) }, "Cancel"),
        go,
      ),
    );
    changed();
    return form;
  });
}
