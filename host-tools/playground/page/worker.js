
"use strict";
// The other end of the library: it is started again after a panic, which leaves its memory in doubt.
let module = null, library = null;
function start() {
  library = new WebAssembly.Instance(module, {}).exports;
  library.start();
}
function put(bytes) {
  const at = library.room(bytes.length);
  new Uint8Array(library.memory.buffer, at, bytes.length).set(bytes);
}
function give(name, content) {
  const head = new TextEncoder().encode(name), file = new Uint8Array(head.length + content.byteLength);
  file.set(head);
  file.set(new Uint8Array(content), head.length);
  put(file);
  library.give(head.length);
}
function answer() {
  return new Uint8Array(library.memory.buffer, library.answer_at(), library.answer_bytes()).slice();
}
function serve({ wasm, forget, files, request }) {
  if (wasm) {
    module = new WebAssembly.Module(wasm);
    return { good: true };
  }
  if (!library) start();
  if (forget) library.forget();
  for (const [name, content] of files ?? []) give(name, content);
  put(new TextEncoder().encode(JSON.stringify(request)));
  const begin = performance.now(), good = library.call() === 1, milliseconds = performance.now() - begin;
  return { good, milliseconds, bytes: answer() };
}
onmessage = ({ data }) => {
  let result;
  try {
    result = serve(data);
  } catch (error) {
    let words = "";
    try {
      library.last_words();
      words = new TextDecoder().decode(answer());
    } catch { /* Not even that is left. */ }
    library = null;
    const lost = `this page ran out of memory or of stack: ${error.message}\n  try: pack on the command line, which has more of both`;
    result = { good: false, text: words ? `a defect of the packer: ${words}\n  try: please report it, with the file` : lost };
  }
  postMessage({ id: data.id, ...result });
};
