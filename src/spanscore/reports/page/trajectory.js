// One run, opened: what each evaluator said, and the calls in their order, beside what was expected of them.

const CONTEXT = 2; // calls that are shown before and after one that deviates
const WITHHELD = { waits: "was not called: it waits for approval or an answer", refused: "was not called: it was refused" };
const LANES = 12; // of the time axis
const LANE = 18; // its height
const LONG = 12; // so many calls are shown even where none deviates
const HIDDEN = [null, "Arguments and results are not shown on this page.", "Arguments and results are left out here, to keep the page small."];

function openedRun(run) {
  return element("div", {}, facts(run), element("h3", {}, "Evaluators"), outcomesList(run), run.story ? timeline(run) : leftOut(run));
}

function leftOut(run) {
  return element("p", { class: "note" }, run.calls ? `${plural(run.calls, "tool call")} left out here, to keep the page small.` : "No tool was called.");
}

function facts(run) {
  const told = [
    ["trace", run.trace, "mono", copier("trace id", run.trace), linkTo(run)],
    ["span", run.span, "mono", copier("span id", run.span)],
    ["service", run.service],
    ["agent", run.agent],
    ["conversation", run.conversation],
    ["started", run.start === null ? "" : `${moment(run.start)} UTC`],
    ["took", run.duration === null ? "" : lasting(run.duration)],
    ["incomplete", run.incomplete],
    ["revision", run.revision ? String(run.revision) : ""],
  ];
  const shown = told.filter(([, text]) => text);
  return element("dl", { class: "facts" }, shown.map(([name, text, kind, ...more]) => element("div", {}, element("dt", {}, name), element("dd", { class: kind }, named(text)), more.map((each) => each && element("dd", {}, each)))));
}

function copier(what, text) {
  const made = button("copy", { class: "copy", "aria-label": `copy the ${what}` }, async () => {
    made.textContent = (await isCopied(text)) ? "copied" : "not copied";
  });
  return made;
}

async function isCopied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const field = element("textarea", { class: "unseen" }); // over plain HTTP, except for localhost
  field.value = text;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  return isDone;
}

function linkTo({ trace, span, isDropped }) {
  if (isDropped) return "not kept: the section keep has dropped its spans";
  if (!given.trace_url) return null;
  const href = given.trace_url.replaceAll("{trace_id}", trace).replaceAll("{span_id}", span);
  return element("a", { href, target: "_blank", rel: "noopener noreferrer" }, "open the trace");
}

const WORDS = { passed: "passed", failed: "failed", skipped: "skipped", errors: "error", measured: "measured", unmeasured: "error" };
const TONES = { passed: "passed", failed: "failed", errors: "failed", skipped: "", measured: "", unmeasured: "unchecked" };

function badge(word, tone) {
  return element("span", { class: `badge ${tone}` }, word);
}

function outcomesList(run) {
  const failed = (each) => TONES[each.status] === "failed";
  const items = [...run.outcomes.filter(failed), ...run.outcomes.filter((each) => !failed(each))].map((each) =>
    element(
      "li",
      {},
      badge(WORDS[each.status], TONES[each.status]),
      element("span", { class: "name" }, named(each.name)),
      element("span", { class: "value" }, each.value === null ? "" : scored(each.value)),
      element("span", { class: "why" }, each.told),
    ),
  );
  return element("ul", { class: "outcomes" }, items);
}

function timeline(run) {
  const { hidden, calls, alignments } = run.story;
  const withheld = run.story.withheld.map((call) => element("p", { class: "note" }, `${call.name || "A tool"} ${WITHHELD[call.state]}.`));
  if (!calls.length && !alignments.length) return element("div", {}, withheld.length ? withheld : element("p", { class: "note" }, "No tool was called."));
  const ways = [...alignments.map((each) => ({ name: each.evaluator, rows: beside(run, each) })), { name: null, rows: alone(run) }];
  const first = Math.max(0, ways.findIndex((way) => way.rows.some((row) => row.status && row.status !== "ok")));
  const shown = element("div");
  const show = (index) => shown.replaceChildren(callsTable(run, ways[index]));
  show(first);
  const head = element("div", { class: "beside" }, element("h3", {}, "Tool calls"));
  if (alignments.length) {
    const choice = element("select", {}, ways.map((way, index) => element("option", { value: index, selected: index === first }, way.name === null ? "nothing" : `what ${way.name} expects`)));
    choice.addEventListener("change", () => show(Number(choice.value)));
    head.append(element("label", { class: "dim" }, "beside ", choice));
  }
  return element("div", {}, head, timeAxis(run.story), shown, withheld, HIDDEN[hidden] ? element("p", { class: "note" }, HIDDEN[hidden]) : null);
}

// The calls over the time of the run; calls at the same time stand below each other.
function timeAxis({ calls, whole }) {
  const ends = [];
  const bars = calls
    .filter((call) => call.took !== null)
    .sort((one, other) => one.at - other.at)
    .map((call) => {
      const free = ends.findIndex((end) => end <= call.at);
      const lane = Math.min(free < 0 ? ends.length : free, LANES - 1);
      ends[lane] = Math.max(ends[lane] || 0, call.at + call.took);
      const kind = call.error ? "failing" : call.marks.length ? "deviates" : "";
      const title = `${call.number} ${call.name}: ${lasting(call.took)}, ${lasting(call.at)} after the begin`;
      const bar = element("span", { class: `bar ${kind}`, title: visible(title) }, String(call.number));
      bar.style.left = `${Math.min(99.4, (call.at / whole) * 100)}%`;
      bar.style.width = `${Math.max(0.6, (call.took / whole) * 100)}%`;
      bar.style.top = `${lane * LANE}px`;
      return bar;
    });
  if (!bars.length || !whole) return null;
  const label = `${plural(bars.length, "call")} in ${lasting(whole)}, up to ${ends.length} at the same time`;
  const made = element("div", { class: "axis", role: "img", "aria-label": label }, bars);
  made.style.height = `${ends.length * LANE}px`;
  const ticks = [0, 1, 2, 3, 4].map((part) => element("span", {}, part ? lasting((whole * part) / 4) : "0"));
  return element("div", { class: "time" }, made, element("div", { class: "ticks", "aria-hidden": "true" }, ticks));
}

// The rows of an alignment: a call that was expected, made, or both; or how many stand for themselves.
function beside(run, { evaluator, entries }) {
  const rows = entries.map((entry) => ({ ...entry, call: entry.call === null ? null : run.story.calls[entry.call] }));
  for (const row of rows) {
    const others = row.call && row.status !== "order" ? row.call.marks.filter((mark) => mark.evaluator !== evaluator).map((mark) => mark.text) : [];
    row.marks = [row.mark, ...others].filter(Boolean);
  }
  return rows;
}

function alone(run) {
  return run.story.calls.map((call) => ({ expected: "", call, status: "", marks: call.marks.map((mark) => mark.text) }));
}

const deviates = (row) => row.marks.length > 0 || Boolean(row.call && row.call.error);
const isKept = (row) => deviates(row) || Boolean(row.call && row.call.marks.length); // a call that is marked in another row, too

function callsTable(run, way) {
  const aligned = way.name !== null;
  const heads = [["#", "number"], ...(aligned ? [["expected"]] : []), ["called"], ["took", "number"]];
  const made = table(aligned ? `Calls beside what ${way.name} expects` : "Calls", heads, []);
  const body = made.querySelector("tbody");
  for (const part of parts(way.rows)) body.append(...(part.rows ? [foldRow(run, part, aligned, heads.length)] : [callRow(run, part, aligned)]));
  return element("div", { class: "calls", tabindex: "0", role: "region", "aria-label": "Tool calls" }, made);
}

// Of a long run what deviates, with two calls around it, and the others as one part for each gap. Of calls in a row that
// deviate alike the first stand there, and the others as one part.
function* parts(rows) {
  if (rows.length <= LONG) return yield* rows;
  const shown = new Set();
  rows.forEach((row, at) => {
    if (isKept(row)) for (let other = at - CONTEXT; other <= at + CONTEXT; other += 1) shown.add(other);
  });
  for (let at = 0; at < rows.length; ) {
    const begin = at;
    while (at < rows.length && !shown.has(at)) at += 1;
    if (at - begin === 1) yield rows[begin];
    else if (at > begin) yield { rows: rows.slice(begin, at), what: "" };
    if (at >= rows.length) return;
    const first = at;
    while (at < rows.length && alike(rows[first], rows[at])) at += 1;
    at = Math.max(at, first + 1);
    if (at - first <= LONG) yield* rows.slice(first, at);
    else {
      yield* rows.slice(first, first + CONTEXT);
      yield { rows: rows.slice(first + CONTEXT, at), what: rows[first].marks.join("; ") };
    }
  }
}

function alike(row, other) {
  return deviates(other) && !(other.call && other.call.error) && row.marks.join("\n") === other.marks.join("\n");
}

function foldRow(run, { rows, what }, aligned, width) {
  const calls = rows.reduce((sum, row) => sum + (row.count || 1), 0);
  const open = () => {
    const shown = rows.map((row) => callRow(run, row, aligned));
    fold.replaceWith(...shown);
    shown[0].tabIndex = -1;
    shown[0].focus();
  };
  const told = what ? `… ${plural(calls, "more call")}: ${what}` : `… ${unmarked(rows, calls, aligned)}`;
  const fold = element("tr", { class: "fold" }, element("td", { colspan: width }, button(told, {}, open)));
  return fold;
}

function unmarked(rows, calls, aligned) {
  const ignored = rows.filter((row) => row.status === "ignored").length;
  if (!aligned) return `${plural(calls, "call")} without a remark`;
  if (!ignored) return `${plural(calls, "call")} as expected`;
  return calls > ignored ? `${plural(calls - ignored, "call")} as expected, ${ignored} ignored` : `${plural(calls, "call")} ignored`;
}

function callRow(run, row, aligned) {
  const { call } = row;
  if (row.count) return element("tr", { class: "fold" }, element("td", { colspan: aligned ? 4 : 3 }, `… ${plural(row.count, "call")} ${row.status === "folded" ? "as expected" : "more"}`));
  const kind = call && call.error ? "failing" : deviates(row) ? "deviates" : null;
  const isHere = call && row.status !== "order"; // else it stands in another row
  const cells = [
    cell(isHere ? String(call.number) : ""),
    aligned ? element("td", { class: "expected" }, row.expected ? named(row.expected) : element("span", { class: "dim" }, "-")) : null,
    element("td", {}, isHere ? called(call) : element("span", { class: "dim" }, call ? `call ${call.number}` : "-"), marksList(row.marks)),
    cell(isHere ? lasting(call.took) : ""),
  ];
  return labelled(element("tr", { class: kind }, cells), [["#"], ...(aligned ? [["expected"]] : []), ["called"], ["took"]]);
}

function marksList(marks) {
  return marks.length ? element("ul", { class: "marks" }, marks.map((text) => element("li", {}, text))) : null;
}

function called(call) {
  const agent = call.agent ? element("span", { class: "agent" }, named(call.agent)) : null;
  const turn = call.turn ? element("span", { class: "agent" }, `turn ${call.turn}`) : null;
  const error = call.error ? element("div", { class: "error" }, call.error) : null;
  if (!call.details.length) return element("div", {}, element("span", { class: "tool" }, named(call.name)), agent, turn, error);
  const content = call.details.map(([name, text]) => [element("dt", {}, name), element("dd", {}, element("pre", { tabindex: "0" }, indented(text)))]);
  const preview = call.preview ? element("span", { class: "preview" }, call.preview) : null;
  const wrong = call.wrong ? element("span", { class: "preview wrong" }, call.wrong) : null;
  return element("div", {}, element("details", {}, element("summary", {}, named(call.name), agent, turn, preview, wrong), element("dl", { class: "content" }, content.flat())), error);
}
