// Asks for the page again, and shows the runs that have come: the newest come first, and the oldest give way.

const AGAIN_MS = 2000;
const LONGEST_MS = 30000;

let shown = given; // the data on the page, and the newest there is
let newest = given;
let isPaused = false;

async function ask() {
  const begun = performance.now();
  if (!document.hidden) await asked().catch(() => connected("lost"));
  setTimeout(ask, Math.max(AGAIN_MS, 4 * (performance.now() - begun))); // a page that takes long is asked for less often
}

async function asked() {
  const headers = { "If-None-Match": `"${newest.live.last}"` };
  const answer = await fetch(location.pathname, { headers, signal: AbortSignal.timeout(LONGEST_MS) });
  if (answer.status !== 304) newest = dataOf(await answer.text());
  connected("open");
  if (!isPaused) showNewest();
}

// The page is text here: of its elements only the one with the data is looked for, which has no "<" in it.
function dataOf(page) {
  return JSON.parse(/ id="data">([^<]*)/.exec(page)[1]);
}

function showNewest() {
  if (shown === newest) return;
  const known = new Map(shown.live.ids.map((id, at) => [id, runs[at]]));
  runs = newest.batches.map((batch, at) => known.get(newest.live.ids[at]) || runOf(batch, batch.runs[0]));
  shown = newest;
  say("sentence", shown.live.sentence);
  const read = beingRead();
  const before = read && read.getBoundingClientRect().top;
  if (document.activeElement.closest("#evaluators button, #agents button")) showRuns(); // that button would be gone
  else show();
  if (read && read.isConnected) scrollBy(0, read.getBoundingClientRect().top - before);
}

// What is to stay where it is: an opened run in the window, or else the row at the upper edge of the window.
function beingRead() {
  const rows = [...document.getElementById("rows").children].map((row) => ({ row, place: row.getBoundingClientRect() }));
  const seen = rows.filter(({ place }) => place.bottom > 0 && place.top < innerHeight);
  const found = seen.find(({ row }) => row.matches(".detail")) || seen.find(({ place }) => place.top < 0);
  return found && found.row;
}

function connected(word) {
  const known = new Set(shown.live.ids);
  const waiting = newest.live.ids.filter((id) => !known.has(id)).length;
  const paused = waiting ? `paused, ${plural(waiting, "new run")}` : "paused";
  document.getElementById("connection").className = `connection ${word}`;
  say("connection", word === "lost" ? "connection lost, trying again …" : isPaused ? paused : "connected");
}

document.getElementById("pause").addEventListener("click", ({ target }) => {
  isPaused = !isPaused;
  target.setAttribute("aria-pressed", String(isPaused));
  target.textContent = isPaused ? "Go on" : "Pause";
  if (!isPaused) showNewest();
  connected("open");
});
ask();
