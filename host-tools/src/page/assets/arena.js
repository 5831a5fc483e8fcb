// The arena over time: tensors as boxes, steps across, bytes upwards.
const PLOT = { left: 58, top: 22, bottom: 26, right: 10, high: 340 };
let stretch = 1;

function boxesOf(of, region) {
  return of.blocks.filter((block) => block.region === region);
}
// The end of the highest box during each step.
function heights(of, region) {
  const tops = new Array(of.steps.length).fill(0);
  for (const { bytes, steps } of boxesOf(of, region)) {
    for (let step = steps[0]; step <= steps[1]; step++) tops[step] = Math.max(tops[step], bytes[1]);
  }
  return tops;
}
// The steps in which no box that is drawn later covers the upper `bytes` of one: there its name stands.
function free(boxes, index, bytes) {
  const block = boxes[index], low = block.bytes[1] - bytes;
  const others = boxes.slice(index + 1).filter((other) => other.bytes[0] < block.bytes[1] && low < other.bytes[1]);
  let best = [0, -1], begin = block.steps[0];
  for (let step = block.steps[0]; step <= block.steps[1] + 1; step++) {
    const taken = step > block.steps[1] || others.some(({ steps }) => steps[0] <= step && step <= steps[1]);
    if (!taken) continue;
    if (step - 1 - begin > best[1] - best[0]) best = [begin, step - 1];
    begin = step + 1;
  }
  return best;
}
const ownerName = (of, block) => (block.owner === null ? "scratch" : of.tensors[block.owner]?.short ?? "");
const fullName = (of, block) => (block.owner === null ? `scratch of step ${block.steps[0]}` : of.tensors[block.owner]?.name ?? "");
const sizeOf = (block) => block.bytes[1] - block.bytes[0];
function alive(of, region, step) {
  return boxesOf(of, region).filter(({ steps }) => steps[0] <= step && step <= steps[1]).sort((a, b) => sizeOf(b) - sizeOf(a));
}
function plot(of, region, wide, scaleBytes) {
  const { left, top, bottom, right, high } = PLOT;
  const bytes = Math.max(1, scaleBytes ?? of.regions[region].bytes), count = Math.max(1, of.steps.length);
  const across = (wide - left - right) / count;
  const x = (step) => left + step * across, y = (byte) => top + high - (byte / bytes) * high;
  const tops = heights(of, region), most = largest(tops), peak = tops.indexOf(most);
  const ticks = [0, 1, 2, 3, 4].map((quarter) => (bytes * quarter) / 4);
  const boxes = boxesOf(of, region);
  const box = (block, index) => {
    const [w, h] = [across * (block.steps[1] + 1 - block.steps[0]), (sizeOf(block) / bytes) * high];
    const [bx, by] = [x(block.steps[0]), y(block.bytes[1])];
    const during = block.steps[0] === block.steps[1] ? `step ${block.steps[0]}` : `steps ${block.steps.join(" to ")}`;
    const texts = [];
    if (h >= 17 && w >= 30) {
      const [from, to] = free(boxes, index, ((h >= 31 ? 31 : 17) / high) * bytes), room = (to + 1 - from) * across - 8, at = x(from) + 4;
      const name = room > 22 ? fitted(ownerName(of, block), room, 11) : "";
      if (name) texts.push(svg("text", { x: at, y: by + 13 }, name));
      if (name && h >= 31 && width(sized(sizeOf(block)), 11) <= room) texts.push(svg("text", { x: at, y: by + 27 }, sized(sizeOf(block))));
    }
    const rect = svg("rect", { class: block.owner === null ? "box scratch" : "box", x: bx, y: by, width: Math.max(0.5, w), height: Math.max(0.5, h) });
    if (block.owner !== null) rect.style.setProperty("--hue", tensorHue(block.owner));
    return svg("g", { class: "tensor", "data-step": block.steps[0] },
      svg("title", {}, `${fullName(of, block)}\n${grouped(sizeOf(block))} bytes at ${grouped(block.bytes[0])}, ${during}`), rect, texts);
  };
  const every = Math.max(1, Math.ceil(34 / across));
  const marks = of.steps.map((_, step) => step).filter((step) => step % every === 0);
  const grid = (byte) => [svg("path", { class: "grid", d: `M${left} ${y(byte)}H${wide - right}` }),
    svg("text", { x: left - 6, y: y(byte) + 4, "text-anchor": "end" }, sized(Math.round(byte)))];
  const highest = most > 0 ? of.steps.map((_, step) => step).filter((step) => tops[step] === most) : [];
  const labelAt = Math.min(Math.max(x(peak) + across / 2, left + 40), wide - 50);
  return svg("svg", { class: "arena", width: wide, height: top + high + bottom, role: "img", "aria-label": "Arena over time" },
    ticks.map(grid).flat(),
    marks.map((step) => svg("text", { x: x(step) + across / 2, y: top + high + 17, "text-anchor": "middle" }, `${step}`)),
    boxes.map(box),
    highest.map((step) => svg("rect", { class: "peak", x: x(step), y: top - 8, width: across, height: 5 })),
    most > 0 ? svg("text", { class: "peak", x: labelAt, y: 10, "text-anchor": "middle" }, `peak ${sized(most)}`) : null);
}
// Whose bytes make the peak, and why the arena is no smaller.
function peakText(of, region) {
  const tops = heights(of, region), most = largest(tops), step = tops.indexOf(most);
  if (!most) return element("p", { class: "note" }, "Nothing lies here.");
  const there = alive(of, region, step), sum = there.reduce((all, block) => all + sizeOf(block), 0);
  const overlap = sum > most ? ` They add up to ${grouped(sum)} bytes: an output may lie over an input that its step has read.` : "";
  const free = sum < most ? ` ${grouped(most - sum)} bytes of it lie between them.` : "";
  const bound = of.proven ? " No plan of this order of steps is smaller: that is proven." : ` No plan can go below ${grouped(of.lower_bound)} bytes.`;
  const proof = of.regions.length > 1 ? "" : bound;
  const row = (block) => element("tr", { "data-step": block.steps[0], title: fullName(of, block) },
    element("td", {}, breakable(ownerName(of, block))), element("td", { class: "n" }, grouped(sizeOf(block))), element("td", {}, bar(sizeOf(block), most)));
  return element("div", { class: "why" },
    element("p", {}, `The peak of ${grouped(most)} bytes is in step ${step} (`, element("b", { title: of.steps[step].name }, breakable(of.steps[step].short)),
      `, ${of.steps[step].op}), which needs ${there.length === 1 ? "one block" : `${there.length} blocks`} at once.${overlap}${free}${proof}`),
    element("table", { class: "alive" }, element("tbody", {}, there.slice(0, 12).map(row))));
}
function renderArena() {
  const button = (id, text, label, by) => element("button", { type: "button", id, title: label, "aria-label": label, onclick: () => {
    stretch = by === 0 ? 1 : Math.min(64, Math.max(1, stretch * by));
    renderArena();
  } }, text);
  const room = document.getElementById("arena").clientWidth - 2;
  const regions = model.regions.map((region, index) => [
    model.regions.length > 1 ? element("h3", {}, breakable(region.name)) : null,
    element("div", { class: "frame plot", tabindex: "0", "aria-label": `${region.name} over time` }, plot(model, index, room * stretch)),
    peakText(model, index),
  ]);
  put("arena",
    element("h2", {}, "Arena over time"),
    element("div", { class: "controls" }, element("span", { class: "note" }, "Steps go across, bytes upwards. Scratch is grey."),
      element("span", { class: "buttons" }, button("arena-out", "−", "Narrower steps", 0.5), button("arena-in", "+", "Wider steps", 2),
        button("arena-all", "Fit", "All steps", 0))),
    regions.flat());
  mark();
}
function mark() {
  if (chosen !== null) for (const made of document.querySelectorAll(`[data-step="${chosen}"]`)) made.classList.add("on");
}
