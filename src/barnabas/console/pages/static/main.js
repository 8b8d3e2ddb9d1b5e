// The frame: login, menu, theme, and which page an address (#/topics/orders/messages) shows.

import { address, get, part, post, whenLoggedOut } from "./api.js";
import { h, put, say } from "./dom.js";
import { failed, field } from "./widgets.js";
import { accessPage } from "./pages/access.js";
import { auditPage } from "./pages/audit.js";
import { connectorPage, connectorsPage } from "./pages/connectors.js";
import { groupPage, groupsPage } from "./pages/groups.js";
import { nodePage, nodesPage } from "./pages/nodes.js";
import { overviewPage } from "./pages/overview.js";
import { quotasPage } from "./pages/quotas.js";
import { schemaPage, schemasPage } from "./pages/schemas.js";
import { queryPage, sqlPage } from "./pages/sql.js";
import { topicPage, topicsPage } from "./pages/topics.js";
import { transactionsPage } from "./pages/transactions.js";

/** Pages: a pattern of the address, a title, and what makes it. */
const PAGES = [
  [/^\/$/, "Overview", overviewPage],
  [/^\/topics$/, "Topics", topicsPage],
  [/^\/topics\/([^/]+)(?:\/([a-z]+))?$/, "Topic", topicPage],
  [/^\/groups$/, "Groups", groupsPage],
  [/^\/groups\/([^/]+)$/, "Group", groupPage],
  [/^\/nodes$/, "Nodes", nodesPage],
  [/^\/nodes\/(\d+)$/, "Node", nodePage],
  [/^\/schemas$/, "Schemas", schemasPage],
  [/^\/schemas\/([^/]+)$/, "Schema", schemaPage],
  [/^\/connectors$/, "Connectors", connectorsPage],
  [/^\/connectors\/([^/]+)$/, "Connector", connectorPage],
  [/^\/sql(?:\/(sources|queries))?$/, "SQL", sqlPage],
  [/^\/sql\/queries\/([^/]+)$/, "Query", queryPage],
  [/^\/transactions(?:\/(hanging))?$/, "Transactions", transactionsPage],
  [/^\/access(?:\/(users))?$/, "Access", accessPage],
  [/^\/quotas$/, "Quotas", quotasPage],
  [/^\/audit$/, "Audit log", auditPage],
];
/**
 * The menu. `key` comes after g; a page is there for users who have the right `needs`, `everywhere`
 * if it says so, and where the console has the `service`.
 */
const MENU = [
  { to: "/", text: "Overview", key: "o", needs: "view" },
  { to: "/topics", text: "Topics", key: "t", needs: "view" },
  { to: "/groups", text: "Groups", key: "g", needs: "view" },
  { to: "/nodes", text: "Nodes", key: "n", needs: "view" },
  { to: "/schemas", text: "Schemas", key: "s", needs: "view", service: "registry" },
  { to: "/connectors", text: "Connectors", key: "c", needs: "view", service: "connect" },
  { to: "/sql", text: "SQL", key: "e", needs: "view", service: "sql" },
  { to: "/transactions", text: "Transactions", key: "x", needs: "view", everywhere: true },
  { to: "/access", text: "Access", key: "a", needs: "view", everywhere: true },
  { to: "/quotas", text: "Quotas", key: "q", needs: "view", everywhere: true },
  { to: "/audit", text: "Audit log", key: "l", needs: "admin", everywhere: true },
];
const THEMES = ["auto", "light", "dark"];

const main = document.getElementById("main");
let me = null;
let leaving = new AbortController();

function here() {
  const text = location.hash.replace(/^#/, "") || "/";
  const [path, query = ""] = text.split("?");
  return { text, path, query: new URLSearchParams(query) };
}

/** Goes to an address; `replace` keeps the history as it is. */
export function go(path, query = {}, replace = false) {
  const left = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const text = new URLSearchParams(left).toString();
  const to = `#${path}${text ? `?${text}` : ""}`;
  if (replace) {
    history.replaceState(null, "", to);
  } else location.hash = to;
}

function show() {
  leaving.abort();
  leaving = new AbortController();
  const { path, query } = here();
  drawMenu(path);
  for (const [pattern, title, make] of PAGES) {
    const found = pattern.exec(path);
    if (!found) continue;
    let names;
    try {
      names = found.slice(1).map((one) => (one === undefined ? one : decodeURIComponent(one)));
    } catch {
      break;
    }
    document.title = `${names[0] ? `${names[0]} – ` : ""}${title} – Barnabas console`;
    put(main, make({ names, query, me, go, signal: leaving.signal, again: show }));
    main.focus({ preventScroll: true });
    return;
  }
  document.title = "Barnabas console";
  put(
    main,
    h("h1", {}, "No such page"),
    h("p", {}, `There is no page at ${path}. `, h("a", { href: "#/" }, "Go to the overview")),
  );
}

function drawMenu(path) {
  const links = menu().map(({ to, text, key }) => {
    const is = to === "/" ? path === "/" : path.startsWith(to);
    return h(
      "a",
      { href: `#${to}`, "aria-current": is ? "page" : null, title: `g, then ${key}` },
      text,
    );
  });
  put(document.getElementById("menu"), links);
  // On a phone the menu is a row that scrolls.
  const current = links.find((link) => link.hasAttribute("aria-current"));
  current?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function menu() {
  return MENU.filter(
    ({ needs, everywhere, service }) =>
      (everywhere ? me.everywhere : me.rights).includes(needs) &&
      (!service || me.services.includes(service)),
  );
}

function drawTop() {
  const theme = h(
    "button",
    { type: "button", id: "theme", onclick: nextTheme },
    `Theme: ${currentTheme()}`,
  );
  const out = async () => {
    let to = null;
    try {
      ({ to } = await post("logout"));
    } finally {
      if (to) location.assign(to);
      else location.reload();
    }
  };
  put(
    document.getElementById("top"),
    h("a", { class: "brand", href: "#/" }, "Barnabas console"),
    me?.is_read_only ? h("span", { class: "tag warning" }, "read-only") : null,
    h("span", { class: "fill" }),
    theme,
    me?.user && me.needs_login
      ? [
          h("span", { class: "quiet" }, me.user),
          h("button", { type: "button", id: "logout", onclick: out }, "Log out"),
        ]
      : null,
  );
}

function currentTheme() {
  const found = localStorage.getItem("theme");
  return THEMES.includes(found) ? found : "auto";
}

// The style sheet has one block for each theme; the system's choice is read here.
const PREFERS_DARK = matchMedia("(prefers-color-scheme: dark)");
PREFERS_DARK.addEventListener("change", applyTheme);

function applyTheme() {
  const theme = currentTheme();
  const wished = PREFERS_DARK.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme === "auto" ? wished : theme;
}

function nextTheme() {
  localStorage.setItem("theme", THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length]);
  applyTheme();
  drawTop();
  document.getElementById("theme").focus();
}

function loginPage() {
  leaving.abort();
  put(document.getElementById("menu"));
  document.title = "Log in – Barnabas console";
  const name = h("input", { autocomplete: "username", required: true, id: "name" });
  const password = h("input", {
    type: "password",
    autocomplete: "current-password",
    required: true,
    id: "password",
  });
  const problem = h("p", { class: "problem", role: "alert" });
  put(
    main,
    h(
      "form",
      {
        class: "card login",
        onsubmit: async (event) => {
          event.preventDefault();
          try {
            await post("login", { name: name.value, password: password.value });
            await begin();
          } catch (error) {
            put(problem, error.message);
            password.value = "";
            password.focus();
          }
        },
      },
      h("h1", {}, "Log in"),
      me.provider
        ? h(
            "p",
            {},
            h(
              "a",
              { class: "button", id: "provider", href: address("login/oidc", { to: here().text }) },
              `Log in with ${me.provider}`,
            ),
          )
        : null,
      me.has_passwords
        ? [
            field("Name", name),
            field("Password", password),
            problem,
            h("button", { class: "main" }, "Log in"),
          ]
        : null,
    ),
  );
  (me.has_passwords ? name : document.getElementById("provider")).focus();
}

let pressed = "";
let forgetting = 0;

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!me?.user || document.querySelector("dialog[open]")) return;
  if (event.key === "/") {
    const search = document.getElementById("search") || document.getElementById("filter");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (pressed === "g") {
    const found = menu().find(({ key }) => key === event.key);
    pressed = "";
    if (found) go(found.to);
  } else {
    pressed = event.key;
    clearTimeout(forgetting);
    forgetting = setTimeout(() => (pressed = ""), 1000);
  }
});

let wasLoggedIn = false;

async function begin() {
  try {
    me = await get("me");
  } catch (error) {
    put(main, failed(error, begin));
    return;
  }
  drawTop();
  if (me.user) {
    wasLoggedIn = true;
    show();
  } else loginPage();
}

whenLoggedOut(() => {
  if (!wasLoggedIn) return;
  wasLoggedIn = false;
  me.user = null;
  drawTop();
  loginPage();
  say("The session has ended.", "bad");
});
window.addEventListener("hashchange", () => {
  if (me?.user) show();
});
applyTheme();
begin();
export { part };
