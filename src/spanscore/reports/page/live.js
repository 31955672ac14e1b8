// Asks for the page again, and shows the runs that have come. While somebody reads a run, the list stands still.

const AGAIN_MS = 2000;
const LONGEST_MS = 30000;

let shown = given; // the data on the page, and the newest there is
let newest = given;
let asOf = null; // when the newest data was, by the clock of the server
let isPaused = false;

async function ask() {
  const begun = performance.now();
  let wait = 0;
  if (!document.hidden) wait = await asked().catch(() => connected("lost", "connection lost, trying again …"));
  setTimeout(ask, Math.max(AGAIN_MS, wait || 0, 4 * (performance.now() - begun))); // a page that takes long is asked for less often
}

// Returns how long the server wants us to wait.
async function asked() {
  const headers = { "If-None-Match": `"${newest.live.last}"` };
  const answer = await fetch(location.pathname, { headers, signal: AbortSignal.timeout(LONGEST_MS) });
  if (answer.status === 503) {
    const seconds = Number(answer.headers.get("Retry-After")) || 5;
    connected("lost", `too many readers (503), trying again in ${seconds} s …`);
    return seconds * 1000;
  }
  if (answer.status !== 200 && answer.status !== 304) return connected("lost", `the server answers ${answer.status}, trying again …`);
  if (answer.status === 200) newest = dataOf(await answer.text());
  asOf = Date.parse(answer.headers.get("Date")) || Date.now();
  connected("open", "connected");
  if (!isStill() || shown === newest) showNewest();
  offerNewest();
}

// The page is text here: of its elements only the one with the data is looked for, which has no "<" in it.
function dataOf(page) {
  return JSON.parse(/ id="data">([^<]*)/.exec(page)[1]);
}

const isStill = () => isPaused || opened.size > 0 || !getSelection().isCollapsed;

function showNewest() {
  say("as-of", `as of ${moment(asOf).slice(11)} UTC`);
  const isSame = shown === newest && !runs.some((run) => run.isKept && !opened.has(run.key));
  if (isSame) return;
  const known = new Map(shown.live.ids.map((id, at) => [id, runs[at]]));
  const kept = runs.filter((run) => opened.has(run.key));
  runs = newest.batches.map((batch, at) => known.get(newest.live.ids[at]) || new Run(batch, batch.runs[0]));
  const held = new Set(runs.map((run) => run.key));
  for (const run of kept) if (!held.has(run.key)) runs.push(Object.assign(run, { isKept: true }));
  shown = newest;
  given.why = shown.why;
  say("headline-text", shown.live.headline);
  say("sentence", shown.live.sentence);
  const read = beingRead();
  const before = read && read.getBoundingClientRect().top;
  if (!document.activeElement.closest("#reasons button, #evaluators button, #agents button")) showTables(); // else that button would be gone
  const at = matching().findIndex((run) => opened.has(run.key) && [rowsOf.get(run)?.row, rowsOf.get(run)?.detail].includes(read));
  if (at >= 0) view.page = Math.floor(at / PAGE);
  showRuns();
  if (read && read.isConnected) scrollBy(0, read.getBoundingClientRect().top - before);
}

// What is to stay where it is: an opened run, if possible one in the window, or else the row at its upper edge.
function beingRead() {
  const rows = [...document.getElementById("rows").children].map((row) => ({ row, place: row.getBoundingClientRect() }));
  const seen = rows.filter(({ place }) => place.bottom > 0 && place.top < innerHeight);
  const isOpen = ({ row }) => row.matches(".detail, :has(+ .detail)");
  const found = seen.find(isOpen) || rows.find(isOpen) || seen.find(({ place }) => place.top < 0);
  return found ? found.row : null;
}

// Offers the runs that have come while the list stood still.
function offerNewest() {
  const known = new Set(shown.live.ids);
  const number = newest.live.ids.filter((id) => !known.has(id)).length;
  const offered = document.getElementById("new");
  offered.hidden = shown === newest;
  offered.textContent = number ? `${counted(number)} new` : "show the newest";
}

function connected(word, text) {
  document.getElementById("connection").className = word;
  say("connection", text);
}

document.getElementById("new").addEventListener("click", () => {
  showNewest();
  offerNewest();
  const place = document.querySelector('.opener[aria-expanded="true"]') || document.getElementById("runs");
  place.focus({ preventScroll: true }); // the button has gone
});
document.getElementById("pause").addEventListener("click", ({ target }) => {
  isPaused = !isPaused;
  target.setAttribute("aria-pressed", String(isPaused));
  target.textContent = isPaused ? "Go on" : "Pause";
  if (!isStill()) showNewest();
  offerNewest();
});
ask();
