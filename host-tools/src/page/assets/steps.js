// Steps as a table: sorted by a click on a head, filtered, columns chosen.
const COLUMNS = [
  { id: "index", title: "#", number: true, value: (step) => step.index, always: true },
  { id: "name", title: "step", value: (step) => step.short, always: true },
  { id: "result", title: "result", value: (step) => step.result?.shape.reduce((all, extent) => all * extent, 1) ?? 0, wide: true },
  { id: "cost", title: "cost", number: true, value: (step) => step[costOf(model)], bar: true, text: (step) => percent(share(step)) },
  { id: "macs", title: "MACs", number: true, value: (step) => step.macs, bar: true, wide: true },
  { id: "weights", title: "weight bytes", number: true, value: (step) => step.weights, bar: true, wide: true },
  { id: "instructions", title: "instructions", number: true, value: (step) => step.instructions ?? 0, bar: true, wide: true,
    known: (of) => of.counted_on },
  { id: "at_most", title: "instructions at most", number: true, value: (step) => step.at_most ?? 0, bar: true, wide: true, off: true,
    known: (of) => of.at_most_on },
];
const order = { column: "index", down: false };
let filter = "", columnsOn = null;

const columns = () => COLUMNS.filter((column) => !column.known || column.known(model));
// Those that were chosen, else those for which there is room.
function columnsShown() {
  const narrow = matchMedia("(max-width: 700px)").matches;
  const usual = (column) => column.always || !(column.off || (narrow && column.wide));
  return columnsOn ?? new Set(columns().filter(usual).map((column) => column.id));
}
function renderSteps() {
  model.steps.forEach((step, index) => { step.index = index; });
  const known = columns();
  const change = (column) => (event) => {
    columnsOn = columnsShown();
    if (event.target.checked) columnsOn.add(column.id);
    else columnsOn.delete(column.id);
    renderRows();
  };
  const box = (column) => element("label", {},
    element("input", { type: "checkbox", "data-column": column.id, checked: columnsShown().has(column.id), onchange: change(column) }), column.title);
  const find = element("input", { type: "search", id: "find-step", placeholder: "Find a step", "aria-label": "Find a step", value: filter, oninput: (event) => {
    filter = event.target.value;
    renderRows();
  } });
  put("steps",
    element("h2", {}, "Steps"),
    element("div", { class: "controls" }, find,
      element("details", { class: "columns" }, element("summary", {}, "Columns"), known.filter((column) => !column.always).map(box))),
    element("p", { class: "note" }, `Cost: ${COSTS[costOf(model)](model)}, ${grouped(totalCost(model))} in all.`),
    element("div", { class: "scroll" }, element("table", { id: "step-table", tabindex: "0", "aria-label": "Steps", onkeydown: walk })));
  renderRows();
}
function matches(step, words) {
  const text = `${step.index} ${step.name} ${step.op} ${step.kernel}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
function renderRows() {
  const shown = columnsShown(), on = columns().filter((column) => shown.has(column.id));
  const by = COLUMNS.find((column) => column.id === order.column);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const compare = (a, b) => {
    const [x, y] = [by.value(a), by.value(b)];
    return (typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true })) * (order.down ? -1 : 1) || a.index - b.index;
  };
  const most = new Map(on.map((column) => [column.id, column.bar ? largest(model.steps.map(column.value)) : 0]));
  const head = (column) => {
    const sorted = column.id === order.column ? (order.down ? "descending" : "ascending") : "none";
    const arrow = { ascending: " ▲", descending: " ▼", none: "" }[sorted];
    return element("th", { class: column.number ? "n" : "", "aria-sort": sorted, "data-column": column.id },
      element("button", { type: "button", onclick: () => sortBy(column) }, column.title + arrow));
  };
  const cell = (step, column) => {
    if (column.id === "name") {
      return element("td", { class: "step", title: step.name }, element("b", {}, breakable(step.short)),
        element("span", { class: "note" }, breakable(`${step.op} · ${step.kernel}`)));
    }
    if (column.id === "result") return element("td", {}, step.result ? [shaped(step.result.shape), element("span", { class: "note" }, step.result.dtype)] : "");
    const text = column.text ? column.text(step) : grouped(column.value(step));
    return element("td", { class: "n" }, text, column.bar ? bar(column.value(step), most.get(column.id)) : null);
  };
  const steps = model.steps.filter((step) => matches(step, words)).sort(compare);
  const row = (step) => element("tr", { "data-step": step.index, class: step.index === chosen ? "on" : "" }, on.map((column) => cell(step, column)));
  document.getElementById("step-table").replaceChildren(
    element("thead", {}, element("tr", {}, on.map(head))),
    element("tbody", {}, steps.length ? steps.map(row) : element("tr", {}, element("td", { colspan: on.length }, "No step is called so."))));
}
function sortBy(column) {
  const same = order.column === column.id;
  order.down = same ? !order.down : Boolean(column.bar);
  order.column = column.id;
  renderRows();
  document.querySelector(`#step-table th[data-column="${column.id}"] button`).focus();
}
// Arrow keys go from row to row.
function walk(event) {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!way || event.target.id !== "step-table") return;
  event.preventDefault();
  const rows = [...document.querySelectorAll("#step-table tr[data-step]")];
  const at = rows.findIndex((row) => Number(row.dataset.step) === chosen);
  const next = rows[at < 0 ? (way > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + way))];
  if (!next) return;
  choose(Number(next.dataset.step));
  next.scrollIntoView({ block: "nearest" });
}
