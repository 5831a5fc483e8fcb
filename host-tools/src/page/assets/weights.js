// Weights as a treemap: an area for each step's constants.
// Rows of tiles as near to squares as they can be: M. Bruls, K. Huizing, J. J. van Wijk, "Squarified treemaps", 2000.
function treemap(sizes, [x, y, wide, high]) {
  const total = sizes.reduce((all, size) => all + size, 0), scale = (wide * high) / Math.max(1, total);
  const tiles = [];
  let at = 0;
  const worst = (row, sum, side) => Math.max((side * side * row[0]) / (sum * sum), (sum * sum) / (side * side * row.at(-1)));
  while (at < sizes.length) {
    // Never zero, however little is left by rounding.
    const side = Math.max(1e-9, Math.min(wide, high)), row = [sizes[at] * scale];
    let sum = row[0];
    for (let next = at + 1; next < sizes.length; next++) {
      const area = sizes[next] * scale;
      if (worst([...row.slice(0, 1), area], sum + area, side) > worst([row[0], row.at(-1)], sum, side)) break;
      row.push(area);
      sum += area;
    }
    const depth = sum / side;
    let along = 0;
    for (const area of row) {
      const length = area / depth;
      tiles.push(wide >= high ? [x, y + along, depth, length] : [x + along, y, length, depth]);
      along += length;
    }
    if (wide >= high) [x, wide] = [x + depth, wide - depth];
    else [y, high] = [y + depth, high - depth];
    at += row.length;
  }
  return tiles;
}
function renderWeights() {
  const steps = model.steps.filter((step) => step.own_weights > 0).sort((a, b) => b.own_weights - a.own_weights || a.index - b.index);
  const total = steps.reduce((all, step) => all + step.own_weights, 0);
  const wide = Math.max(1, document.getElementById("weights").clientWidth - 2), high = Math.round(Math.min(420, Math.max(240, wide * 0.4)));
  const kinds = hues(model), tiles = treemap(steps.map((step) => step.own_weights), [0, 0, wide, high]);
  const tile = (step, index) => {
    const [x, y, w, h] = tiles[index], part = step.own_weights / total;
    const rect = svg("rect", { class: "box", x, y, width: w, height: h });
    rect.style.setProperty("--hue", kinds.get(step.op));
    // Names are shortened, figures are there or not.
    const room = w - 10, figures = `${sized(step.own_weights)}, ${percent(part)}`;
    const rows = [[fitted(step.short, room, 11, 600), 600], [width(figures, 11) <= room ? figures : "", 400], [fitted(step.op, room, 11), 400]];
    const texts = w < 40 ? [] : rows.filter(([text], row) => text && h >= 20 + 14 * row);
    const title = `${step.name}\n${step.op}: ${grouped(step.own_weights)} bytes, ${percent(part)}`;
    return svg("g", { class: "tile", "data-step": step.index }, svg("title", {}, title), rect,
      texts.map(([text, weight], row) => svg("text", { x: x + 5, y: y + 15 + 14 * row, "font-weight": weight }, text)));
  };
  const legend = element("p", { class: "legend" }, [...new Set(steps.map((step) => step.op))].map((op) => {
    const key = element("i");
    key.style.setProperty("--hue", kinds.get(op));
    return element("span", {}, key, op);
  }));
  const picture = svg("svg", { class: "treemap", width: wide, height: high, role: "img", "aria-label": "Weights by step" }, steps.map(tile));
  put("weights", element("h2", {}, "Weights"),
    element("p", { class: "note" }, total ? `${grouped(total)} bytes of constants that steps read; an area is a step's part.` : "No step reads constants."),
    total ? element("div", { class: "frame" }, picture) : null,
    total ? legend : null);
  mark();
}
