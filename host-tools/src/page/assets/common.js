"use strict";
// Models as they lie in the page; a name is only ever text of a node, never markup.
const models = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
let model = models[0];

const grouped = (value) => Math.round(value).toLocaleString("en-US");
const significant = (value) => (value >= 100 ? grouped(value) : Number(value.toPrecision(2)).toString());
function sized(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const [value, unit] = bytes < 1 << 20 ? [bytes / 1024, "KiB"] : [bytes / (1 << 20), "MiB"];
  return `${value < 10 ? Number(value.toFixed(1)) : grouped(value)} ${unit}`;
}
const percent = (part) => (part > 0 && part < 0.001 ? "<0.1 %" : `${(100 * part).toFixed(1)} %`);
const shaped = (shape) => (shape.length ? shape.join("×") : "scalar");

// An element with attributes, handlers (`onclick`) and children: texts or elements.
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}
function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}
function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child != null && child !== false));
  return made;
}
// Long names may be broken behind the marks that they are joined by, and nowhere else.
function breakable(text) {
  return text.split(/(?<=[/;:_.,|=])/).flatMap((part, index) => (index ? [element("wbr"), part] : [part]));
}
// Children that a part of the page shows; `null` is nothing.
function put(id, ...children) {
  document.getElementById(id).replaceChildren(...children.flat().filter(Boolean));
}
function bar(part, of) {
  const width = of > 0 ? Math.min(100, (100 * part) / of) : 0;
  const fill = element("i");
  fill.style.width = `${width}%`;
  return element("span", { class: part > of ? "bar over" : "bar" }, fill);
}

// Widths of drawn texts, in pixels: what does not fit into its box is shortened in the middle, for both ends of a name tell it apart.
const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();
function width(text, size, weight = 400) {
  const key = `${weight} ${size} ${text}`;
  if (!widths.has(key)) {
    pen.font = `${weight} ${size}px system-ui, sans-serif`;
    widths.set(key, pen.measureText(text).width * 1.02);
  }
  return widths.get(key);
}
function fitted(text, room, size, weight) {
  if (width(text, size, weight) <= room) return text;
  const letters = [...text];
  for (let kept = Math.min(letters.length - 1, Math.ceil(room / 3)); kept >= 4; kept--) {
    const head = Math.ceil(kept / 2);
    const short = `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (kept - head)).join("")}`;
    if (width(short, size, weight) <= room) return short;
  }
  return "";
}

// Cost of a step: the best that is known of all steps of the model.
const COSTS = {
  instructions: (of) => `instructions on ${of.counted_on}`,
  at_most: (of) => `instructions at most (${of.at_most_on})`,
  cost: () => "estimated cost",
};
function costOf(of) {
  const known = ["instructions", "at_most"].find((name) => of.steps.length && of.steps.every((step) => step[name] != null));
  return known ?? "cost";
}
// The largest of many numbers: more than a call takes arguments.
const largest = (numbers) => numbers.reduce((all, number) => Math.max(all, number), 0);
function totalCost(of) {
  const name = costOf(of);
  return of.steps.reduce((sum, step) => sum + step[name], 0);
}
const share = (step, of = model) => step[costOf(of)] / Math.max(1, totals.get(of) ?? totals.set(of, totalCost(of)).get(of));
const totals = new Map();

// A hue for each kind of operator, in the order of first use; a hue for each tensor, far from its neighbours'.
function hues(of) {
  const kinds = [...new Set(of.steps.map((step) => step.op))];
  return new Map(kinds.map((kind, index) => [kind, (210 + index * 137) % 360]));
}
const tensorHue = (owner) => (owner * 137 + 200) % 360;

// The step that is chosen: marked wherever it is drawn, told below.
let chosen = null;
function choose(step) {
  chosen = step;
  for (const old of document.querySelectorAll(".on")) old.classList.remove("on");
  const detail = document.getElementById("detail");
  if (step === null) {
    detail.classList.remove("open");
    return;
  }
  for (const part of document.querySelectorAll(`[data-step="${step}"]`)) part.classList.add("on");
  const pairs = described(model.steps[step], step);
  const list = element("dl", {}, pairs.map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, breakable(value)))));
  const close = element("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => choose(null) }, "×");
  detail.replaceChildren(close, list);
  detail.dataset.shows = step;
  detail.classList.add("open");
}
function described(step, index) {
  const pairs = [["step", `${index}`], ["operator", step.op], ["kernel", step.kernel]];
  if (step.result) {
    const { dtype, shape, scale, zero_point } = step.result;
    pairs.push(["result", `${dtype} ${shaped(shape)}`]);
    if (scale) pairs.push(["scale", `${scale}, zero point ${zero_point}`]);
  }
  if (step.window) {
    const { kernel, stride, dilation, padding } = step.window;
    pairs.push(["window", `${shaped(kernel)}, stride ${shaped(stride)}, padding ${shaped(padding)}`]);
    if (dilation.some((extent) => extent > 1)) pairs.push(["dilation", shaped(dilation)]);
  }
  pairs.push(["cost", percent(share(step))], ["MACs", grouped(step.macs)], ["weights", `${grouped(step.weights)} bytes`]);
  for (const name of ["instructions", "at_most"]) {
    if (step[name] != null) pairs.push([COSTS[name](model), grouped(step[name])]);
  }
  pairs.push(["name", step.name]);
  if (step.result && step.result.name !== step.name) pairs.push(["tensor", step.result.name]);
  return pairs;
}
