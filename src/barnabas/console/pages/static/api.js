// The console's interface. A failed request is a Failure, which says what went wrong and where.

export class Failure extends Error {
  constructor(status, facts) {
    super(facts.error || `status ${status}`);
    this.status = status;
    this.kind = facts.kind || "";
    this.position = facts.position;
    this.right = facts.right;
    this.service = facts.service;
    this.config = facts.config;
  }
}

let onLogin = () => {};

/** What to do when nobody is logged in (any more). */
export function whenLoggedOut(work) {
  onLogin = work;
}

async function failure(answer) {
  let facts = {};
  try {
    facts = await answer.json();
  } catch {
    facts = { error: `the console answered with status ${answer.status}` };
  }
  return new Failure(answer.status, facts);
}

async function send(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, { error: "the console does not answer", kind: "away" });
  }
  if (!answer.ok) {
    const failed = await failure(answer);
    if (failed.status === 401 && !path.startsWith("api/login")) onLogin();
    throw failed;
  }
  return answer;
}

/** `query` without what is empty. */
export function address(path, query = {}) {
  const left = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "" && value !== false,
  );
  const text = new URLSearchParams(left.map(([name, value]) => [name, String(value)])).toString();
  return `api/${path}${text ? `?${text}` : ""}`;
}

export async function get(path, query = {}, signal = undefined) {
  return (await send(address(path, query), { signal })).json();
}

async function change(method, path, body) {
  const headers = { "content-type": "application/json", "x-console": "1" };
  return (await send(`api/${path}`, { method, headers, body: JSON.stringify(body) })).json();
}

export const post = (path, body = {}) => change("POST", path, body);
export const put_ = (path, body = {}) => change("PUT", path, body);
export const remove = (path, body = {}) => change("DELETE", path, body);

/** Calls `take` with each line of an answer that goes on, until it ends or `signal` aborts it. */
export async function lines(path, query, take, signal) {
  const answer = await send(address(path, query), { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      left += value;
      const parts = left.split("\n");
      left = parts.pop();
      for (const part of parts) {
        const line = JSON.parse(part);
        if (line.error !== undefined) throw new Failure(200, line);
        take(line);
      }
    }
  } catch (error) {
    if (error instanceof Failure || error.name === "AbortError") throw error;
    throw new Failure(0, { error: "the connection to the console broke", kind: "away" });
  }
}

/** A name as a part of a path. */
export const part = encodeURIComponent;
