// Who did what.

import { get } from "../api.js";
import { h } from "../dom.js";
import { loaded, searchField, table } from "../widgets.js";

export function auditPage({ signal }) {
  let search = "";
  const list = loaded(
    () => get("audit", { search }, signal),
    (found) =>
      table(
        [
          { title: "Time", show: (row) => row.time },
          { title: "User", show: (row) => row.user },
          { title: "Address", show: (row) => row.address },
          { title: "Action", show: (row) => row.action },
          { title: "Target", show: (row) => row.target || "–" },
          { title: "Outcome", show: (row) => row.outcome },
        ],
        found,
        { caption: "What was done", empty: "Nothing was done yet." },
      ),
    { every: 10000, signal },
  );
  return [
    h("h1", {}, "Audit log"),
    h(
      "div",
      { class: "filters" },
      searchField("Search the audit log", "", (text) => {
        search = text;
        list.again();
      }),
    ),
    list,
  ];
}
