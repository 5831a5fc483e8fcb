// The graph: inputs, steps and outputs from top to bottom; moved, scaled, searched, coloured by what a step costs, saved as a picture.
const NODE = [212, 68], GAP = [22, 30], MARGIN = 16;
const COLOURS = {
  cost: { title: "cost", value: (step) => share(step) },
  macs: { title: "MACs", value: (step) => step.macs },
  weights: { title: "weights", value: (step) => step.weights },
  kind: { title: "operator" },
};
let colour = "cost";
const camera = { x: 0, y: 0, scale: 1 };
let matched = [], match = 0;

const placeOf = ([layer, column]) => [column * (NODE[0] + GAP[0]) + MARGIN, layer * (NODE[1] + GAP[1]) + MARGIN];
function extent() {
  const [layers, across] = model.graph.size;
  return [across * (NODE[0] + GAP[0]) - GAP[0] + 2 * MARGIN, layers * (NODE[1] + GAP[1]) - GAP[1] + 2 * MARGIN];
}
// Down the middle of each gap, then on through the row.
function edgePath(points) {
  const half = NODE[0] / 2;
  return points.slice(1).reduce((path, point, index) => {
    const [[from, above], [to, y]] = [placeOf(points[index]), placeOf(point)];
    const bottom = above + NODE[1], middle = (bottom + y) / 2;
    const through = index + 2 < points.length ? `V${y + NODE[1]}` : "";
    return `${path}C${from + half} ${middle} ${to + half} ${middle} ${to + half} ${y}${through}`;
  }, `M${placeOf(points[0])[0] + half} ${placeOf(points[0])[1] + NODE[1]}`);
}
// Texts of a node below each other, the first at `top`.
function lines(rows, top = 17) {
  const room = NODE[0] - 24;
  return rows.filter(([text]) => text).map(([text, name, weight], index) =>
    svg("text", { x: 14, y: top + 15 * index, class: name, "font-weight": weight ?? 400 }, fitted(text, room, 12, weight)));
}
function stepNode(step, index, place) {
  const result = step.result ? `${step.result.dtype} ${shaped(step.result.shape)}` : "";
  const cost = percent(share(step));
  const room = NODE[0] - 30 - width(cost, 12);
  return svg("g", { class: "node", "data-step": index, transform: `translate(${place})` },
    svg("title", {}, [step.name, `${step.op}, ${step.kernel}`, result,
      `${cost} of the cost, ${grouped(step.macs)} MACs, ${grouped(step.weights)} bytes of weights`].join("\n")),
    svg("rect", { width: NODE[0], height: NODE[1], rx: 6 }),
    svg("rect", { class: "strip", width: 6, height: NODE[1], rx: 3 }),
    svg("text", { x: NODE[0] - 10, y: 17, "text-anchor": "end" }, cost),
    svg("text", { x: 14, y: 17, "font-weight": 600 }, fitted(step.op, room, 12, 600)),
    lines([[step.short], [result], [step.kernel, "soft"]], 32));
}
function portNode(kind, port, place) {
  return svg("g", { class: "port", transform: `translate(${place})` }, svg("title", {}, port.name),
    svg("rect", { width: NODE[0], height: NODE[1], rx: 6 }),
    lines([[kind, "", 600], [short(port.name)], [`${port.dtype} ${shaped(port.shape)}`]]));
}
function renderGraph() {
  const { graph, graph_inputs: inputs, graph_outputs: outputs, steps } = model;
  const nodes = [
    ...inputs.map((at) => (place) => portNode("input", model.inputs[at], place)),
    ...steps.map((step, index) => (place) => stepNode(step, index, place)),
    ...outputs.map((at) => (place) => portNode("output", model.outputs[at], place)),
  ];
  const world = svg("g", { id: "world" },
    graph.edges.map((points) => svg("path", { class: "edge", d: edgePath(points) })),
    nodes.map((made, index) => made(placeOf(graph.nodes[index]))));
  const picture = svg("svg", { class: "graph", role: "img", "aria-label": "Graph" }, world);
  const button = (id, text, label, onclick) => element("button", { type: "button", id, "aria-label": label, title: label, onclick }, text);
  const label = "Graph: arrow keys move it, + and - scale it, 0 shows all";
  const frame = element("div", { class: "frame", id: "graph-frame", tabindex: "0", "aria-label": label, onkeydown: steer }, picture);
  const kinds = element("select", { id: "colour", "aria-label": "Colour by", onchange: (event) => { colour = event.target.value; paint(); } },
    Object.entries(COLOURS).map(([id, { title }]) => element("option", { value: id, selected: id === colour }, `colour: ${title}`)));
  const search = element("input", { type: "search", id: "find-node", placeholder: "Find in the graph", "aria-label": "Find in the graph",
    oninput: (event) => find(event.target.value),
    onkeydown: (event) => { if (event.key === "Enter") showMatch(event.shiftKey ? -1 : 1); } });
  put("graph",
    element("h2", {}, "Graph"),
    element("div", { class: "controls" }, search, element("span", { id: "found", class: "note", role: "status" }), kinds,
      element("span", { class: "buttons" }, button("zoom-out", "−", "Smaller", () => zoom(1 / 1.3)), button("zoom-in", "+", "Larger", () => zoom(1.3)),
        button("zoom-all", "Fit", "Show all", showAll), button("save-svg", "SVG", "Save as SVG", saveSvg))),
    frame);
  drag(frame);
  paint();
  begin();
}
function paint() {
  const kinds = hues(model), { value } = COLOURS[colour];
  const most = value ? largest(model.steps.map(value)) || 1 : 1;
  for (const node of document.querySelectorAll("svg.graph g.node")) {
    const step = model.steps[Number(node.dataset.step)];
    const rect = node.querySelector("rect");
    rect.style.setProperty("--hue", value ? 18 : kinds.get(step.op));
    rect.style.setProperty("--part", value ? `${Math.round((100 * value(step)) / most)}%` : "45%");
  }
}

// Moving and scaling.
function look() {
  document.getElementById("world").setAttribute("transform", `translate(${camera.x} ${camera.y}) scale(${camera.scale})`);
}
function frameSize() {
  const { clientWidth, clientHeight } = document.getElementById("graph-frame");
  return [clientWidth, clientHeight];
}
// At first the columns fit and the top is shown: a deep graph would be too small to read.
function begin() {
  const [across] = frameSize(), [wide] = extent();
  camera.scale = Math.min(1, Math.max(0.3, across / wide));
  const first = placeOf(model.graph.nodes[0] ?? [0, 0])[0] + NODE[0] / 2;
  camera.x = across / 2 - camera.scale * (wide * camera.scale <= across ? wide / 2 : first);
  camera.y = 0;
  look();
}
function showAll() {
  const [across, down] = frameSize(), [wide, high] = extent();
  camera.scale = Math.min(1, across / wide, down / high);
  camera.x = (across - wide * camera.scale) / 2;
  camera.y = (down - high * camera.scale) / 2;
  look();
}
function zoom(factor, at) {
  const [across, down] = frameSize(), [x, y] = at ?? [across / 2, down / 2];
  const scale = Math.min(4, Math.max(0.02, camera.scale * factor));
  camera.x = x - ((x - camera.x) * scale) / camera.scale;
  camera.y = y - ((y - camera.y) * scale) / camera.scale;
  camera.scale = scale;
  look();
}
function centre(node) {
  const [across, down] = frameSize(), [x, y] = placeOf(model.graph.nodes[node]);
  camera.scale = Math.max(camera.scale, 0.7);
  camera.x = across / 2 - (x + NODE[0] / 2) * camera.scale;
  camera.y = down / 2 - (y + NODE[1] / 2) * camera.scale;
  look();
}
function steer(event) {
  const ways = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  const way = ways[event.key];
  if (way) {
    camera.x += way[0];
    camera.y += way[1];
    look();
  } else if (event.key === "+" || event.key === "=") zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "0") showAll();
  else return;
  event.preventDefault();
}
// One pointer moves the graph, two scale it; the wheel scales with Ctrl and otherwise scrolls the page.
function drag(frame) {
  const pointers = new Map();
  let moved = 0;
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
  };
  frame.addEventListener("pointerdown", (event) => {
    if (!pointers.size) moved = 0;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  frame.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    if (event.pointerType === "mouse" && !event.buttons) return void pointers.delete(event.pointerId);
    const before = pointers.size === 2 ? spread() : 0;
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    moved += Math.abs(dx) + Math.abs(dy);
    if (moved > 4 && !frame.hasPointerCapture(event.pointerId)) frame.setPointerCapture(event.pointerId);
    if (before) {
      const box = frame.getBoundingClientRect();
      zoom(spread() / before, [event.clientX - box.x, event.clientY - box.y]);
    } else {
      camera.x += dx;
      camera.y += dy;
      look();
    }
  });
  for (const kind of ["pointerup", "pointercancel"]) frame.addEventListener(kind, (event) => pointers.delete(event.pointerId));
  // A click that ends a drag is none.
  frame.addEventListener("click", (event) => { if (moved > 4) event.stopPropagation(); }, true);
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = frame.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 300), [event.clientX - box.x, event.clientY - box.y]);
  }, { passive: false });
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const nodes = [...document.querySelectorAll("svg.graph g.node")];
  matched = words.length ? model.steps.filter((step) => matches(step, words)).map((step) => step.index) : [];
  const set = new Set(matched);
  for (const node of nodes) {
    const isMatch = set.has(Number(node.dataset.step));
    node.classList.toggle("match", isMatch);
    node.classList.toggle("dim", words.length > 0 && !isMatch);
  }
  match = -1;
  document.getElementById("found").textContent = words.length ? `${matched.length} found` : "";
  if (matched.length) showMatch(1);
}
function showMatch(way) {
  if (!matched.length) return;
  match = (match + way + matched.length) % matched.length;
  centre(model.graph_inputs.length + matched[match]);
  document.getElementById("found").textContent = `${match + 1} of ${matched.length}`;
}

// The whole graph with its colours, as a file of its own.
function svgText() {
  const [wide, high] = extent();
  const copy = document.querySelector("svg.graph").cloneNode(true);
  const originals = document.querySelectorAll("svg.graph :is(rect, path, text)");
  copy.querySelectorAll("rect, path, text").forEach((part, index) => {
    const style = getComputedStyle(originals[index]);
    for (const name of ["fill", "stroke", "stroke-width"]) part.setAttribute(name, style.getPropertyValue(name));
    part.removeAttribute("style");
  });
  copy.querySelector("#world").removeAttribute("transform");
  copy.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  copy.setAttribute("width", wide);
  copy.setAttribute("height", high);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.setAttribute("font-size", "12");
  const ground = svg("rect", { width: wide, height: high, fill: getComputedStyle(document.body).backgroundColor });
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}
function saveSvg() {
  const link = element("a", { href: URL.createObjectURL(new Blob([svgText()], { type: "image/svg+xml" })), download: "graph.svg" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
