// The page is put together, and drawn anew where its width, its theme or its model changes.
const PARTS = [["steps", "Steps"], ["graph", "Graph"], ["arena", "Arena"], ["weights", "Weights"], ["made", "How it was made"]];

function renderMade() {
  const row = ([term, text]) => element("tr", {}, element("th", { scope: "row" }, term), element("td", {}, breakable(text)));
  put("made", element("h2", {}, "How it was made"),
    element("table", { class: "made" }, element("tbody", {}, [
      ["packed", `${model.dialect}, ${model.dtype}, batch ${model.batch}, for ${model.target}, by ${model.tool}`],
      ...model.made].map(row),
      element("tr", {}, element("th", { scope: "row" }, "input"),
        element("td", { title: model.sha256 }, "sha256 ", element("code", {}, `${model.sha256.slice(0, 16)}…`))))),
    element("details", { id: "lacks" }, element("summary", {}, "What this page lacks"),
      element("ul", {}, model.lacks.map(([what, command]) => element("li", {}, `${what}: `, element("code", {}, command))))));
}
function render() {
  choose(null);
  columnsOn = null;
  for (const draw of [renderSummary, renderSteps, renderGraph, renderArena, renderWeights, renderMade]) draw();
  if (models.length > 1) renderCompare();
}
function build() {
  const parts = models.length > 1 ? [["compare", "Side by side"], ...PARTS] : PARTS;
  const go = ([id, title]) => element("button", { type: "button", onclick: () => document.getElementById(id).scrollIntoView() }, title);
  const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const turn = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; };
  const theme = element("button", { type: "button", id: "theme", title: "Dark or light", "aria-label": "Dark or light", onclick: turn }, "◐");
  const choice = models.length > 1
    ? element("select", { id: "model", "aria-label": "Model", onchange: (event) => { model = models[Number(event.target.value)]; render(); } },
      models.map((of, index) => element("option", { value: index }, `${index + 1}: ${short(of.name)}`)))
    : null;
  document.getElementById("page").append(
    element("nav", {}, choice, parts.map(go), theme),
    element("section", { id: "summary" }),
    ...parts.map(([id]) => element("section", { id })));
}
build();
render();

document.addEventListener("click", (event) => {
  const part = event.target.closest("[data-step]");
  if (part) choose(Number(part.dataset.step));
  else if (!event.target.closest("#detail, button, input, select, summary, label")) choose(null);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose(null);
  if (event.key === "/" && !event.target.closest("input, select")) {
    event.preventDefault();
    document.getElementById("find-step").focus();
  }
});
// Pictures are as wide as the page.
const page = document.getElementById("page");
let drawn = page.clientWidth;
new ResizeObserver(() => {
  if (page.clientWidth === drawn) return;
  drawn = page.clientWidth;
  renderSteps();
  begin();
  renderArena();
  renderWeights();
  if (models.length > 1) renderCompare();
}).observe(page);
