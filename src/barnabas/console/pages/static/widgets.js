// What pages are made of: cards, tables, dialogs, charts, tabs and the virtual list.

import { append, h, later, number, put, say, svg } from "./dom.js";

/** A card for a service that is away, or a request that failed; it says what and why. */
export function failed(error, again = null) {
  const away = error.kind === "away";
  const who = error.service ? error.service[0].toUpperCase() + error.service.slice(1) : "A service";
  return h(
    "section",
    { class: `card ${away ? "away" : "bad"}`, role: "alert" },
    h("h2", {}, away ? `${who} is away` : "This cannot be shown"),
    h("p", {}, error.message),
    error.right && error.right !== "read-only"
      ? h("p", { class: "quiet" }, `Ask for the right “${error.right}”.`)
      : null,
    again ? h("button", { type: "button", onclick: again }, "Try again") : null,
  );
}

/** Shows what `load` returns in a place of its own; a failure is a card there. */
export function loaded(load, show, { every = 0, signal = null } = {}) {
  const place = h("div", { class: "loaded", "aria-busy": "true" });
  put(place, h("p", { class: "quiet" }, "Loading…"));
  let timer = 0;
  const run = async () => {
    clearTimeout(timer);
    try {
      const found = await load();
      if (signal?.aborted) return;
      const at = focusOf(place);
      put(place, show(found, run));
      refocus(place, at);
    } catch (error) {
      if (signal?.aborted || error.name === "AbortError") return;
      put(place, failed(error, run));
    } finally {
      place.setAttribute("aria-busy", "false");
      if (every && !signal?.aborted) timer = setTimeout(run, every);
    }
  };
  signal?.addEventListener("abort", () => clearTimeout(timer));
  run();
  place.again = run;
  return place;
}

function focusOf(place) {
  const active = document.activeElement;
  return place.contains(active) ? active.id || active.getAttribute("href") : null;
}

function refocus(place, at) {
  if (!at) return;
  const found = [...place.querySelectorAll("[id],a[href]")].find(
    (one) => one.id === at || one.getAttribute("href") === at,
  );
  found?.focus({ preventScroll: true });
}

/** A table; a column is { title, show(row), kind: "number"|"word"|"", sort }; words stay whole. */
export function table(columns, rows, { caption, empty = "Nothing here.", sort, onsort } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const head = columns.map((column) => {
    if (!column.sort || !onsort) return h("th", { scope: "col", class: column.kind }, column.title);
    const is = sort?.by === column.sort;
    const way = is ? (sort.descending ? "descending" : "ascending") : "none";
    return h(
      "th",
      { scope: "col", class: column.kind, "aria-sort": way },
      h(
        "button",
        { type: "button", class: "sort", onclick: () => onsort(column.sort) },
        column.title,
        h("span", { "aria-hidden": "true" }, is ? (sort.descending ? " ▾" : " ▴") : ""),
      ),
    );
  });
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      columns.map((column, place) => {
        const cell = { class: column.kind, "data-title": column.title };
        return place === 0
          ? h("th", { scope: "row", ...cell }, column.show(row))
          : h("td", cell, column.show(row));
      }),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, body),
    ),
  );
}

/** The buttons below a page of a long list. */
export function pager({ total, page }, size, go) {
  const pages = Math.max(1, Math.ceil(total / size));
  if (pages === 1) return h("p", { class: "quiet" }, `${number(total)} in all`);
  const button = (text, to, off) =>
    h("button", { type: "button", disabled: off, onclick: () => go(to) }, text);
  return h(
    "div",
    { class: "pager" },
    button("Previous", page - 1, page === 0),
    h("span", {}, `Page ${number(page + 1)} of ${number(pages)}, ${number(total)} in all`),
    button("Next", page + 1, page + 1 >= pages),
  );
}

/**
 * A list whose search, filters, order and page are part of the address. Returns [bar, list]; what
 * it is about says:
 * - `address`: the page's path; `query`, `go` and `signal` are the page's own;
 * - `load(state, signal)`: promises { rows, total, page } for { search, page, size, sort, … };
 * - `columns`, `caption`, as those of a table;
 * - `search`: the label of the search field, null for none;
 * - `filters`: [{ name, label, options: [[value, text], …] }, …]; without options a tick box;
 * - `sort`: the column that orders it at first, if columns can;
 * - `empty`: what it says if there is nothing, `none`: if nothing fits what was asked for;
 * - `above(found)`: what stands between bar and table;
 * - `size` of a page; `every` so many milliseconds it is loaded again.
 */
export function listState({ query, go, signal }, about) {
  const { address, load, columns, caption, search = null, filters = [], sort = "" } = about;
  const { size = 50, every = 10000, above = () => null } = about;
  const { empty = "Nothing here yet.", none = "Nothing fits." } = about;
  const state = { search: query.get("search") || "" };
  for (const { name } of filters) state[name] = query.get(name) || "";
  if (sort) {
    state.sort = query.get("sort") || sort;
    state.descending = query.get("descending") || "";
  }
  state.page = Math.max(0, Math.floor(Number(query.get("page"))) || 0);
  const asked = () => Boolean(state.search || filters.some(({ name }) => state[name]));
  const change = (more) => {
    Object.assign(state, { page: 0 }, more);
    const shown = { ...state, page: state.page || "" };
    if (shown.sort === sort && !shown.descending) shown.sort = "";
    go(address, shown, true);
    list.again();
  };
  const list = loaded(
    () => load({ ...state, size }, signal),
    (found) => [
      above(found),
      table(columns, found.rows, {
        caption,
        empty: asked() ? none : empty,
        sort: sort ? { by: state.sort, descending: Boolean(state.descending) } : null,
        onsort: sort
          ? (by) => change({ sort: by, descending: state.sort === by && !state.descending ? "1" : "" })
          : null,
      }),
      pager(found, size, (page) => change({ page })),
    ],
    { every, signal },
  );
  const bar =
    search === null && !filters.length
      ? null
      : h(
          "div",
          { class: "filters" },
          search === null ? null : searchField(search, state.search, (text) => change({ search: text })),
          filters.map(({ name, label, options }) =>
            options
              ? select(options, state[name], (value) => change({ [name]: value }), { "aria-label": label })
              : h(
                  "label",
                  { class: "check" },
                  h("input", {
                    type: "checkbox",
                    checked: Boolean(state[name]),
                    onchange: (event) => change({ [name]: event.target.checked ? "1" : "" }),
                  }),
                  label,
                ),
          ),
        );
  return [bar, list];
}

/** A labelled field. */
export function field(label, control, hint = "") {
  const id = control.id || `f${Math.random().toString(36).slice(2)}`;
  control.id = id;
  const help = hint ? h("small", { id: `${id}-hint` }, hint) : null;
  if (help) control.setAttribute("aria-describedby", help.id);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, help);
}

export function select(options, value, onchange, given = {}) {
  const made = h(
    "select",
    { onchange: (event) => onchange?.(event.target.value), ...given },
    options.map(([name, text]) => h("option", { value: name }, text)),
  );
  made.value = value;
  return made;
}

/** A search field that waits until the writer pauses. */
export function searchField(label, value, onsearch) {
  const input = h("input", {
    type: "search",
    value,
    placeholder: label,
    "aria-label": label,
    oninput: later(250, (event) => onsearch(event.target.value)),
  });
  input.id = "search";
  return input;
}

/** A dialog; `make(close)` returns what it holds. Resolves when it is closed. */
export function dialog(title, make) {
  return new Promise((resolve) => {
    const box = h("dialog", { "aria-labelledby": "dialog-title" });
    const close = (value) => {
      box.close();
      box.remove();
      resolve(value);
    };
    box.addEventListener("cancel", (event) => {
      event.preventDefault();
      close(undefined);
    });
    append(box, [h("h2", { id: "dialog-title" }, title), make(close)]);
    document.body.append(box);
    box.showModal();
  });
}

/** Asks for a name before something is lost; `work` does it. */
export function confirmed({ title, lost, name, button, work }) {
  return dialog(title, (close) => {
    const typed = h("input", { autocomplete: "off", spellcheck: "false" });
    const problem = h("p", { class: "problem", role: "alert" });
    const go = h("button", { class: "danger", disabled: true }, button);
    typed.addEventListener("input", () => {
      go.disabled = typed.value !== name;
    });
    return h(
      "form",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          go.disabled = true;
          try {
            close((await work(name)) || true);
          } catch (error) {
            put(problem, error.message);
            go.disabled = false;
          }
        },
      },
      h("p", { class: "lost" }, lost),
      field(`Write ${name} to confirm`, typed),
      problem,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: () => close(undefined) }, "Cancel"),
        go,
      ),
    );
  });
}

/** A form in a dialog; `work(values)` takes the values of its named fields. */
export function formDialog(title, fields, button, work) {
  return dialog(title, (close) => {
    const problem = h("p", { class: "problem", role: "alert" });
    const go = h("button", { class: "main" }, button);
    return h(
      "form",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          go.disabled = true;
          try {
            const values = Object.fromEntries(new FormData(event.target));
            close((await work(values)) || true);
          } catch (error) {
            put(problem, error.message);
          } finally {
            go.disabled = false;
          }
        },
      },
      fields,
      problem,
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", onclick: () => close(undefined) }, "Cancel"),
        go,
      ),
    );
  });
}

/** A button that needs a right: without it, it is off and says which is lacking. */
export function action(text, allowed, right, onclick, kind = "") {
  if (allowed) return h("button", { type: "button", class: kind, onclick }, text);
  const why = `needs the right “${right}”, or the console is read-only`;
  return h("button", { type: "button", class: kind, disabled: true, title: why }, text);
}

/** Tabs; each is [name, title, make]. */
export function tabs(list, chosen, onchoose) {
  const buttons = list.map(([name, title]) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-selected": String(name === chosen),
        "aria-controls": "tab-panel",
        tabindex: name === chosen ? "0" : "-1",
        onclick: () => onchoose(name),
      },
      title,
    ),
  );
  const bar = h(
    "div",
    {
      role: "tablist",
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const at = buttons.indexOf(document.activeElement);
        const next = buttons[(at + step + buttons.length) % buttons.length];
        next.focus();
        next.click();
      },
    },
    buttons,
  );
  const [, , make] = list.find(([name]) => name === chosen) || list[0];
  const panel = h("div", {
    role: "tabpanel",
    id: "tab-panel",
    "aria-labelledby": `tab-${chosen}`,
  });
  append(panel, [make()]);
  return [bar, panel];
}

/** A chart of [seconds, value] pairs. */
export function chart(points, { label, height = 90, format = number } = {}) {
  if (points.length < 2) return h("p", { class: "quiet" }, "Measuring… values appear shortly.");
  const width = 600;
  const times = points.map(([at]) => at);
  const values = points.map(([, value]) => value);
  const most = Math.max(...values, 1e-9);
  const x = (at) => ((at - times[0]) / (times.at(-1) - times[0] || 1)) * width;
  const y = (value) => height - 4 - (value / most) * (height - 8);
  const line = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const text = `${label}: now ${format(values.at(-1))}, at most ${format(Math.max(...values))}`;
  return h(
    "figure",
    { class: "chart" },
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": text },
      svg("polygon", { class: "area", points: `0,${height} ${line} ${width},${height}` }),
      svg("polyline", { class: "line", points: line }),
    ),
    h("figcaption", {}, text),
  );
}

/** A list of many rows of one height, of which only those in view are elements. */
export class VirtualList {
  constructor({ height, label, make, onopen }) {
    this.rows = [];
    this.height = height;
    this.make = make;
    this.onopen = onopen;
    this.active = 0;
    this.space = h("div", { class: "virtual-space" });
    this.element = h(
      "div",
      {
        class: "virtual",
        role: "grid",
        tabindex: "0",
        "aria-label": label,
        onscroll: () => this.draw(),
        onkeydown: (event) => this.key(event),
      },
      this.space,
    );
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  set(rows) {
    this.rows = rows;
    this.active = Math.min(this.active, Math.max(0, rows.length - 1));
    this.element.setAttribute("aria-rowcount", String(rows.length));
    this.draw();
  }

  draw() {
    const top = this.element.scrollTop;
    const shown = Math.ceil((this.element.clientHeight || 400) / this.height) + 10;
    const first = Math.max(0, Math.floor(top / this.height) - 5);
    this.space.style.height = `${this.rows.length * this.height}px`;
    const made = this.rows.slice(first, first + shown).map((row, place) => {
      const at = first + place;
      const element = this.make(row, at);
      element.setAttribute("role", "row");
      element.setAttribute("aria-rowindex", String(at + 1));
      element.classList.add("virtual-row");
      element.id = `row-${at}`;
      if (at === this.active) element.classList.add("active");
      element.style.top = `${at * this.height}px`;
      element.style.height = `${this.height}px`;
      element.addEventListener("click", () => {
        this.active = at;
        this.onopen(row);
        this.draw();
      });
      return element;
    });
    this.space.replaceChildren(...made);
    if (this.rows.length) this.element.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const page = Math.floor(this.element.clientHeight / this.height) - 1;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const last = this.rows.length - 1;
    let to = this.active;
    if (event.key in steps) to += steps[event.key];
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = last;
    else if (event.key === "Enter" && this.rows[this.active]) {
      this.onopen(this.rows[this.active]);
      return;
    } else return;
    event.preventDefault();
    this.active = Math.max(0, Math.min(last, to));
    const top = this.active * this.height;
    const view = this.element;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + this.height > view.scrollTop + view.clientHeight)
      view.scrollTop = top + this.height - view.clientHeight;
    this.draw();
  }
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("The browser does not let pages copy here.", "bad");
  }
}
