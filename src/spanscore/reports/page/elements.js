"use strict";
// How data becomes a part of the document. What runs are called and what tools said may be anything: it only ever becomes
// text, never markup, and characters that hide, or that turn the direction of what follows, are shown by their numbers.

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu;
const DRAWING = "http://www.w3.org/2000/svg";

function visible(text) {
  return String(text).replace(UNSEEN, (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
}

// Makes an element. Children are elements, or text; null and undefined are left out.
function element(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function drawing(name, attributes, ...children) {
  return filled(document.createElementNS(DRAWING, name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) made.append(child instanceof Node ? child : visible(child));
  }
  return made;
}

// A name that may run from right to left: it turns nothing around it.
const named = (text) => element("bdi", {}, text);

function button(text, attributes, pressed) {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", pressed);
  return made;
}

const NUMBERS = new Intl.NumberFormat("en-US");
const counted = (number) => NUMBERS.format(number);
const plural = (number, noun) => `${counted(number)} ${noun}${number === 1 ? "" : "s"}`;
const tenths = (share) => Math.min(99.9, Math.max(0.1, Math.round(share * 1000) / 10)).toFixed(1); // neither none nor all
const percent = (share) => (share === null ? "-" : `${share === 0 || share === 1 ? share * 100 : tenths(share)} %`);
const scored = (value) => (value === null ? "-" : value.toFixed(3).replace(/\.?0+$/, ""));

function lasting(milliseconds) {
  if (milliseconds === null) return "-";
  if (milliseconds < 1) return `${milliseconds.toFixed(2)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

function moment(milliseconds) {
  if (milliseconds === null) return "-";
  const time = new Date(milliseconds);
  return Number.isNaN(time.getTime()) ? "-" : time.toISOString().replace("T", " ").slice(0, 19);
}

// Puts JSON on lines of its own without reading its numbers, which may have more digits than a script can hold.
function indented(text) {
  if (text.length < 120 || !/^[[{]/.test(text)) return text;
  let depth = 0;
  let lines = "";
  for (const [part] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[[{]\s*[\]}]|[[{]|[\]}]|,\s*|[^"[\]{},]+/gs)) {
    const opens = part === "[" || part === "{";
    const closes = part === "]" || part === "}";
    if (opens) depth += 1;
    if (closes) depth = Math.max(0, depth - 1);
    const line = `\n${"  ".repeat(depth)}`;
    lines += opens ? part + line : closes ? line + part : part.startsWith(",") ? `,${line}` : part;
  }
  return lines;
}
