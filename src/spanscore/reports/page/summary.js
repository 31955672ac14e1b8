// What all runs come to: numbers, a row for each evaluator, and one for each agent.

const ORDER = new Intl.Collator("en", { numeric: true });
const BINS = 11; // tenths, and what is exactly 1

function tally(runs) {
  const evaluators = new Map((given.evaluators || []).map(([name, type]) => [name, untold(name, type)]));
  const agents = new Map();
  const verdicts = { passed: 0, failed: 0, unchecked: 0 };
  let calls = 0;
  for (const run of runs) {
    for (const outcome of run.outcomes) count(evaluators, outcome);
    if (run.turns) continue; // each turn is a run
    verdicts[run.verdict] += 1;
    calls += run.calls;
    const by = agents.get(run.agent) || { name: run.agent, passed: 0, failed: 0, unchecked: 0 };
    by[run.verdict] += 1;
    agents.set(run.agent, by);
  }
  return { evaluators: [...evaluators.values()], agents: [...agents.values()], verdicts, calls };
}

const untold = (name, type) => ({ name, type, passed: 0, failed: 0, skipped: 0, errors: 0, measured: 0, total: 0, bins: Array(BINS).fill(0) });

function count(evaluators, { name, type, status, value }) {
  const found = evaluators.get(name) || untold(name, type);
  evaluators.set(name, found);
  found[status === "unmeasured" ? "errors" : status] += 1;
  if (value === null) return;
  found.total += value;
  found.bins[Math.min(BINS - 1, Math.floor(value * 10 + 1e-9))] += 1;
}

function showSummary(runs, narrow) {
  const found = tally(runs);
  const { passed, failed, unchecked } = found.verdicts;
  const conversations = runs.filter((run) => run.turns).length;
  fill("totals", [
    total(runs.length - conversations === 1 ? "run" : "runs", counted(runs.length - conversations)),
    total("passed", counted(passed)),
    total("failed", counted(failed)),
    total("not evaluated", counted(unchecked)),
    total("pass rate", percent(rateOf(passed, failed))),
    total("tool calls", counted(found.calls)),
    ...(conversations ? [total(conversations === 1 ? "conversation" : "conversations", counted(conversations))] : []),
  ]);
  fill("evaluators", [evaluatorsTable(found.evaluators, narrow)]);
  fill("agents", [agentsTable(found.agents, narrow)]);
  return found;
}

// Gives a place these children. Those that it has already are not moved: focus, selection and scrolling stay.
function fill(id, children) {
  const place = document.getElementById(id);
  const kept = new Set(children);
  for (const child of [...place.children]) if (!kept.has(child)) child.remove();
  children.forEach((child, at) => child === place.children[at] || place.insertBefore(child, place.children[at] || null));
}

function total(name, text) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, text));
}

const rateOf = (passed, failed) => (passed + failed ? passed / (passed + failed) : null);

function rate(passed, failed) {
  const share = rateOf(passed, failed);
  const bar = drawing("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true", class: share === null ? "none" : null });
  if (share !== null) bar.append(drawing("rect", { width: share * 100, height: 1 }));
  return element("div", { class: "rate" }, bar, element("span", {}, percent(share)));
}

// Where there is no room for columns, a row is a block, and each of its cells has the name of its column before it.
function table(caption, heads, rows) {
  const head = heads.map(([name, kind]) => element("th", { scope: "col", class: kind }, name));
  for (const row of rows) labelled(row, heads);
  return element(
    "table",
    { class: "stacked" },
    element("caption", { class: "unseen" }, caption),
    element("thead", {}, element("tr", {}, head)),
    element("tbody", {}, rows),
  );
}

function labelled(row, heads) {
  if (row.children.length === heads.length) heads.forEach(([name], place) => (row.children[place].dataset.name = name));
  return row;
}

const rowHead = (...children) => element("th", { scope: "row", class: "name" }, ...children);
const cell = (text) => element("td", { class: "number" }, text);

const byRate = (one, other) => (rateOf(one.passed, one.failed) ?? 2) - (rateOf(other.passed, other.failed) ?? 2);

function evaluatorsTable(evaluators, narrow) {
  const heads = [["evaluator"], ["type"], ["pass rate"], ["passed", "number"], ["failed", "number"], ["skipped", "number"], ["errors", "number"], ["mean", "number"], ["scores from 0 to 1", "number"]];
  const rows = evaluators.sort(byRate).map((each) => {
    const values = each.passed + each.failed + each.measured;
    return element(
      "tr",
      {},
      rowHead(named(each.name)),
      element("td", { class: "dim name" }, each.type),
      element("td", {}, each.measured && !each.passed && !each.failed ? element("span", { class: "dim" }, "measured only") : rate(each.passed, each.failed)),
      cell(counted(each.passed)),
      narrowing(each.failed, `runs that fail in ${each.name}`, () => narrow({ evaluator: each.name })),
      cell(counted(each.skipped)),
      narrowing(each.errors, `runs on which ${each.name} had an error`, () => narrow({ evaluator: each.name })),
      cell(scored(values ? each.total / values : null)),
      element("td", {}, distribution(each.bins)),
    );
  });
  return table("What each evaluator found", heads, rows);
}

const byFailures = (one, other) => byRate(one, other) || other.failed - one.failed || ORDER.compare(one.name, other.name);

function agentsTable(agents, narrow, most = 30) {
  const heads = [["agent"], ["pass rate"], ["passed", "number"], ["failed", "number"], ["not evaluated", "number"], ["runs", "number"]];
  const rows = agents.sort(byFailures).slice(0, most).map((each) =>
    element(
      "tr",
      {},
      rowHead(named(each.name || "(no name)")),
      element("td", {}, rate(each.passed, each.failed)),
      cell(counted(each.passed)),
      narrowing(each.failed, `failed runs of ${each.name || "no agent"}`, () => narrow({ agent: each.name, verdict: "failed" })),
      cell(counted(each.unchecked)),
      cell(counted(each.passed + each.failed + each.unchecked)),
    ),
  );
  if (agents.length > most) {
    const all = button(`… and ${plural(agents.length - most, "more agent")}`, { class: "inline" }, () => {
      fill("agents", [agentsTable(agents, narrow, agents.length)]);
      document.getElementById("agents").focus();
    });
    rows.push(element("tr", {}, element("td", { colspan: heads.length }, all)));
  }
  return table("How often the runs of each agent pass", heads, rows);
}

function narrowing(number, what, pressed) {
  if (!number) return cell("0");
  return cell(button(counted(number), { class: "inline", "aria-label": visible(`${counted(number)}: show the ${what}`) }, pressed));
}

function distribution(bins) {
  const most = Math.max(...bins);
  if (!most) return null;
  const told = bins.map((number, bin) => (number ? `${bin === 10 ? "1" : `${bin / 10} to ${(bin + 1) / 10}`}: ${counted(number)}` : "")).filter(Boolean);
  const bars = bins.map((number, bin) => {
    const height = number ? Math.max(2, (number / most) * 22) : 0;
    return drawing("rect", { x: bin * 10 + 2, y: 23 - height, width: 8, height, rx: 1 });
  });
  const title = drawing("title", {}, told.join("; "));
  return drawing("svg", { class: "scores", viewBox: "0 0 112 24", role: "img", "aria-label": `scores ${told.join("; ")}` }, title, bars, drawing("path", { d: "M0 23.5H112" }));
}
