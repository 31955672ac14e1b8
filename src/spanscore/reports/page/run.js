// A run of the data, which has its texts by their index in the strings of their batch, of which the first is the empty one.
// Its story and the texts to search are read when they are asked for: there may be 10,000 runs.

const VERDICTS = ["passed", "failed", "unchecked"];
const STATUSES = ["passed", "failed", "skipped", "errors", "measured", "unmeasured"];
const CALL_STATUSES = ["ok", "arguments", "wrong", "missing", "extra", "order", "ignored", "folded", "cut"];
const BRIEF = 120;

class Run {
  constructor({ strings }, [trace, span, verdict, agent, service, start, duration, calls, errors, outcomes, conversation, incomplete, revision, turns, reasons, dropped, story, name]) {
    this.key = `${trace}-${span}-${turns ? "c" : "r"}`; // a conversation has the ids of its last turn
    this.trace = trace;
    this.span = span;
    this.name = strings[name];
    this.verdict = VERDICTS[verdict];
    this.agent = strings[agent] || strings[service];
    this.service = strings[service];
    this.start = start;
    this.duration = duration;
    this.calls = calls;
    this.errors = errors;
    this.conversation = strings[conversation];
    this.incomplete = strings[incomplete];
    this.revision = revision;
    this.isDropped = Boolean(dropped);
    this.turns = turns;
    this.outcomes = outcomes.map(([evaluator, type, status, value, told]) => ({ name: strings[evaluator], type: strings[type], status: STATUSES[status], value, told: strings[told] }));
    this.reasons = reasons.map(([text, turn]) => ({ text: strings[text], turn }));
    this.isKept = false; // whether it is on the page only because it is open
    this.strings = strings;
    this.told = story;
  }

  get story() {
    return this.told && storyOf(this.strings, this.told, this.duration);
  }

  get searched() {
    const calls = this.told ? this.told[1].flatMap(([tool, , , args, , error]) => [tool, args, error]) : [];
    const texts = new Set([...this.outcomes.flatMap(({ name, told }) => [name, told]), ...calls.map((text) => this.strings[text])]);
    const names = [this.name, this.trace, this.agent, this.service, this.conversation, ...this.reasons.map((reason) => reason.text)];
    const found = [...names, ...texts].join("\n").toLowerCase();
    Object.defineProperty(this, "searched", { value: found });
    return found;
  }

  get failing() {
    return this.outcomes.filter((each) => each.status === "failed" || each.status === "errors").map((each) => each.name);
  }

  get score() {
    let lowest = null;
    for (const { status, value } of this.outcomes) if (value !== null && status !== "measured" && (lowest === null || value < lowest)) lowest = value;
    return lowest;
  }
}

function storyOf(strings, [hidden, calls, marks, alignments, withheld, turns], duration) {
  const turnOf = turns.flatMap((number, turn) => Array(number).fill(turn + 1));
  const read = calls.map(([name, at, took, args, result, error, agent, span, restored, wrong], index) => ({
    number: index + 1,
    turn: turnOf[index],
    name: strings[name],
    at: at / 1000,
    took: took === null ? null : took / 1000,
    error: strings[error],
    agent: strings[agent],
    marks: [],
    preview: wrong ? "" : brief(strings[args]),
    wrong: wrong ? strings[wrong] : "",
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
