// Completion in the editor of SQL: keywords, functions, streams and tables, and their columns.

import { get, part } from "../api.js";
import { h, plural, put } from "../dom.js";

const SHOWN_MAX = 12;
const LETTERS_MIN = 2;
const KEYWORDS = (
  "ADD ADVANCE ALL ALTER AND AS ASSERT BETWEEN BY CASE CAST CHANGES COLUMN COLUMNS CONNECTOR CONNECTORS CREATE " +
  "DATE DAYS DEFINE DELETE DESCRIBE DROP ELSE EMIT END EXISTS EXPLAIN EXTENDED FINAL FROM FULL FUNCTION FUNCTIONS " +
  "GRACE GROUP HAVING HEADERS HOPPING HOURS IF IN INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT LIST MATERIALIZED " +
  "MINUTES NOT NULL ON OR OUTER OUTPUT PARTITION PARTITIONS PAUSE PERIOD PRIMARY PRINT PROPERTIES QUERIES REPLACE " +
  "RESUME RETENTION RIGHT ROWTIME SECONDS SELECT SESSION SET SHOW SINK SIZE SOURCE STREAM STREAMS STRUCT TABLE TABLES " +
  "TERMINATE THEN TIMESTAMP TOPIC TOPICS TUMBLING TYPE TYPES UNDEFINE UNSET VALUES VARIABLES WHEN WHERE WINDOW " +
  "WINDOWEND WINDOWSTART WITH WITHIN ARRAY BIGINT BOOLEAN BYTES DECIMAL DOUBLE INT INTEGER MAP STRING VARCHAR"
).split(" ");
/** Words after which a stream or table is meant. */
const BEFORE_SOURCE = /\b(?:from|join|into|describe|stream|table|print)\s+$/i;
const NAMED = /\b(?:from|join|into)\s+(`[^`]+`|\w+)(?:\s+(?:as\s+)?(`[^`]+`|\w+))?/gi;
const PLAIN = /^[A-Z_][A-Z0-9_]*$/;

/**
 * Gives a text area suggestions; returns the element that shows them. Ctrl and Space asks for them,
 * as do two letters; arrow keys choose, Enter or Tab takes, Escape closes.
 */
export function completion(area, signal) {
  const known = { functions: [], sources: [], columns: new Map(), asked: null };
  const list = h("ul", { id: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: true });
  const told = h("p", { class: "hidden", role: "status" });
  let shown = [];
  let chosen = -1;

  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-haspopup", "listbox");
  area.setAttribute("aria-controls", list.id);

  const close = () => {
    shown = [];
    chosen = -1;
    list.hidden = true;
    put(list);
    put(told);
    area.removeAttribute("aria-activedescendant");
  };

  const ask = () => (known.asked ??= load());

  const load = async () => {
    const parts = [
      get("sql/functions", {}, signal).then((found) => (known.functions = found)),
      get("sql/sources", { size: 500 }, signal).then((found) => (known.sources = found.rows)),
    ];
    // Without an answer there is less to suggest; the page itself says that the server is away.
    const failed = (await Promise.allSettled(parts)).some(({ status }) => status === "rejected");
    if (failed) known.asked = null;
  };

  // Promises: who types on while a source is asked about waits for the same answer.
  const columnsOf = (source) => {
    if (!known.columns.has(source)) {
      const asked = get(`sql/sources/${part(source)}/columns`, {}, signal).catch(() => {
        known.columns.delete(source); // asked for again next time
        return [];
      });
      known.columns.set(source, asked);
    }
    return known.columns.get(source);
  };

  /** What is named in the statement around a place, by name and alias. */
  const named = (text) => {
    const found = new Map();
    const canonical = (word) => (word.startsWith("`") ? word.slice(1, -1) : word.toUpperCase());
    for (const [, name, alias] of text.matchAll(NAMED)) {
      const source = canonical(name);
      if (!known.sources.some((one) => one.name === source)) continue;
      found.set(source, source);
      if (alias) found.set(canonical(alias), source);
    }
    return found;
  };

  const suggest = async (isWanted) => {
    const { before, word, qualifier } = wordAt(area);
    if (!isWanted && word.length < LETTERS_MIN && !qualifier) return close();
    if (isQuoted(before)) return close();
    await ask();
    const sources = named(area.value);
    const wanted = qualifier ? [sources.get(qualifier)].filter(Boolean) : [...new Set(sources.values())];
    const columns = (await Promise.all(wanted.map(columnsOf))).flat();
    if (area.selectionStart !== area.selectionEnd || wordAt(area).before !== before) return null; // typed on
    const rows = [];
    const seen = new Set();
    const add = (name, kind, text) => {
      const key = `${kind} ${name}`;
      if (seen.has(key) || !name.toLowerCase().startsWith(word.toLowerCase())) return;
      if (name.toLowerCase() === word.toLowerCase() && kind === "keyword") return;
      seen.add(key);
      rows.push({ name, kind, text });
    };
    const addSources = () => known.sources.forEach(({ name, kind }) => add(name, kind.toLowerCase(), quoted(name)));
    if (!qualifier && BEFORE_SOURCE.test(before.slice(0, before.length - word.length))) addSources();
    columns.forEach(({ name, type }) => add(name, `column, ${type}`, quoted(name)));
    if (!qualifier) {
      addSources();
      const isSmall = word !== "" && word === word.toLowerCase();
      const cased = (text) => (isSmall ? text.toLowerCase() : text);
      KEYWORDS.forEach((name) => add(name, "keyword", cased(name)));
      known.functions.forEach((name) => add(name, "function", `${cased(name)}(`));
    }
    shown = rows.slice(0, SHOWN_MAX);
    if (!shown.length) return close();
    choose(isWanted ? 0 : -1);
    put(told, `${plural(rows.length, "suggestion")}. Arrow keys choose, Enter takes.`);
    return null;
  };

  const choose = (at) => {
    chosen = at;
    list.hidden = false;
    put(
      list,
      shown.map(({ name, kind }, place) =>
        h(
          "li",
          {
            id: `suggestion-${place}`,
            role: "option",
            "aria-selected": String(place === chosen),
            // Before the text area loses the focus.
            onmousedown: (event) => {
              event.preventDefault();
              take(place);
            },
          },
          h("span", {}, name),
          h("small", {}, kind),
        ),
      ),
    );
    if (chosen >= 0) {
      area.setAttribute("aria-activedescendant", `suggestion-${chosen}`);
      list.children[chosen].scrollIntoView({ block: "nearest" });
    } else area.removeAttribute("aria-activedescendant");
  };

  const take = (at) => {
    const { word } = wordAt(area);
    const end = area.selectionStart;
    area.setRangeText(shown[at].text, end - word.length, end, "end");
    close();
    area.focus();
  };

  area.addEventListener("input", () => suggest(false));
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      suggest(true);
      return;
    }
    if (list.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      choose(chosen < 0 && step < 0 ? shown.length - 1 : (chosen + step + shown.length) % shown.length);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
      event.preventDefault();
      take(chosen);
    } else if (["ArrowLeft", "ArrowRight", "Home", "End", "Enter"].includes(event.key)) close();
  });
  return h("div", { class: "completion" }, list, told);
}

/** The word that ends at the cursor, what it is qualified by, and all that is before the cursor. */
function wordAt(area) {
  const before = area.value.slice(0, area.selectionStart);
  const word = /[\w]*$/.exec(before)[0];
  const found = /(`[^`]+`|\w+)\.$/.exec(before.slice(0, before.length - word.length));
  const name = found?.[1] ?? "";
  return { before, word, qualifier: name.startsWith("`") ? name.slice(1, -1) : name.toUpperCase() };
}

/** Whether a text ends within a string, a quoted name or a comment. */
function isQuoted(text) {
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const pair = text.slice(at, at + 2);
    if (quote === "\n" || quote === "'" || quote === "`") {
      if (text[at] === quote) quote = "";
    } else if (quote === "*/") {
      if (pair === quote) quote = "";
    } else if (pair === "--") quote = "\n";
    else if (pair === "/*") quote = "*/";
    else if (text[at] === "'" || text[at] === "`") quote = text[at];
  }
  return quote !== "";
}

function quoted(name) {
  return PLAIN.test(name) ? name : `\`${name}\``;
}
