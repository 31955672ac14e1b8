// Why runs failed: a row for each reason, with the share of runs over time, and buttons that show its runs.

const BAR = { width: 5, height: 26 };
const MINUTE = 60_000;

function showReasons({ rows, more, clearest }, { all, one }) {
  const heads = [["runs", "number"], ["reason"], ["over time"], ...(clearest ? [["since"]] : []), ["runs to show"]];
  const made = rows.map(([text, number, agents, isPart, errors, change, bars, of]) =>
    element(
      "tr",
      { class: isPart ? "part" : null },
      element("td", { class: "number" }, counted(number), element("div", { class: "dim" }, percent(number / of))),
      rowHead(
        isPart ? element("span", { class: "unseen" }, "part of the reason above: ") : null,
        named(text),
        agents ? element("div", { class: "dim" }, named(agents)) : null,
        errors.map(([error, count]) => element("div", { class: "example" }, named(error), ` (${plural(count, "run")})`)),
      ),
      element("td", {}, overTime(bars, change && change[1])),
      clearest ? element("td", { class: "grown" }, change ? `${times(change)} ${since(change)}` : "") : null,
      element(
        "td",
        { class: "press nowrap" },
        button("show one", { class: "inline", "aria-label": visible(`show one run: ${text}`) }, () => one(text)),
        button(`all ${counted(number)}`, { class: "inline", "aria-label": visible(`show all ${counted(number)} runs: ${text}`) }, () => all(text)),
      ),
    ),
  );
  if (more) {
    const known = new Set(rows.map(([text]) => text));
    const others = runs.filter((run) => run.reasons.some((reason) => !known.has(reason.text))).length;
    made.push(element("tr", {}, element("td", { colspan: heads.length }, `… and ${plural(more, "more reason")}, of ${plural(others, "run")}`)));
  }
  say("growth", clearest ? `S${since(clearest[5]).slice(1)}: ${visible(clearest[0])} (${times(clearest[5])})` : "");
  document.getElementById("why").hidden = !rows.length;
  fill("reasons", rows.length ? [table("Why runs failed", heads, made)] : []);
}

const times = ([ratio]) => (ratio === null ? "new" : `×${ratio.toFixed(1)}`);

// The end is rounded up: the first of these runs may have ended in its minute.
const since = ([, begin, end]) => `since ${between(begin, Math.ceil(end / MINUTE) * MINUTE)}`;

// The date stands before the second time only if it is another one.
function between(...ends) {
  const [begin, end] = ends.map((each) => moment(each).slice(0, 16));
  const isSameDay = begin.slice(0, 10) === end.slice(0, 10);
  return `${begin} to ${isSameDay ? end.slice(11) : end} UTC`;
}

function overTime(bars, grown) {
  const shares = bars.map(([, , all, failed]) => failed / all);
  const most = Math.max(...shares, 0);
  if (!most) return null;
  const drawn = bars.map(([begin, end, all, failed], place) => {
    const height = failed ? Math.max(2, (shares[place] / most) * BAR.height) : 0;
    const told = `${between(begin, end)}: ${counted(failed)} of ${plural(all, "run")} (${percent(shares[place])})`;
    const x = place * (BAR.width + 1);
    return drawing(
      "g",
      { class: grown !== null && begin >= grown ? "after" : null },
      drawing("title", {}, told),
      drawing("rect", { class: "reach", x, y: 0, width: BAR.width + 1, height: BAR.height }),
      drawing("rect", { x, y: BAR.height - height, width: BAR.width, height }),
    );
  });
  const width = bars.length * (BAR.width + 1);
  const label = `shares of runs over time: first ${percent(shares[0])}, last ${percent(shares[shares.length - 1])}, highest ${percent(most)}`;
  const base = drawing("path", { d: `M0 ${BAR.height + 0.5}H${width}` });
  const size = { width, height: BAR.height + 1 };
  return drawing("svg", { class: "bars", viewBox: `0 0 ${width} ${BAR.height + 1}`, ...size, role: "img", "aria-label": label }, drawn, base);
}
