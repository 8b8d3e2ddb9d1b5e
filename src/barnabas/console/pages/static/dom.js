// Elements are made here and nowhere else: texts become text nodes, so that nothing that a cluster
// holds (names, keys, values, headers) can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element: h("button", { class: "main", onclick: f }, "Save", …). */
export function h(name, given = {}, ...children) {
  return fill(document.createElement(name), given, children);
}

/** The same for SVG. */
export function svg(name, given = {}, ...children) {
  return fill(document.createElementNS(SVG, name), given, children);
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else if (name === "checked") element.checked = true;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** Appends elements and texts; null, undefined and false are nothing. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces what an element holds. */
export function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Says something to the reader, for a while. */
export function say(text, kind = "") {
  const box = document.getElementById("said");
  const line = h("p", { class: kind }, text);
  box.append(line);
  setTimeout(() => line.remove(), kind === "bad" ? 10000 : 4000);
}

const NUMBER = new Intl.NumberFormat("en");

export function number(value) {
  return value === null || value === undefined ? "–" : NUMBER.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined || value < 0) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function rate(value) {
  if (value === null || value === undefined) return "–";
  return `${value >= 10 ? NUMBER.format(Math.round(value)) : value.toFixed(1)} /s`;
}

export function time(ms) {
  if (ms === null || ms === undefined) return "–";
  const at = new Date(ms);
  const two = (part, width = 2) => String(part).padStart(width, "0");
  return (
    `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
    `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.` +
    two(at.getMilliseconds(), 3)
  );
}

/** A time that passed, in the two largest units: 2 h 5 min. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.round(ms / 1000);
  const parts = [];
  for (const [unit, size] of units) {
    if (left >= size) parts.push(`${Math.floor(left / size)} ${unit}`);
    else if (parts.length) break;
    left %= size;
  }
  return parts.slice(0, 2).join(" ");
}

export function plural(count, what, many = `${what}s`) {
  return `${number(count)} ${count === 1 ? what : many}`;
}

/** Runs `work` at most once per `ms`, after the last call. */
export function later(ms, work) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), ms);
  };
}
