
"use strict";
const $ = (id) => document.getElementById(id);
const LARGEST = 1 << 30, NETWORKS = /\.(tflite|onnx|json|bin)$/i, ARRAYS = /\.(npy|npz)$/i, WEIGHTS = /\.(safetensors|npz)$/i;
const unpacked = (id) => Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));

// One worker at a time; what is asked of it comes back in order.
let worker = null, asked = 0, shown = null;
const waiting = new Map();
async function begin() {
  const stream = new Blob([unpacked("wasm")]).stream().pipeThrough(new DecompressionStream("gzip"));
  const wasm = await new Response(stream).arrayBuffer();
  const source = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
  const made = new Worker(source);
  made.onmessage = ({ data }) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  };
  made.onerror = (event) => {
    for (const done of waiting.values()) done({ good: false, text: `the packer does not start: ${event.message}` });
    waiting.clear();
  };
  made.postMessage({ id: 0, wasm });
  return made;
}
async function ask(message) {
  worker ??= begin();
  const to = await worker, id = ++asked;
  const answer = await new Promise((done) => {
    waiting.set(id, done);
    to.postMessage({ id, ...message });
  });
  const text = answer.text ?? (message.raw && answer.good ? "" : new TextDecoder().decode(answer.bytes));
  if (!answer.good) throw new Error(text);
  return message.raw ? answer.bytes : { ...JSON.parse(text), milliseconds: answer.milliseconds };
}

async function busy(what, work) {
  const since = performance.now();
  const tell = () => { $("status").textContent = `${what} … ${((performance.now() - since) / 1000).toFixed(0)} s`; };
  const clock = setInterval(tell, 1000);
  tell();
  $("stop").hidden = false;
  $("error").hidden = true;
  try {
    $("status").textContent = await work();
  } catch (error) {
    $("error").textContent = error.message;
    $("error").hidden = false;
    $("status").textContent = "";
  }
  clearInterval(clock);
  $("stop").hidden = true;
}

function open(file, weights, files) {
  return busy(`reading ${file}`, async () => {
    for (const id of ["report", "draw", "outputs", "save"]) $(id).hidden = true;
    $("warnings").replaceChildren();
    shown = null;
    const target = $("target").value;
    const answer = await ask({ forget: true, files, request: { do: "open", file, target, weights } });
    shown = answer;
    $("report").srcdoc = answer.page;
    $("report").hidden = $("save").hidden = false;
    const lines = [...answer.warnings, ...(answer.elsewhere ? [`it does not run here: ${answer.elsewhere}`] : [])];
    $("warnings").replaceChildren(...lines.map((line) => element("li", line)));
    const image = answer.summary.inputs.length === 1 && answer.summary.inputs[0].shape.reduce((all, n) => all * n, 1) === 64;
    $("draw").hidden = !image || Boolean(answer.elsewhere);
    if (!$("draw").hidden) clear();
    const how = answer.packed ? "packed" : "read";
    return `${answer.summary.name}: ${how} in ${answer.milliseconds.toFixed(0)} ms, sha256 ${answer.sha256}`;
  });
}
function run(file, files) {
  return busy(`running ${file}`, async () => {
    const answer = await ask({ files, request: { do: "run", file } });
    $("warnings").replaceChildren(...answer.notes.map((note) => element("li", note)));
    show(answer);
    return `${answer.runs.length} run${answer.runs.length === 1 ? "" : "s"} in ${answer.milliseconds.toFixed(1)} ms`;
  });
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
const number = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(5));
// The outputs of each run: ten largest values of few, the first ten of many.
function show({ runs, labels }) {
  const parts = runs.flatMap((outputs, run) => outputs.flatMap(({ name, dtype, shape, sha256, values }) => {
    const head = element("h2", `${runs.length > 1 ? `run ${run}: ` : ""}${name}: ${dtype} [${shape.join(" × ")}]`);
    const table = document.createElement("table"), best = values.indexOf(Math.max(...values));
    let rows = [...values.entries()];
    if (values.length > 10) rows = values.length < 1000 ? rows.sort((a, b) => b[1] - a[1]).slice(0, 10) : rows.slice(0, 10);
    for (const [index, value] of rows) {
      const row = document.createElement("tr");
      row.append(element("td", labels[index] ?? String(index)), element("td", number(value)));
      row.classList.toggle("best", index === best);
      table.append(row);
    }
    head.dataset.sha256 = sha256;
    head.dataset.best = labels[best] ?? String(best);
    return [head, table];
  }));
  $("outputs").replaceChildren(...parts);
  $("outputs").hidden = false;
}

async function take(list) {
  const files = [...list];
  const large = files.find((file) => file.size > LARGEST);
  if (large) return busy("", () => { throw new Error(`${large.name}: it does not end within ${LARGEST} bytes\n  try: pack on the command line`); });
  const network = files.find((file) => NETWORKS.test(file.name)) ?? files.find((file) => !ARRAYS.test(file.name) && !WEIGHTS.test(file.name));
  const read = await Promise.all(files.map(async (file) => [file.name, await file.arrayBuffer()]));
  if (!network) {
    const arrays = files.find((file) => ARRAYS.test(file.name));
    if (arrays && shown) return run(arrays.name, read);
    return busy("", () => { throw new Error(`${files.map((file) => file.name).join(", ")}: no network among them\n  try: a .tflite, .onnx, .json or .bin file, then the inputs`); });
  }
  // Weights that the trace does not name itself.
  const text = /\.json$/i.test(network.name) ? await network.text() : "";
  const weights = files.find((file) => text && file !== network && WEIGHTS.test(file.name) && !text.includes(file.name));
  return open(network.name, weights?.name ?? null, read);
}
const sample = (id) => [$(id).dataset.name, unpacked(id).buffer];
function digits() {
  const files = [...document.querySelectorAll("script[data-name]")].map((part) => sample(part.id));
  return open(files[0][0], null, files);
}
async function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([await ask({ raw: true, request: { do: "model" } })]));
  link.download = "model.bin";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
async function stop() {
  (await worker)?.terminate();
  worker = shown = null;
  const open = [...waiting.values()];
  waiting.clear();
  for (const done of open) done({ good: false, text: "stopped" });
}

// Strokes, in pixels of the canvas.
let strokes = [];
const pen = $("canvas").getContext("2d");
function line(context, points, width) {
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  if (points.length === 1) context.lineTo(points[0][0] + 0.01, points[0][1]);
  context.stroke();
}
function clear() {
  strokes = [];
  pen.clearRect(0, 0, 256, 256);
  $("seen").getContext("2d").clearRect(0, 0, 8, 8);
  $("outputs").hidden = true;
}
// As the data set was made: the digit fills a bitmap of 32 x 32, and a pixel of 8 x 8 is the part of its 4 x 4 that is ink.
function pixels() {
  const side = 32, width = 3.4, all = strokes.flat();
  const [left, top] = [0, 1].map((axis) => Math.min(...all.map((point) => point[axis])));
  const [right, bottom] = [0, 1].map((axis) => Math.max(...all.map((point) => point[axis])));
  const scale = (side - width) / Math.max(right - left, bottom - top, 1);
  const bitmap = new OffscreenCanvas(side, side).getContext("2d");
  bitmap.translate(side / 2, side / 2);
  const place = ([x, y]) => [(x - (left + right) / 2) * scale, (y - (top + bottom) / 2) * scale];
  for (const stroke of strokes) line(bitmap, stroke.map(place), width);
  const ink = bitmap.getImageData(0, 0, side, side).data, cells = new Float32Array(64);
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      if (ink[4 * (y * side + x) + 3] > 127) cells[(y >> 2) * 8 + (x >> 2)] += 1 / 16;
    }
  }
  return cells;
}
// As numpy.save writes an array of f32.
function npy(shape, values) {
  const head = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`;
  const text = head.padEnd(128 - 10 - 1 + Math.ceil(Math.max(0, head.length - 117) / 64) * 64) + "\n";
  const bytes = new Uint8Array(10 + text.length + 4 * values.length), view = new DataView(bytes.buffer);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0]);
  view.setUint16(8, text.length, true);
  bytes.set(new TextEncoder().encode(text), 10);
  values.forEach((value, index) => view.setFloat32(10 + text.length + 4 * index, value, true));
  return bytes.buffer;
}
function look() {
  if (!strokes.length || !shown) return;
  const cells = pixels(), image = new ImageData(8, 8);
  cells.forEach((value, index) => image.data.set([0, 0, 0, 255 * value], 4 * index));
  const seen = $("seen").getContext("2d");
  seen.clearRect(0, 0, 8, 8);
  seen.putImageData(image, 0, 0);
  return run("drawn.npy", [["drawn.npy", npy(shown.summary.inputs[0].shape, cells)]]);
}

$("canvas").addEventListener("pointerdown", (event) => {
  $("canvas").setPointerCapture(event.pointerId);
  strokes.push([[event.offsetX, event.offsetY]]);
});
$("canvas").addEventListener("pointermove", (event) => {
  if (!event.buttons || !strokes.length) return;
  strokes.at(-1).push([event.offsetX, event.offsetY]);
  line(pen, strokes.at(-1).slice(-2), 16);
});
$("canvas").addEventListener("pointerup", look);
$("clear").addEventListener("click", clear);
$("digits").addEventListener("click", digits);
$("save").addEventListener("click", save);
$("stop").addEventListener("click", stop);
$("files").addEventListener("change", async () => {
  await take($("files").files);
  $("files").value = "";
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") take(event.dataTransfer.files);
  });
}
