// The first screen: a sentence, three figures, a choice of chips.
const isChip = (chip) => chip.mhz !== null;
const isFast = (chip) => chip.fits && chip.milliseconds != null;
let chipName = null;

function chipOf(of) {
  const { chips } = of;
  return chips.find((chip) => chip.chip === chipName)
    ?? chips.find((chip) => isChip(chip) && isFast(chip) && chip.target === of.target)
    ?? chips.find((chip) => isChip(chip) && isFast(chip))
    ?? chips.find((chip) => isChip(chip) && chip.fits) ?? chips[0];
}
function latency(chip, of) {
  if (chip.milliseconds != null) return { value: `${significant(chip.milliseconds)} ms`, note: `estimated, ${chip.chip} at ${chip.mhz} MHz` };
  if (!isChip(chip)) return { value: "—", note: `${chip.chip} is emulated: it has no clock` };
  return { value: "—", note: `no estimate for ${of.target} kernels: pack --target ${chip.target}` };
}
function verdict(of, chip) {
  const chips = of.chips.filter(isChip), fits = chips.filter((one) => one.fits).length;
  const all = fits === chips.length ? `all ${fits}` : `${fits} of ${chips.length}`;
  const time = chip.milliseconds != null && chip.fits ? `, where a run takes about ${significant(chip.milliseconds)} ms` : "";
  const here = chip.fits
    ? `It fits the ${chip.chip}${time}, with ${sized(chip.ram_bytes)} of ${sized(chip.ram_capacity_bytes)} of RAM.`
    : `It does not fit the ${chip.chip}.`;
  return `This ${of.dtype} network fits ${all} chips of the list. ${here}`;
}
function figure(id, title, value, note, state) {
  return element("div", { id, class: `figure ${state ?? ""}` },
    element("span", {}, title), element("b", {}, value), element("span", { class: "note" }, note));
}
function meter(name, part, of) {
  return element("div", { class: "memory" },
    element("span", {}, name), bar(part, of), element("span", { class: "note" }, `${sized(part)} of ${sized(of)}`));
}
function figures(of, chip) {
  const chips = of.chips.filter(isChip), fits = chips.filter((one) => one.fits).length;
  const time = latency(chip, of), known = of.accuracy;
  const interval = () => `95 % interval ${known.interval.map((end) => (100 * end).toFixed(1)).join(" to ")} %`;
  const accuracy = known
    ? [percent(known.correct / known.samples), `${grouped(known.correct)} of ${grouped(known.samples)} right on ${known.on}; ${interval()}`]
    : ["—", "not evaluated: --inputs X.npy --labels Y.npy"];
  return element("div", { class: "figures" },
    figure("fits", "chips that it fits", `${fits} of ${chips.length}`, `${chip.chip} is ${chip.fits ? "" : "not "}one of them`, chip.fits ? "good" : "bad"),
    figure("time", "time of a run", time.value, time.note),
    figure("accuracy", "accuracy", accuracy[0], accuracy[1]));
}
function chipTable(of, chip) {
  const enter = (one) => (event) => { if (event.key === "Enter") pickChip(one.chip); };
  const row = (one) => element("tr",
    { class: one === chip ? "on" : "", "data-chip": one.chip, tabindex: "0", onclick: () => pickChip(one.chip), onkeydown: enter(one) },
    element("td", {}, element("b", {}, one.chip), element("span", { class: "note" }, one.core)),
    element("td", { class: one.fits ? "good" : "bad" }, one.fits ? "fits" : "no"),
    element("td", { class: "n" }, one.milliseconds != null ? `${significant(one.milliseconds)} ms` : "—"),
    element("td", {}, bar(one.flash_bytes, one.flash_capacity_bytes), element("span", { class: "note" }, sized(one.flash_capacity_bytes))),
    element("td", {}, bar(one.ram_bytes, one.ram_capacity_bytes), element("span", { class: "note" }, sized(one.ram_capacity_bytes))));
  return element("table", { id: "chips" },
    element("thead", {}, element("tr", {}, ["chip", "fits", "run", "flash", "RAM"].map((name) => element("th", {}, name)))),
    element("tbody", {}, of.chips.map(row)));
}
function pickChip(name) {
  chipName = name;
  renderSummary();
  if (models.length > 1) renderCompare();
}

function renderSummary() {
  const chip = chipOf(model);
  const group = (label, chips) => element("optgroup", { label }, chips.map((one) =>
    element("option", { value: one.chip, selected: one === chip }, `${one.chip}${one.fits ? "" : " (does not fit)"}`)));
  const choice = element("select", { id: "chip", onchange: (event) => pickChip(event.target.value) },
    group("chips", model.chips.filter(isChip)), group("emulated boards", model.chips.filter((one) => !isChip(one))));
  const open = document.querySelector("#all-chips")?.open ?? false;
  const port = (kind) => (one) => element("li", {}, element("b", {}, kind), ` ${one.dtype} ${shaped(one.shape)} `,
    element("span", { class: "name", title: one.name }, breakable(short(one.name))));
  const facts = [
    ["arena", `${grouped(model.arena_bytes)} bytes`, model.proven ? "proven minimal for this order" : `at least ${grouped(model.lower_bound)}`],
    ["file", `${grouped(model.model_bytes)} bytes`, `${grouped(model.weights_bytes)} of them weights`],
    ["MACs", grouped(model.macs), `${grouped(model.params)} parameters`],
    ["steps", grouped(model.steps.length), `kernels for ${model.target}`],
    ...(model.state_bytes ? [["state", `${grouped(model.state_bytes)} bytes`, "kept from run to run"]] : []),
    ...(model.stack ? [["stack", model.stack, ""]] : []),
  ];
  put("summary",
    element("h1", {}, breakable(model.name)),
    element("p", { id: "verdict", class: chip.fits ? "good" : "bad" }, verdict(model, chip)),
    element("p", { class: "controls" }, element("label", {}, "Chip ", choice)),
    figures(model, chip),
    chip.reasons.length ? element("ul", { id: "reasons" }, chip.reasons.map((reason) => element("li", {}, breakable(reason)))) : null,
    element("div", { class: "memories" }, meter("flash", chip.flash_bytes, chip.flash_capacity_bytes), meter("RAM", chip.ram_bytes, chip.ram_capacity_bytes)),
    element("details", { id: "all-chips", open }, element("summary", {}, "All chips"), chipTable(model, chip)),
    element("dl", { class: "facts" }, facts.map(([term, value, note]) =>
      element("div", {}, element("dt", {}, term), element("dd", {}, value), note ? element("dd", { class: "note" }, note) : null))),
    element("ul", { class: "ports" }, model.inputs.map(port("input")), model.outputs.map(port("output"))));
}
// Names of inputs and outputs have no neighbours to be told from: their ends are kept.
function short(name) {
  const letters = [...name.replace(/[\p{Cc}\p{Cf}]/gu, " ")];
  return letters.length <= 28 ? letters.join("") : `${letters.slice(0, 13).join("")}…${letters.slice(-14).join("")}`;
}
