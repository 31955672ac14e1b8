// Runs as they are scored: the newest come first, and the oldest give way.

const TOGETHER_MS = 250; // what comes in this time is shown together
const AGAIN_MS = 5000;

let coming = [];
let due = null;
let paused = false;

function takeIn() {
  due = null;
  if (paused || !coming.length) return;
  const newest = new Map();
  for (const run of coming) {
    newest.delete(run.key);
    newest.set(run.key, run);
  }
  runs = [...[...newest.values()].reverse(), ...runs.filter((run) => !newest.has(run.key))].slice(0, given.live.most);
  coming = [];
  if (usedBy("evaluators") || usedBy("agents")) showRuns();
  else show();
}

// Whether the focus is on a button in there, which would be gone.
function usedBy(id) {
  const place = document.getElementById(id);
  return place.contains(document.activeElement) && place !== document.activeElement;
}

function arrived(event) {
  const batch = JSON.parse(event.data);
  for (const row of batch.runs) coming.push(runOf(batch, row));
  coming = coming.slice(-given.live.most);
  if (paused) say("connection", `paused, ${plural(coming.length, "new run")}`);
  due ??= setTimeout(takeIn, TOGETHER_MS);
}

function connected(word) {
  document.getElementById("connection").className = `connection ${word}`;
  say("connection", { open: paused ? "paused" : "connected", lost: "connection lost, trying again …" }[word]);
}

let seen = given.live.after;

function connect() {
  const source = new EventSource(`runs?after=${encodeURIComponent(seen)}`);
  source.addEventListener("open", () => connected("open"));
  source.addEventListener("message", (event) => {
    seen = event.lastEventId;
    arrived(event);
  });
  source.addEventListener("skipped", (event) => {
    say("sentence", `The last ${counted(given.live.most)} runs at most; ${plural(Number(event.data), "run")} came faster than they can be shown.`);
  });
  source.addEventListener("error", () => {
    connected("lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN_MS);
  });
}

document.getElementById("pause").addEventListener("click", ({ target }) => {
  paused = !paused;
  target.setAttribute("aria-pressed", String(paused));
  target.textContent = paused ? "Go on" : "Pause";
  say("connection", paused ? "paused" : "connected");
  takeIn();
});
connect();
