// Who did what.

import { get } from "../api.js";
import { h } from "../dom.js";
import { listState } from "../widgets.js";

export function auditPage(page) {
  return [
    h("h1", {}, "Audit log"),
    listState(page, {
      address: "/audit",
      load: (state, signal) => get("audit", state, signal),
      columns: [
        { title: "Time", show: (row) => row.time },
        { title: "User", show: (row) => row.user },
        { title: "Address", show: (row) => row.address },
        { title: "Action", show: (row) => row.action },
        { title: "Target", show: (row) => row.target || "–" },
        { title: "Outcome", show: (row) => row.outcome },
      ],
      caption: "What was done",
      search: "Search the audit log",
      empty: "Nothing was done yet.",
    }),
  ];
}
