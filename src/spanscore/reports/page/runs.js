// The table of runs, which is filtered, sorted and turned like pages; a run is read whole only when it is opened.

const VERDICTS = ["passed", "failed", "unchecked"];
const VERDICT_WORDS = { passed: "passed", failed: "failed", unchecked: "not evaluated" };
const STATUSES = ["passed", "failed", "skipped", "errors", "measured", "unmeasured"];
const CALL_STATUSES = ["ok", "arguments", "wrong", "missing", "extra", "order", "ignored", "folded", "cut"];
const PAGE = 100;
const BRIEF = 120;

// What stands in the data: texts by their index in the strings of their batch, of which the first is the empty one.
function runOf({ strings }, [trace, span, verdict, agent, service, start, duration, calls, errors, outcomes, conversation, incomplete, revision, story, name]) {
  const run = {
    key: `${trace}-${span}`,
    trace,
    span,
    name: strings[name],
    verdict: VERDICTS[verdict],
    agent: strings[agent] || strings[service],
    service: strings[service],
    start,
    duration,
    calls,
    errors,
    conversation: strings[conversation],
    incomplete: strings[incomplete],
    revision,
    outcomes: outcomes.map(([evaluator, type, status, value, told]) => ({ name: strings[evaluator], type: strings[type], status: STATUSES[status], value, told: strings[told] })),
    get story() {
      return story && storyOf(strings, story, duration);
    },
    get tools() {
      return story ? story[1].map((call) => strings[call[0]]) : [];
    },
  };
  run.failing = run.outcomes.filter((each) => each.status === "failed" || each.status === "errors").map((each) => each.name);
  const values = run.outcomes.filter((each) => each.value !== null && each.status !== "measured").map((each) => each.value);
  run.score = values.length ? Math.min(...values) : null;
  return run;
}

function storyOf(strings, [hidden, calls, marks, alignments, withheld], duration) {
  const read = calls.map(([name, at, took, args, result, error, agent, span, restored], index) => ({
    number: index + 1,
    name: strings[name],
    at: at / 1000,
    took: took === null ? null : took / 1000,
    error: strings[error],
    agent: strings[agent],
    marks: [],
    preview: brief(strings[args]),
    details: [
      ["arguments", hidden ? "" : strings[args] || "not recorded"],
      ["result", hidden || error ? strings[result] : strings[result] || "not recorded"],
      ["span", span],
      ["made", restored ? "before the pause, in another trace" : ""],
    ].filter(([, text]) => text),
  }));
  for (const [call, evaluator, text] of marks) read[call].marks.push({ evaluator: strings[evaluator], text: strings[text] });
  return {
    hidden,
    calls: read,
    whole: Math.max(duration || 0, ...read.map((call) => call.at + (call.took || 0))),
    alignments: alignments.map(([evaluator, entries]) => ({
      evaluator: strings[evaluator],
      entries: entries.map(([expected, call, status, mark, count]) => ({ expected: strings[expected], call, status: CALL_STATUSES[status], mark: strings[mark], count })),
    })),
    withheld: withheld.map(([name, state]) => ({ name: strings[name], state })),
  };
}

function brief(text) {
  return text === "{}" ? "" : text.length > BRIEF ? `${text.slice(0, BRIEF - 1)}…` : text;
}

const KEYS = {
  verdict: (run) => ["failed", "unchecked", "passed"].indexOf(run.verdict),
  name: (run) => run.name,
  agent: (run) => run.agent,
  failing: (run) => run.failing.join(" "),
  score: (run) => run.score,
  calls: (run) => run.calls,
  errors: (run) => run.errors,
  duration: (run) => run.duration,
  start: (run) => run.start,
};

const view = { text: "", verdict: "", evaluator: "", agent: null, sort: "", descending: false, page: 0 };
let runs = [];
const opened = new Set();
const rowsOf = new WeakMap();

function matching() {
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = runs.filter(
    (run) =>
      (!view.verdict || run.verdict === view.verdict) &&
      (!view.evaluator || run.failing.includes(view.evaluator)) &&
      (view.agent === null || run.agent === view.agent) &&
      words.every((word) => searched(run).includes(word)),
  );
  if (!view.sort) return found;
  const key = KEYS[view.sort];
  const turn = view.descending ? -1 : 1;
  return found.sort((one, other) => {
    const [left, right] = [key(one), key(other)];
    if (left === null || right === null) return (left === null) - (right === null); // what is not known stands last
    return turn * (typeof left === "string" ? ORDER.compare(left, right) : left - right);
  });
}

function searched(run) {
  run.searched ??= [run.name, run.trace, run.agent, run.service, run.conversation, ...run.failing, ...new Set(run.tools)].join("\n").toLowerCase();
  return run.searched;
}

function showRuns() {
  const found = matching();
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  view.page = Math.min(view.page, pages - 1);
  const shown = found.slice(view.page * PAGE, (view.page + 1) * PAGE);
  fill("rows", shown.flatMap(rowsFor));
  say("count", found.length === runs.length ? `${plural(runs.length, "run")}` : `${counted(found.length)} of ${plural(runs.length, "run")}`);
  showPager(pages, found.length);
  for (const head of document.querySelectorAll(".runs [data-sort]")) {
    const sorted = head.dataset.sort !== view.sort ? "none" : view.descending ? "descending" : "ascending";
    head.closest("th").setAttribute("aria-sort", sorted);
  }
}

function say(id, text) {
  const place = document.getElementById(id);
  if (place.textContent !== text) place.textContent = text;
}

function showPager(pages, number) {
  const pager = document.getElementById("pager");
  const focused = [...pager.children].indexOf(document.activeElement);
  const turned = (by) => () => {
    view.page += by;
    showRuns();
  };
  const first = view.page * PAGE + 1;
  const where = `${counted(first)} to ${counted(Math.min(number, first + PAGE - 1))} of ${counted(number)}`;
  const turn = (text, by, ends) => button(text, { "aria-disabled": ends ? "true" : null }, ends ? () => {} : turned(by));
  fill("pager", pages === 1 ? [] : [turn("Previous", -1, view.page === 0), element("span", { class: "dim" }, where), turn("Next", 1, view.page === pages - 1)]);
  if (pager.children[focused]) pager.children[focused].focus({ preventScroll: true });
}

function rowsFor(run) {
  let made = rowsOf.get(run);
  if (!made) {
    made = { row: rowOf(run), detail: null };
    rowsOf.set(run, made);
  }
  if (opened.has(run.key) !== Boolean(made.detail)) toggle(run, made);
  return made.detail ? [made.row, made.detail] : [made.row];
}

function toggle(run, made) {
  const isOpen = !made.detail;
  const id = `run-${run.key}`;
  made.detail = isOpen ? element("tr", { class: "detail", id }, element("td", { colspan: Object.keys(KEYS).length }, openedRun(run))) : null;
  const opener = made.row.querySelector(".opener");
  opener.setAttribute("aria-expanded", String(isOpen));
  if (isOpen) opener.setAttribute("aria-controls", id);
  else opener.removeAttribute("aria-controls");
}

function rowOf(run) {
  const pressed = () => {
    if (!opened.delete(run.key)) opened.add(run.key);
    showRuns();
  };
  const opener = button(run.name, { class: "inline opener", "aria-expanded": "false" }, pressed);
  return element(
    "tr",
    { class: "row" },
    element("td", {}, badge(VERDICT_WORDS[run.verdict], run.verdict)),
    element("th", { scope: "row", class: "name" }, opener, " ", element("span", { class: "short" }, run.trace.slice(0, 8))),
    element("td", { class: "name" }, run.agent),
    element("td", {}, run.failing.map((name) => element("span", { class: "chip" }, name))),
    cell(scored(run.score)),
    cell(counted(run.calls)),
    cell(run.errors ? element("span", { class: "fault" }, counted(run.errors)) : "0"),
    cell(lasting(run.duration)),
    cell(moment(run.start)),
  );
}

const FILTERS = { text: "text", verdict: "verdict-filter", evaluator: "evaluator-filter", agent: "agent-filter" };
const control = (name) => document.getElementById(FILTERS[name]);

function readFilters() {
  view.text = control("text").value;
  view.verdict = control("verdict").value;
  view.evaluator = control("evaluator").value;
  view.agent = control("agent").value === "" ? null : control("agent").value.slice(1);
  view.page = 0;
  showRuns();
}

// Shows the runs of a number that was pressed.
function narrow(filters) {
  document.getElementById("filters").reset();
  for (const [name, value] of Object.entries(filters)) control(name).value = name === "agent" ? `=${value}` : value;
  readFilters();
  document.getElementById("runs").focus();
}

// Fills a choice anew, and leaves chosen what was.
function offer(name, values, word) {
  const choice = control(name);
  const known = new Set([...choice.options].map((option) => option.value));
  for (const value of values) if (!known.has(value)) choice.append(element("option", { value }, word(value)));
}

function show() {
  const { evaluators, agents } = showSummary(runs, narrow);
  offer("evaluator", evaluators.filter((each) => each.failed || each.errors).map((each) => each.name), (name) => name);
  offer("agent", agents.map((each) => `=${each.name}`), (value) => value.slice(1) || "(no name)");
  showRuns();
}

function openFromAddress() {
  const trace = location.hash.slice(1).toLowerCase();
  const named = /^[0-9a-f]{32}$/.test(trace) ? runs.filter((run) => run.trace === trace) : [];
  if (!named.length) return;
  document.getElementById("filters").reset();
  control("text").value = trace;
  for (const run of named) opened.add(run.key);
  readFilters();
}

const given = JSON.parse(document.getElementById("data").textContent);
runs = given.batches.flatMap((batch) => batch.runs.map((row) => runOf(batch, row)));

const filters = document.getElementById("filters");
filters.addEventListener("input", readFilters);
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("reset", () => setTimeout(readFilters)); // the fields are cleared behind this event
for (const head of document.querySelectorAll(".runs [data-sort]")) {
  head.addEventListener("click", () => {
    view.descending = view.sort === head.dataset.sort ? !view.descending : ["calls", "errors", "duration", "start"].includes(head.dataset.sort);
    view.sort = head.dataset.sort;
    view.page = 0;
    showRuns();
  });
}
addEventListener("hashchange", openFromAddress);
show();
openFromAddress();
