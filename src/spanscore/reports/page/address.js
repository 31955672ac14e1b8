// What is shown stands in the address, so that a link leads to it.

// The address has what is shown, except for the page of the list: the one with the run that was opened last.
function keepAddress() {
  const { text: search, verdict, evaluator, agent, reason } = view;
  const sort = view.sort && `${view.descending ? "-" : ""}${view.sort}`;
  const run = opened.has(last) ? idOf(last) : null;
  const told = Object.entries({ search, verdict, evaluator, reason, sort, agent, run }).filter(([name, value]) => value || (name === "agent" && value === ""));
  const address = told.length ? `#${new URLSearchParams(told)}` : location.pathname + location.search;
  if (new URL(address, location.href).href !== location.href) history.replaceState(null, "", address);
}

function idOf(key) {
  const [trace] = key.split("-");
  return runs.filter((run) => run.trace === trace).length > 1 ? key : trace;
}

// Says that the page offers no such value of a filter, which then filters nothing, and which values have or are a part of it.
function unfound(name, value) {
  if (!(name in FILTERS) || value === undefined || control(name).value === (name === "agent" ? `=${value}` : value)) return "";
  const offered = [...control(name).options].filter((each) => each.value).map((each) => each.textContent);
  const [sought, ...texts] = [value, ...offered].map((text) => text.toLowerCase());
  const near = offered.filter((_, place) => sought && (texts[place].includes(sought) || sought.includes(texts[place]))).slice(0, 3);
  const others = near.length ? ` Near it: ${near.join("; ")}.` : "";
  return `This page offers no ${name} "${visible(value)}", so it filters nothing.${others}`;
}

// Reads `#verdict=failed&run=ID`, or only the id of a trace or its beginning.
function readAddress() {
  const text = location.hash.slice(1).replace(/(%20|\+)+$/, "");
  if (document.getElementById(text)) return showRuns(); // another place on the page
  const told = new URLSearchParams(text.includes("=") || !text ? text : { run: text });
  const { run, sort = "", agent, search, ...values } = Object.fromEntries(told);
  setFilters({ ...values, text: search, agent: agent === undefined ? "" : `=${agent}` });
  const key = sort.replace(/^-/, "");
  Object.assign(view, key in KEYS ? { sort: key, descending: sort.startsWith("-") } : { sort: "", descending: false });
  opened.clear();
  const [trace, span = "", kind] = (run || "").toLowerCase().split("-");
  const found = trace ? runs.filter((each) => each.trace.startsWith(trace) && each.span.startsWith(span) && (!kind || each.key.endsWith(kind))) : [];
  const traces = new Set(found.map((each) => each.trace)).size;
  const unknown = Object.entries({ ...values, agent }).map(([name, value]) => unfound(name, value)).filter(Boolean);
  if (traces === 1 && !unknown.length) return openRuns(found);
  showRuns();
  if (text) showList();
  if (unknown.length) return say("unfound", unknown.join(" "));
  if (run) say("unfound", traces ? `The ids of ${counted(traces)} traces begin with ${trace}.` : `No run on this page has the id ${run}.`);
}
