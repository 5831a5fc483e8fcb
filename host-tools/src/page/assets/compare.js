// Two models side by side: figures, their difference, operators, arenas on one scale.
function compared(name, values, text, less = true) {
  const [a, b] = values;
  const known = a != null && b != null, ratio = known && a ? b / a - 1 : null;
  const better = ratio === null || Math.abs(ratio) < 0.0005 ? "" : (ratio < 0) === less ? "good" : "bad";
  const change = ratio === null ? "—" : Math.abs(ratio) < 0.0005 ? "same" : `${ratio > 0 ? "+" : "−"}${Math.abs(100 * ratio).toFixed(1)} %`;
  const cells = values.map((value) => element("td", { class: "n" }, value == null ? "—" : text(value)));
  return element("tr", {}, element("th", { scope: "row" }, name), cells, element("td", { class: `n ${better}` }, change));
}
function renderCompare() {
  const part = document.getElementById("compare");
  const chips = models.map((of) => of.chips.find((chip) => chip.chip === chipOf(model).chip));
  const each = (of) => models.map(of);
  const kinds = [...new Set(models.flatMap((of) => of.steps.map((step) => step.op)))].sort();
  const parts = (kind) => models.map((of) => of.steps.filter((step) => step.op === kind).reduce((all, step) => all + share(step, of), 0));
  const most = largest(models.flatMap((of) => of.regions.map((region) => region.bytes)));
  const room = part.clientWidth, half = room > 800 ? Math.floor((room - 20) / 2) : room;
  const wide = half - 2, same = new Set(models.map(costOf)).size === 1;
  const head = models.map((of) => element("th", { class: "n" }, breakable(short(of.name))));
  const kindRow = (kind) => element("tr", {}, element("th", { scope: "row" }, breakable(kind)),
    parts(kind).map((value) => element("td", { class: "n" }, percent(value), bar(value, 1))));
  const arena = (of) => element("figure", {}, element("figcaption", {}, breakable(short(of.name))),
    element("div", { class: "frame plot", tabindex: "0", "aria-label": `Arena of ${of.name}` }, of.regions.map((_, region) => plot(of, region, wide, most))));
  put("compare", element("h2", {}, "Side by side"),
    element("table", { id: "compared" },
      element("thead", {}, element("tr", {}, element("th", {}, ""), head, element("th", { class: "n" }, "change"))),
      element("tbody", {},
        compared(`run, ${chips[0].chip}`, chips.map((chip) => chip.milliseconds), (ms) => `${significant(ms)} ms`),
        compared("RAM there", chips.map((chip) => chip.ram_bytes), grouped), compared("flash there", chips.map((chip) => chip.flash_bytes), grouped),
        compared("accuracy", each((of) => of.accuracy && of.accuracy.correct / of.accuracy.samples), percent, false),
        compared("arena", each((of) => of.arena_bytes), grouped), compared("file", each((of) => of.model_bytes), grouped),
        compared("weights", each((of) => of.weights_bytes), grouped), compared("MACs", each((of) => of.macs), grouped),
        compared("cost", each((of) => (same ? totalCost(of) : null)), grouped), compared("steps", each((of) => of.steps.length), grouped))),
    element("h3", {}, "Cost by operator"),
    element("table", { class: "kinds" }, element("tbody", {}, kinds.map(kindRow))),
    element("h3", {}, "Arenas on one scale"),
    element("div", { class: "pair" }, models.map(arena)));
  // Boxes of this section are of both models: they stand for no step of the one that is shown.
  for (const made of part.querySelectorAll("[data-step]")) delete made.dataset.step;
}
