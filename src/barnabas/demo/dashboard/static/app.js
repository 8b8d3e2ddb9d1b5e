"use strict";
// Draws what /events sends. Every number shown is kept, exact, in a data-value attribute.

const SVG = "http://www.w3.org/2000/svg";
const STATES = { available: "✓", charging: "⚡", faulted: "!", offline: "–", unknown: "?" };
const byId = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en-US");
const clock = (ms) => new Date(ms).toISOString().slice(11, 16);
const kwh = (wh) => (wh / 1000).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const words = (id) => id.replaceAll("-", " ").replaceAll("_", " ");

function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Puts a number in place: text for people, data-value for whoever compares.
function put(target, value, text) {
  target.dataset.value = value;
  const shown = text ?? whole.format(value);
  if (target.textContent !== shown) target.textContent = shown;
}

// Makes `list` hold one child per row, reusing those that are there (so that transitions play).
function reconcile(list, rows, keyOf, make, update) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  rows.forEach((row, index) => {
    const key = String(keyOf(row));
    let child = known.get(key);
    if (!child) {
      child = make(row);
      child.dataset.key = key;
    }
    known.delete(key);
    update(child, row, index);
    if (list.children[index] !== child) list.insertBefore(child, list.children[index] || null);
  });
  for (const child of known.values()) child.remove();
}

function drawHeader(state) {
  put(byId("events-total"), state.activity_records);
  put(byId("events-rate"), state.activity_per_second, whole.format(Math.round(state.activity_per_second)));
  put(byId("event-time"), state.event_time_ms, state.event_time_ms ? dateText(state.event_time_ms) : "–");
  setConnection(state.connection.state, state.connection.detail);
  byId("console").hidden = !state.console;
  if (state.console) byId("console").href = state.console;
  byId("bootstrap").textContent = `Brokers: ${state.connection.bootstrap}`;
}

const dateText = (ms) =>
  new Date(ms).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" }) + " " + clock(ms);

function setConnection(state, detail) {
  const link = byId("connection");
  link.dataset.state = state;
  link.title = detail || "";
  byId("connection-text").textContent = state === "lost" ? "broker lost, reconnecting" : state;
}

function drawStations(state) {
  const counts = state.figures.stations_by_state;
  reconcile(byId("station-states"), Object.entries(counts), ([name]) => name,
    ([name]) => element("li", { "data-state": name, id: `state-${name}` }, element("b"), element("span", {}, name)),
    (item, [, count]) => put(item.querySelector("b"), count));
  const cities = Object.entries(Object.groupBy(state.stations, (station) => station.city));
  reconcile(byId("stations"), cities, ([city]) => city,
    ([city]) => element("div", { class: "site", "data-city": city }, element("h3", {}, city),
      element("ul", { "aria-label": `Stations in ${city}` }), element("span", { class: "share" })),
    (site, [city, stations]) => {
      reconcile(site.querySelector("ul"), stations, (station) => station.id,
        (station) => element("li", { class: "tile", "data-station": station.id, role: "img" }),
        (tile, station) => {
          if (tile.dataset.state === station.state) return;
          tile.dataset.state = station.state;
          tile.textContent = STATES[station.state];
          const power = station.power_w ? `, ${station.power_w / 1000} kW` : "";
          tile.title = `${station.name}: ${station.state}${power}`;
          tile.setAttribute("aria-label", tile.title);
        });
      const of = state.figures.availability_by_city[city];
      const share = site.querySelector(".share");
      if (!of || !of.reports) return;
      share.dataset.reports = of.reports;
      share.dataset.available = of.available_reports;
      share.title = `${whole.format(of.available_reports)} of ${whole.format(of.reports)} reports said available`;
      share.textContent = `${((100 * of.available_reports) / of.reports).toFixed(1)} %`;
    });
}

function drawEnergy(state) {
  const figures = state.figures;
  put(byId("energy-total"), figures.charging.energy_wh, kwh(figures.charging.energy_wh));
  for (const name of ["charges_started", "charges_stopped", "readings", "faults"]) {
    put(byId(`charging-${name}`), figures.charging[name]);
  }
  reconcile(byId("energy-cities"), Object.entries(figures.energy_wh_by_city), ([city]) => city,
    ([city]) => element("li", { "data-city": city }, `${city} `, element("b")),
    (item, [, wh]) => put(item.querySelector("b"), wh, kwh(wh)));
  chart(byId("energy-chart"), figures.energy_wh_per_minute, {
    label: "Energy", unit: "kWh", format: kwh, readout: byId("energy-readout") });
}

// Draws bars now, and again whenever the box has another size.
function chart(box, series, options) {
  redraws.set(box, () => drawBars(box, series, options));
  redraws.get(box)();
  resizes.observe(box);
}

const redraws = new Map();
const resizes = new ResizeObserver((entries) => entries.forEach(({ target }) => redraws.get(target)()));

// Bars over event time: one per minute, the newest at the right.
function drawBars(box, series, { label, unit, format, readout }) {
  const points = Object.entries(series).map(([minute, value]) => [Number(minute), value]);
  if (!points.length) return;
  const width = Math.max(240, box.clientWidth), height = Math.max(48, box.clientHeight);
  const left = 40, bottom = 20, top = 8;
  const last = points[points.length - 1][0];
  const span = Math.max(60, Math.min(240, (last - points[0][0]) / 60000 + 1));
  const first = last - (span - 1) * 60000;
  const peak = niceCeiling(Math.max(...points.map(([, wh]) => wh)));
  const x = (minute) => left + ((minute - first) / 60000) * ((width - left) / span);
  const y = (wh) => top + (height - top - bottom) * (1 - wh / peak);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${label} per minute, the last ${span} minutes of event time, up to ${format(peak)} ${unit}`);
  const add = (tag, attributes, text) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
  };
  for (const part of [0, 0.5, 1]) {
    add("line", { class: "rule", x1: left, x2: width, y1: y(peak * part), y2: y(peak * part) });
    add("text", { x: left - 6, y: y(peak * part) + 4, "text-anchor": "end" }, format(peak * part));
  }
  const step = span > 120 ? 60 : span > 60 ? 30 : 15;
  for (let minute = Math.ceil(first / (step * 60000)) * step * 60000; minute <= last; minute += step * 60000) {
    if (x(minute) + 34 < width) add("text", { x: x(minute), y: height - 5 }, clock(minute));
  }
  const thick = Math.max(1, (width - left) / span - (span > 150 ? 0.6 : 1.5));
  for (const [minute, wh] of points) {
    if (minute < first) continue;
    add("rect", { class: "bar-of", x: x(minute).toFixed(2), y: y(wh).toFixed(2), width: thick.toFixed(2),
      height: Math.max(0.5, height - bottom - y(wh)).toFixed(2), "data-minute": minute, "data-value": wh });
  }
  svg.addEventListener("pointermove", (event) => {
    const minute = event.target.dataset.minute;
    if (minute) readout.textContent = `${clock(Number(minute))}: ${format(Number(event.target.dataset.value))} ${unit}`;
  });
  box.replaceChildren(svg);
}

function niceCeiling(value) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * unit).find((limit) => limit >= value);
}

function drawShop(state) {
  const figures = state.figures;
  reconcile(byId("activity"), Object.entries(figures.activity), ([kind]) => kind,
    ([kind]) => element("li", { id: `activity-${kind}` }, element("b"), element("span", {}, kind === "search" ? "searches" : `${kind}s`)),
    (item, [, count]) => put(item.querySelector("b"), count));
  chart(byId("activity-chart"), figures.activity_per_minute, {
    label: "Activity", unit: "events", format: (value) => whole.format(value), readout: byId("activity-readout") });
  reconcile(byId("feed"), state.feed.slice().reverse().slice(0, 5), (event) => event.event_id,
    (event) => element("li", { "data-kind": event.kind }, element("time", {}, clock(event.event_time_ms)),
      element("em", {}, event.kind), element("span", {}, eventText(event))),
    () => {});
  const { sessions, purchases, revenue_cents: revenue } = figures.conversion;
  const rate = sessions ? (100 * purchases) / sessions : 0;
  put(byId("conversion-rate"), rate, `${rate.toFixed(2)} %`);
  const money = (revenue / 100).toLocaleString("en-US", { style: "currency", currency: "EUR" });
  const rows = [["sessions", sessions, whole.format(sessions), 100], ["purchases", purchases, whole.format(purchases), rate]];
  reconcile(byId("funnel"), [...rows, ["revenue", revenue, money, null]], ([name]) => name,
    ([name, , , share]) => element("li", { id: `conversion-${name}` },
      element("div", {}, element("span", {}, name), element("b")), ...(share === null ? [] : [meter()])),
    (item, [, value, text, share]) => {
      put(item.querySelector("b"), value, text);
      if (share !== null) item.querySelector(".meter i").style.width = `${Math.min(100, share)}%`;
    });
}

const meter = () => element("div", { class: "meter" }, element("i"));

function eventText(event) {
  if (event.kind === "search") return `“${event.query}”`;
  if (event.kind === "click") return words(event.item_id);
  return `${event.items.map(words).join(", ")} · € ${(event.amount_cents / 100).toFixed(2)}`;
}

function drawSearches(state) {
  const rows = state.figures.top_searches;
  const most = rows.length ? rows[0].count : 1;
  reconcile(byId("searches"), rows, (row) => row.query,
    (row) => element("li", { "data-query": row.query }, element("i"), element("span", {}, row.query), element("b")),
    (item, row) => {
      put(item.querySelector("b"), row.count);
      item.querySelector("i").style.width = `${(100 * row.count) / most}%`;
    });
}

function drawRecommendations(state) {
  const rows = Object.entries(state.figures.recommendations);
  const strength = ([, together]) => together.reduce((sum, other) => sum + other.count, 0);
  rows.sort((a, b) => strength(b) - strength(a) || (a[0] < b[0] ? -1 : 1));
  reconcile(byId("recommendations"), rows, ([item]) => item,
    ([item]) => element("li", { "data-item": item }, element("strong", {}, words(item)), element("ul")),
    (row, [, together]) => reconcile(row.querySelector("ul"), together, (other) => other.item_id,
      (other) => element("li", { class: "chip", "data-item": other.item_id }, `${words(other.item_id)} `, element("b")),
      (chip, other) => put(chip.querySelector("b"), other.count)));
}

const plural = (count, noun) => `${whole.format(count)} ${noun}${count === 1 ? "" : "s"}`;

function drawBrokers({ brokers, partitions, without_leader: leaderless, under_replicated: behind }, { published, lost }) {
  reconcile(byId("brokers"), brokers, (broker) => broker.node_id,
    (broker) => element("li", { id: `broker-${broker.node_id}` }, element("i"), element("b", {}, `node ${broker.node_id}`),
      element("code"), element("span")),
    (row, broker) => {
      row.dataset.state = broker.up ? "up" : "down";
      row.title = broker.address;
      row.querySelector("code").textContent = broker.address;
      row.querySelector("span").textContent = broker.up
        ? `leads ${broker.leads} · in sync ${broker.in_sync}/${broker.replicas}` : "down";
    });
  if (!brokers.length) return;
  const target = byId("lost");
  put(target, lost, lost ? plural(lost, "record") : "nothing");
  target.dataset.state = lost ? "some" : "nothing";
  byId("published").textContent = `of ${plural(published, "event")}`;
  const line = byId("partitions");
  line.dataset.state = leaderless || behind ? "worse" : "well";
  const replicas = behind ? `${plural(behind, "partition")} without all replicas` : "all replicas in sync";
  line.textContent = `${plural(partitions, "partition")}, ` +
    (leaderless ? `${whole.format(leaderless)} without a leader` : `each with a leader`) +
    `, ${replicas}`;
}

function drawSchemas({ up, url, schemas }) {
  const line = byId("schemas");
  line.hidden = !schemas.length;
  line.title = `${url}: ${up ? "the schema registry is up" : "the schema registry does not answer"}`;
  line.dataset.state = up ? "up" : "down";
  reconcile(byId("schema-list"), schemas, (schema) => schema.topic,
    (schema) => element("span", { class: "schema", "data-topic": schema.topic }),
    (item, schema) => {
      const since = schema.evolved_from ? ` evolved at ${dateText(Date.parse(schema.evolved_from))}` : "";
      const fields = schema.new_fields.length ? `: + ${schema.new_fields.join(", ")}` : "";
      item.dataset.version = schema.version;
      item.title = `${schema.topic}-value, id ${schema.schema_id}`;
      item.textContent = `${schema.topic} v${schema.version}${since}${fields}`;
    });
}

// What Spark computes lags what is published: by how much, and whether it gets worse than usual.
const LATE_SECONDS = 5;

function drawConnectors(states) {
  const texts = Object.entries(states).map(([name, state]) => `${name} ${state.toLowerCase()}`);
  byId("connectors").hidden = !texts.length;
  byId("connector-list").textContent = texts.join(", ");
}

function drawBehind(behind) {
  const target = byId("behind");
  if (!behind) return;
  byId("figures").dataset.state = behind.seconds > LATE_SECONDS ? "late" : "current";
  const text = behind.seconds > LATE_SECONDS ? `catching up, ${Math.round(behind.seconds)} s` :
    behind.records ? `${behind.seconds.toFixed(0)} s behind` : "up to date";
  put(target, behind.records, text);
  target.title = `The slowest query has ${plural(behind.records, "event")} to process`;
}

function drawStatements({ sql_server: server, statements }) {
  if (server.url) byId("try").textContent = `barnabas sql --server ${server.url}`;
  reconcile(byId("statements"), statements, (statement) => statement.name,
    (statement) => element("li", { id: `statement-${statement.name}` }, element("i"), element("b", {}, statement.name),
      element("span", { class: "state" }), element("span", { class: "rate" }), element("span", { class: "lag" })),
    (row, statement) => {
      row.dataset.state = statement.state.toLowerCase();
      row.title = `${statement.state}, ${statement.topics.join(" and ")} → ${statement.sink}\n\n${statement.text}`;
      row.querySelector(".state").textContent = statement.state.toLowerCase();
      row.querySelector(".rate").textContent = `${whole.format(Math.round(statement.per_second))}/s`;
      if (statement.lag === null) put(row.querySelector(".lag"), "", "–");
      else put(row.querySelector(".lag"), statement.lag, `${whole.format(statement.lag)} behind`);
    });
}

function drawGroups(state) {
  reconcile(byId("groups"), state.groups, (group) => group.name,
    (group) => {
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", "0 0 100 34");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      svg.append(document.createElementNS(SVG, "polygon"), document.createElementNS(SVG, "polyline"));
      return element("article", { class: "group", id: `group-${group.name}`, "data-topic": group.topics[0] },
        element("h3", {}, group.name), element("div", { class: "lag" }, element("b"), element("span", {}, " behind")),
        element("p", { class: "topic" }), element("p", { class: "position" }), svg, meter());
    },
    (card, group) => {
      const lag = card.querySelector(".lag b");
      if (group.lag === null) put(lag, "", "–");
      else put(lag, group.lag);
      put(card.querySelector(".position"), group.position,
        `${whole.format(group.position)} of ${whole.format(group.end)}`);
      const topics = group.topics.length > 1 ? plural(group.topics.length, "topic") : group.topics[0];
      card.querySelector(".topic").textContent = `${topics} · ${whole.format(Math.round(group.per_second))}/s`;
      card.querySelector(".topic").title = group.topics.join(", ");
      card.querySelector(".meter i").style.width = `${group.end ? (100 * group.position) / group.end : 0}%`;
      drawSparkline(card, group.lag_history);
    });
}

function drawSparkline(card, lags) {
  const peak = Math.max(50, ...lags);
  const points = lags.map((lag, index) => `${((index + 60 - lags.length) * 100) / 59},${(32 - (30 * lag) / peak).toFixed(1)}`);
  card.querySelector("polyline").setAttribute("points", points.join(" "));
  const start = ((60 - lags.length) * 100) / 59;
  card.querySelector("polygon").setAttribute("points", lags.length ? `${start},34 ${points.join(" ")} 100,34` : "");
}

function draw(state) {
  drawHeader(state);
  drawStations(state);
  drawEnergy(state);
  drawShop(state);
  drawSearches(state);
  drawRecommendations(state);
  drawStatements(state);
  drawGroups(state);
  drawBrokers(state.cluster, state.records);
  drawSchemas(state.registry);
  drawConnectors(state.connectors);
  drawBehind(state.behind);
  document.body.dataset.version = state.version;
}

function follow() {
  const source = new EventSource("/events");
  source.addEventListener("state", (event) => draw(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    byId("connection").dataset.state = "lost";
    byId("connection-text").textContent = "dashboard lost, reconnecting";
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 2000);
  });
}

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

follow();
