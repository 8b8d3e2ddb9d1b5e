// A query's plan as a picture: sources at the top, what the query writes at the bottom.

import { h, svg } from "../dom.js";

const WIDTH = 156;
const HEIGHT = 46;
const GAP_X = 14;
const GAP_Y = 26;
/** Characters that fit into a step, of its title and of its detail. */
const TITLE_CHARS = 21;
const DETAIL_CHARS = 23;

/** `steps`: [{ kind, title, detail, inputs }], inputs first; the last one is what all lead to. */
export function planPicture(steps) {
  if (!steps.length) return null;
  const places = placed(steps);
  const width = Math.max(...places.map(({ x }) => x)) + WIDTH + 2;
  const height = Math.max(...places.map(({ y }) => y)) + HEIGHT + 2;
  const edges = steps.flatMap((step, to) => step.inputs.map((from) => edge(places[from], places[to])));
  return h(
    "figure",
    { class: "plan scroll", tabindex: "0", role: "group", "aria-label": "The plan as a picture" },
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": inWords(steps) },
      svg(
        "defs",
        {},
        svg(
          "marker",
          { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
          svg("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }),
        ),
      ),
      edges,
      steps.map((step, at) => box(step, places[at])),
    ),
  );
}

/** Columns from left to right for the sources, and each other step amid those that it reads. */
function placed(steps) {
  const rows = new Array(steps.length).fill(0);
  for (let at = steps.length - 1; at >= 0; at -= 1)
    for (const from of steps[at].inputs) rows[from] = rows[at] + 1;
  const last = Math.max(...rows);
  const columns = new Array(steps.length).fill(0);
  let next = 0;
  steps.forEach(({ inputs }, at) => {
    if (!inputs.length) {
      columns[at] = next;
      next += 1;
    } else columns[at] = inputs.reduce((sum, from) => sum + columns[from], 0) / inputs.length;
  });
  return steps.map((_, at) => ({
    x: 1 + columns[at] * (WIDTH + GAP_X),
    y: 1 + (last - rows[at]) * (HEIGHT + GAP_Y),
  }));
}

function edge(from, to) {
  const [x1, y1] = [from.x + WIDTH / 2, from.y + HEIGHT];
  const [x2, y2] = [to.x + WIDTH / 2, to.y];
  const bend = (y2 - GAP_Y / 2).toFixed(1);
  return svg("path", { class: "edge", d: `M${x1},${y1} V${bend} H${x2} V${y2}`, "marker-end": "url(#arrow)" });
}

function box({ kind, title, detail }, { x, y }) {
  const middle = x + WIDTH / 2;
  return svg(
    "g",
    { class: `step ${kind}` },
    svg("title", {}, detail ? `${title}: ${detail}` : title),
    svg("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 6 }),
    svg("text", { x: middle, y: y + (detail ? 19 : 28), class: "name" }, cut(title, TITLE_CHARS)),
    detail ? svg("text", { x: middle, y: y + 36, class: "detail" }, cut(detail, DETAIL_CHARS)) : null,
  );
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** The same in words: "1. Stream source: orders. 2. Stream filter, after 1: …" */
export function inWords(steps) {
  return steps
    .map(({ title, detail, inputs }, at) => {
      const after = inputs.length ? `, after ${inputs.map((from) => from + 1).join(" and ")}` : "";
      return `${at + 1}. ${title}${after}${detail ? `: ${detail}` : ""}.`;
    })
    .join(" ");
}
