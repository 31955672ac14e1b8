// The table of runs, which is filtered, sorted and turned like pages.

const SEVEREST = ["failed", "unchecked", "passed"];
const VERDICT_WORDS = { passed: "passed", failed: "failed", unchecked: "not evaluated" };
const PAGE = 100;

const KEYS = {
  verdict: (run) => SEVEREST.indexOf(run.verdict),
  name: (run) => run.name,
  agent: (run) => run.agent,
  score: (run) => run.score,
  calls: (run) => run.calls,
  errors: (run) => run.errors,
  duration: (run) => run.duration,
  start: (run) => run.start,
};
const FALLING = ["calls", "errors", "duration", "start"];

const view = { text: "", verdict: "", evaluator: "", agent: null, reason: "", sort: "", descending: false, page: 0 };
let runs = [];
let last = null; // the key of the run that was opened last
const opened = new Set();
const rowsOf = new WeakMap();

function matching() {
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = runs.filter(
    (run) =>
      (!view.verdict || run.verdict === view.verdict) &&
      (!view.evaluator || run.failing.includes(view.evaluator)) &&
      (view.agent === null || run.agent === view.agent) &&
      (!view.reason || run.reasons.some((reason) => reason.text === view.reason)) &&
      words.every((word) => run.searched.includes(word)),
  );
  const key = KEYS[view.sort || "verdict"]; // which leaves runs of one verdict in their order
  const turn = view.descending ? -1 : 1;
  const keyed = found.map((run) => ({ run, key: key(run) }));
  keyed.sort(({ key: left }, { key: right }) => {
    if (left === null || right === null) return (left === null) - (right === null); // what is not known stands last
    return turn * (typeof left === "string" ? ORDER.compare(left, right) : left - right);
  });
  return keyed.map(({ run }) => run);
}

function showRuns() {
  const found = matching();
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  view.page = Math.min(view.page, pages - 1);
  const shown = found.slice(view.page * PAGE, (view.page + 1) * PAGE);
  fill("rows", shown.flatMap(rowsFor));
  const conversations = runs.filter((run) => run.turns).length;
  const all = plural(runs.length - conversations, "run") + (conversations ? ` and ${plural(conversations, "conversation")}` : "");
  say("count", found.length === runs.length ? all : `${counted(found.length)} of ${all}`);
  showPager(pages, found.length);
  for (const head of document.querySelectorAll(".runs [data-sort]")) {
    const sorted = head.dataset.sort !== view.sort ? "none" : view.descending ? "descending" : "ascending";
    head.closest("th").setAttribute("aria-sort", sorted);
  }
  keepAddress();
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

const HEADS = [...document.querySelectorAll(".runs > thead th")].map((head, place) => [place < 2 ? "" : head.textContent.trim()]);

function rowOf(run) {
  const pressed = () => {
    const isOpen = !opened.delete(run.key);
    if (isOpen) opened.add(run.key);
    last = isOpen ? run.key : null;
    showRuns();
  };
  const opener = button(named(run.name), { class: "inline opener", "aria-expanded": "false" }, pressed);
  const row = element(
    "tr",
    { class: "row" },
    element("td", {}, badge(VERDICT_WORDS[run.verdict], run.verdict)),
    element("th", { scope: "row", class: "name" }, opener, " ", element("span", { class: "short" }, run.trace.slice(0, 8)), why(run)),
    element("td", { class: "name" }, named(run.agent)),
    cell(scored(run.score)),
    cell(counted(run.calls)),
    cell(run.errors ? element("span", { class: "fault" }, counted(run.errors)) : "0"),
    cell(lasting(run.duration)),
    cell(moment(run.start)),
  );
  return labelled(row, HEADS);
}

function why({ reasons }) {
  if (!reasons.length) return null;
  const [{ text, turn }, ...more] = reasons;
  const others = more.length ? element("span", { class: "dim" }, ` and ${plural(more.length, "more reason")}`) : null;
  return element("div", { class: "reason" }, named(text), turn ? ` (turn ${turn})` : null, others);
}

const FILTERS = { text: "text", verdict: "verdict-filter", evaluator: "evaluator-filter", agent: "agent-filter", reason: "reason-filter" };
const control = (name) => document.getElementById(FILTERS[name]);

function readFilters() {
  view.text = control("text").value;
  view.verdict = control("verdict").value;
  view.evaluator = control("evaluator").value;
  view.agent = control("agent").value === "" ? null : control("agent").value.slice(1);
  view.reason = control("reason").value;
  view.page = 0;
  say("unfound", "");
}

// Sets all filters, those that are not named to nothing.
function setFilters(values = {}) {
  for (const name of Object.keys(FILTERS)) control(name).value = values[name] ?? "";
  readFilters();
}

// Shows the runs of a number that was pressed; the browser's button leads back.
function narrow({ agent, ...values }) {
  history.pushState(null, "", location.href);
  setFilters(agent === undefined ? values : { ...values, agent: `=${agent}` });
  showRuns();
  showList().focus({ preventScroll: true });
}

function showList() {
  const list = document.getElementById("runs");
  list.scrollIntoView();
  if (document.readyState !== "complete") addEventListener("load", () => list.scrollIntoView(), { once: true });
  return list;
}

function showOne(reason) {
  history.pushState(null, "", location.href);
  const found = runs.filter((run) => run.reasons.some((each) => each.text === reason));
  openRuns([found.reduce((one, other) => (other.start >= one.start ? other : one))]);
}

// Opens runs where they stand in the list, and brings the first of them into the window.
function openRuns(found) {
  if (!matching().includes(found[0])) setFilters();
  for (const run of found) opened.add(run.key);
  last = found[0].key;
  view.page = Math.floor(matching().indexOf(found[0]) / PAGE);
  showRuns();
  const { row } = rowsOf.get(found[0]);
  row.scrollIntoView();
  row.querySelector(".opener").focus({ preventScroll: true });
}

// Fills a choice anew, and leaves chosen what was.
function offer(name, values, word) {
  const choice = control(name);
  const known = new Set(["", ...values]);
  for (const option of [...choice.options]) if (!known.delete(option.value) && !option.selected) option.remove();
  for (const value of known) choice.append(element("option", { value }, word(value)));
}

function showTables() {
  const { evaluators, agents } = showSummary(runs.filter((run) => !run.isKept), narrow);
  showReasons(given.why, { all: (reason) => narrow({ reason }), one: showOne });
  offer("evaluator", evaluators.filter((each) => each.failed || each.errors).map((each) => each.name), (name) => name);
  offer("agent", agents.map((each) => `=${each.name}`), (value) => value.slice(1) || "(no name)");
  offer("reason", given.why.rows.map(([text]) => text), (text) => text);
}

const given = JSON.parse(document.getElementById("data").textContent);
runs = given.batches.flatMap((batch) => batch.runs.map((row) => new Run(batch, row)));

const filters = document.getElementById("filters");
filters.addEventListener("input", () => {
  readFilters();
  showRuns();
});
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("reset", (event) => {
  event.preventDefault();
  setFilters();
  showRuns();
});
for (const head of document.querySelectorAll(".runs [data-sort]")) {
  head.addEventListener("click", () => {
    view.descending = view.sort === head.dataset.sort ? !view.descending : FALLING.includes(head.dataset.sort);
    view.sort = head.dataset.sort;
    view.page = 0;
    showRuns();
  });
}
addEventListener("hashchange", readAddress);
showTables();
readAddress();
