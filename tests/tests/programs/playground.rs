//! The playground in a browser: the page of `cargo xtask playground`, asked over DevTools with files, clicks and a drawn digit.
//! Its packed files and outputs are compared with those of this host, byte by byte.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use arenite::DType;
use arenite_host::model::{self, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_tests::browser::{Browser, MISSING};
use arenite_tests::{digits_options, programs, shared, skip};
use arenite_xtask::playground;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Of TensorFlow Lite's operators every so many-th model goes through the page.
const STRIDE: usize = 9;

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The page in a browser.
struct Page {
    browser: Browser,
    folder: tempfile::TempDir,
}

impl Page {
    /// `None`, and a line that says why, where there is no browser or no compiler for it.
    fn open(test: &str) -> Option<Self> {
        if !Browser::is_there() {
            skip(test, MISSING);
            return None;
        }
        let asked = ["--print", "target-libdir", "--target", playground::TRIPLE];
        let libraries = Command::new("rustc").args(asked).output().expect("rustc starts").stdout;
        if !Path::new(String::from_utf8_lossy(&libraries).trim()).is_dir() {
            skip(test, "no target: rustup target add wasm32-unknown-unknown");
            return None;
        }
        let target = programs().parent().expect("a folder").to_owned();
        let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(playground::BUILD)
            .arg("--target-dir")
            .arg(&target)
            .current_dir(models().join("../.."))
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .status();
        assert!(built.expect("cargo starts").success());
        let folder = tempfile::tempdir().expect("a folder");
        let page = playground::make(&playground::library(&target), folder.path()).expect("a page");
        let mut browser = Browser::open(folder.path(), &page).expect("it was there");
        // Shown results are kept: of an output with NaNs the hash says nothing.
        browser.value("show = ((shown) => (ran) => { globalThis.ran = ran; shown(ran); })(show); 1");
        Some(Self { browser, folder })
    }

    fn value(&mut self, expression: &str) -> Value {
        self.browser.value(expression)
    }

    /// Does something and waits for what the page says of it: a status, or what is wrong.
    fn after(&mut self, doing: impl FnOnce(&mut Browser)) -> Result<String, String> {
        self.value("$('status').textContent = $('error').textContent = ''; $('error').hidden = true");
        doing(&mut self.browser);
        loop {
            let said = self.value(
                "$('stop').hidden && ($('status').textContent ? ['Ok', $('status').textContent] : \
                 !$('error').hidden && ['Err', $('error').textContent])",
            );
            match (said[0].as_str(), said[1].as_str()) {
                (Some("Ok"), Some(text)) => return Ok(text.to_owned()),
                (Some(_), Some(text)) => return Err(text.to_owned()),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Chooses files as a person does.
    fn choose(&mut self, files: &[&Path]) -> Result<String, String> {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        self.after(|browser| {
            let input = browser.ask("Runtime.evaluate", json!({"expression": "$('files')"}));
            let chosen = json!({"files": files, "objectId": input["result"]["objectId"]});
            browser.ask("DOM.setFileInputFiles", chosen);
        })
    }

    /// Returns the hashes of the last run's outputs.
    fn outputs(&mut self) -> Vec<String> {
        let shown = self.value("[...document.querySelectorAll('#outputs h2')].map(head => head.dataset.sha256)");
        serde_json::from_value(shown).expect("hashes")
    }

    /// Numbers of the outputs of the last run's first inputs: of each the first ones, NaN and infinity as `null`.
    fn values(&mut self) -> Vec<Value> {
        let values = self.value("ran.runs[0].map((output) => output.values)");
        serde_json::from_value(values).expect("numbers")
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    }
}

/// A file that this host packs, or what is wrong with it, without the folder that it is in.
fn packed(input: &Path, folder: &Path) -> Result<ModelFile, String> {
    let options = Options::new(input, folder.join("host.bin"));
    let parent = input.parent().expect("a folder").display().to_string() + "/";
    let done = pack(&options, &mut |_, _, _| {});
    done.map_err(|error| error.to_string().replace(&parent, ""))?;
    Ok(ModelFile::open(&options.output).expect("written"))
}

/// An array as `numpy.save` writes it.
fn npy(dtype: DType, shape: &[u32], bytes: &[u8]) -> Option<Vec<u8>> {
    let descr = match dtype {
        DType::F32 => "<f4",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        _ => return None,
    };
    let shape: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let text = format!("{head:<117}\n");
    let length = u16::try_from(text.len()).expect("short").to_le_bytes();
    Some([&b"\x93NUMPY\x01\0"[..], &length, text.as_bytes(), bytes].concat())
}

/// Bytes that look like nothing.
fn noise(dtype: DType, count: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    match dtype {
        DType::F32 => (0..count / 4)
            .flat_map(|_| (f32::from(next()) / 64.0 - 2.0).to_le_bytes())
            .collect(),
        _ => (0..count).map(|_| next()).collect(),
    }
}

fn of_host(file: &ModelFile, inputs: Vec<Vec<u8>>) -> Vec<String> {
    outputs_of_host(file, inputs).iter().map(|output| hex(output)).collect()
}

fn outputs_of_host(file: &ModelFile, inputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let model = file.load().expect("it loads");
    let outputs = model::run(&model, &[inputs], false, &mut |_, _, _| {}).expect("it runs");
    outputs.into_iter().next().expect("a run")
}

/// A file through the page: packed as here; where it has one input, run on noise as here. Whether it ran.
fn through(page: &mut Page, input: &Path) -> bool {
    let said = page.choose(&[input]);
    let host = packed(input, page.folder.path());
    let (said, host) = match (said, host) {
        (Ok(said), Ok(host)) => (said, host),
        (said, host) => {
            assert_eq!(said.err(), host.err(), "{}", input.display());
            return false;
        }
    };
    assert!(said.contains(&hex(host.whole())), "{}: {said}", input.display());
    let view = host.view().expect("intact");
    let [port] = &view.inputs[..] else { return false };
    let bytes = noise(port.dtype, port.bytes().expect("a size") as usize);
    let Some(array) = npy(port.dtype, &port.shape, &bytes) else {
        return false;
    };
    let array = page.write("x.npy", &array);
    page.choose(&[&array])
        .unwrap_or_else(|e| panic!("{}: {e}", input.display()));
    let expected = outputs_of_host(&host, vec![bytes]);
    let dtypes = view.outputs.iter().map(|port| port.dtype);
    let (hashes, values) = (page.outputs(), page.values());
    assert_eq!(hashes.len(), expected.len(), "{}", input.display());
    for (port, (dtype, bytes)) in dtypes.zip(&expected).enumerate() {
        let what = format!("{}, output {port}", input.display());
        // The bits of a NaN are the processor's: `docs/operators.md`.
        match reals(dtype, bytes).filter(|reals| reals.iter().any(|x| x.is_nan())) {
            Some(reals) => same_but_for_nans(&what, &values[port], &reals),
            None => assert_eq!(hashes[port], hex(bytes), "{what}"),
        }
    }
    true
}

/// Numbers of an f32 output.
fn reals(dtype: DType, bytes: &[u8]) -> Option<Vec<f32>> {
    let words = bytes.as_chunks().0.iter();
    (dtype == DType::F32).then(|| words.map(|word| f32::from_le_bytes(*word)).collect())
}

/// Compares numbers of the page with the host's: equal where they are finite, `null` (JSON has nothing else) where they are not.
fn same_but_for_nans(what: &str, page: &Value, host: &[f32]) {
    let page = page.as_array().expect("numbers");
    // The page tells the first ones of a larger output.
    assert_eq!(page.len(), host.len(), "{what}: the page tells fewer");
    for (at, (found, expected)) in page.iter().zip(host).enumerate() {
        let same = match found.as_f64() {
            Some(found) => found as f32 == *expected,
            None => found.is_null() && !expected.is_finite(),
        };
        assert!(same, "{what}, element {at}: {found} instead of {expected}");
    }
}

#[test]
fn numbers_beside_a_nan_are_compared() {
    let host = [1.5, f32::NAN, -2.0, f32::NEG_INFINITY];
    same_but_for_nans("equal", &json!([1.5, null, -2.0, null]), &host);
    for other in [
        json!([1.5, 2.0, -2.0, null]),
        json!([1.5, null, 2.0, null]),
        json!([null, null, -2.0, null]),
        json!([1.5, null, -2.0]),
    ] {
        let compared = std::panic::catch_unwind(|| same_but_for_nans("different", &other, &host));
        assert!(compared.is_err(), "{other}");
    }
}

#[test]
#[ignore = "long: builds the packer for browsers"]
fn files_are_packed_and_run_as_on_the_host() {
    let Some(mut page) = Page::open("files in the playground") else {
        return;
    };
    let mut files: Vec<PathBuf> = fs::read_dir(models().join("tflite_ops"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tflite"))
        .collect();
    files.sort();
    let mut files: Vec<PathBuf> = files.into_iter().step_by(STRIDE).collect();
    for name in ["abs", "alone_gemm", "alone_convolutions"] {
        files.push(models().join("onnx").join(name).join("model.onnx"));
    }
    match shared() {
        Some(shared) => {
            let large = ["vww_96_int8", "kws_ref_model", "pretrainedResnet_quant", "ad01_fp32"];
            files.extend(large.map(|name| shared.join(format!("data/models/{name}.tflite"))));
        }
        None => skip("large models in the playground", "no shared data"),
    }
    let ran = files.iter().filter(|file| through(&mut page, file)).count();
    assert!(ran > 40, "{ran} of {} ran", files.len());
    eprintln!("{ran} models ran as on this host");
}

#[test]
#[ignore = "long: builds the packer for browsers"]
fn the_digits_are_drawn_and_nothing_leaves_the_page() {
    let Some(mut page) = Page::open("the digits in the playground") else {
        return;
    };
    let options = digits_options("digits", &page.folder.path().join("digits.bin"));
    let steps = pack(&options, &mut |_, _, _| {}).expect("it packs").summary.steps;
    let host = ModelFile::open(&options.output).expect("written");
    let said = page.after(|browser| browser.click("#digits")).expect("it packs");
    assert!(said.contains("packed") && said.contains(&hex(host.whole())), "{said}");

    // The report in the page answers clicks.
    let report = "$('report').contentDocument";
    while page.value(&format!("{report}.querySelectorAll('#steps tbody tr').length")) != steps {
        std::thread::sleep(Duration::from_millis(5));
    }
    let place = page.value(&format!(
        "(() => {{ const e = {report}.querySelector(\"svg.graph g.node[data-step='2']\"); e.scrollIntoView({{block: 'center'}});
           $('report').scrollIntoView(); const r = e.getBoundingClientRect(), f = $('report').getBoundingClientRect();
           return [f.x + r.x + r.width / 2, f.y + r.y + r.height / 2]; }})()"
    ));
    page.browser.mouse("mousePressed", &place);
    page.browser.mouse("mouseReleased", &place);
    let shown = page.value(&format!("{report}.querySelector('#detail.open')?.dataset.shows"));
    assert_eq!(shown, "2");

    // A ring and a stroke.
    let ring: Vec<(f64, f64)> = (0..=24)
        .map(|part| f64::from(part) / 24.0 * std::f64::consts::TAU)
        .map(|angle| (128.0 + 55.0 * angle.sin(), 128.0 - 95.0 * angle.cos()))
        .collect();
    let stroke: Vec<(f64, f64)> = (0..=8).map(|part| (128.0, 30.0 + 24.0 * f64::from(part))).collect();
    for (points, digit) in [(ring, "0"), (stroke, "1")] {
        page.browser.click("#clear");
        let corner = page.value(
            "(() => { $('draw').scrollIntoView(); const r = $('canvas').getBoundingClientRect(); return [r.x, r.y]; })()",
        );
        let at = |(x, y): (f64, f64)| {
            let from = |axis: usize| corner[axis].as_f64().expect("a place");
            json!([from(0) + x, from(1) + y])
        };
        let (first, last) = (at(points[0]), at(points[points.len() - 1]));
        page.browser.mouse("mousePressed", &first);
        for &point in &points {
            page.browser.mouse("mouseMoved", &at(point));
        }
        page.after(|browser| browser.mouse("mouseReleased", &last))
            .expect("it runs");
        assert_eq!(page.value("document.querySelector('#outputs h2').dataset.best"), digit);
        let pixels: Vec<f32> = serde_json::from_value(page.value("[...pixels()]")).expect("64 numbers");
        let bytes = pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
        assert_eq!(page.outputs(), of_host(&host, vec![bytes]));
    }
    // A model file that was made before, and a file of many inputs.
    assert!(page.choose(&[&options.output]).expect("it opens").contains("read in"));
    let images = models().join("digits/test_images.npy");
    assert!(page.choose(&[&images]).expect("it runs").starts_with("100 runs"));
    let bytes = fs::read(&images).expect("readable");
    let expected: Vec<String> = bytes[128..]
        .chunks(256)
        .take(100)
        .flat_map(|image| of_host(&host, vec![image.to_vec()]))
        .collect();
    assert_eq!(page.outputs(), expected);

    nothing_leaves(&mut page);
}

/// Whatever a script of the page tries, nobody hears of it.
fn nothing_leaves(page: &mut Page) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (heard, hears) = mpsc::channel();
    std::thread::spawn(move || {
        // Whoever gets through is answered, so that a page that may send is found out and does not wait.
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut asked = [0; 200];
            let length = stream.read(&mut asked).unwrap_or(0);
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n\r\n");
            let _ = heard.send(String::from_utf8_lossy(&asked[..length]).into_owned());
        }
    });
    let to = format!("http://{address}");
    let tries = format!(
        "(async () => {{
            const refused = [];
            await fetch('{to}/fetch').catch(() => refused.push('fetch'));
            await new Promise((done) => {{ const i = new Image(); i.onload = i.onerror = done; i.src = '{to}/image'; }});
            const form = document.createElement('form'); form.action = '{to}/form'; document.body.append(form); form.submit();
            const text = \"fetch('{to}/worker').then(() => postMessage('sent'), () => postMessage('worker'))\";
            const worker = new Worker(URL.createObjectURL(new Blob([text])));
            refused.push(await new Promise((done) => {{ worker.onmessage = (event) => done(event.data); }}));
            try {{ new WebSocket('{to}'.replace('http', 'ws')); }} catch {{ refused.push('socket'); }}
            const script = document.createElement('script'); script.textContent = 'globalThis.injected = 1'; document.body.append(script);
            return [...refused, typeof injected];
        }})()"
    );
    let refused = page.value(&tries);
    let refused: Vec<&str> = refused
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(refused.starts_with(&["fetch", "worker"]), "{refused:?}");
    assert_eq!(
        refused.last(),
        Some(&"undefined"),
        "a script ran that the policy does not name"
    );
    // Messages on their way have arrived when this connection has.
    let mut last = TcpStream::connect(address).expect("it listens");
    last.write_all(b"LAST").expect("sent");
    let first = hears.recv().expect("it listens");
    assert_eq!(first, "LAST", "the page reached somebody");
    // The page itself, once; what it makes in memory is no request, and what was tried just now went nowhere.
    let outside = |url: &&String| !url.starts_with("blob:") && !url.starts_with(&to) && *url != "about:srcdoc";
    let asked: Vec<&String> = page.browser.requests().iter().filter(outside).collect();
    assert!(
        matches!(asked[..], [page] if page.ends_with("/index.html")),
        "{asked:?}"
    );
}

/// Damaged files, and one that names its tensors with markup.
#[test]
#[ignore = "long: builds the packer for browsers"]
fn what_is_wrong_with_a_file_is_said_and_the_page_lives() {
    let Some(mut page) = Page::open("hostile files in the playground") else {
        return;
    };
    let network = fs::read(models().join("tflite_ops/add_int8.tflite")).expect("readable");
    let model = packed(&models().join("tflite_ops/add_int8.tflite"), page.folder.path()).expect("it packs");
    let mut flipped = model.whole().to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x40;
    let onnx = fs::read(models().join("onnx/alone_gemm/model.onnx")).expect("readable");
    for (name, bytes) in [
        ("cut.tflite", &network[..network.len() / 2]),
        ("empty.tflite", &[]),
        ("noise.tflite", &noise(DType::U8, 4000)),
        ("cut.onnx", &onnx[..onnx.len() / 2]),
        ("words.json", b"{\"arenite_trace\": 1, \"name\": "),
        ("numbers.json", b"[1, 2, 3]"),
    ] {
        let path = page.write(name, bytes);
        let host = packed(&path, page.folder.path()).err().expect("it is wrong");
        assert_eq!(page.choose(&[&path]).expect_err(name), host);
    }
    let path = page.write("flipped.bin", &flipped);
    let host = ModelFile::open(&path)
        .expect("there")
        .load()
        .map(|_| ())
        .expect_err("it is damaged");
    let parent = page.folder.path().display().to_string() + "/";
    assert_eq!(
        page.choose(&[&path]).expect_err("damaged"),
        host.to_string().replace(&parent, "")
    );
    let lost = page
        .choose(&[&models().join("digits/digits.trace.json")])
        .expect_err("without its weights");
    assert!(
        lost.contains("no file of this name was given") && lost.contains("the trace names this file"),
        "{lost}"
    );
    let alone = page
        .choose(&[&models().join("digits/digits.safetensors")])
        .expect_err("no network");
    assert!(alone.contains("no network among them"), "{alone}");

    // Names that are markup stay text.
    let trace = fs::read_to_string(models().join("digits/digits.trace.json")).expect("readable");
    let evil = "<img src=x onerror=parent.hacked=1><script>parent.hacked=1<\\/script>";
    let trace = page.write(
        "evil.json",
        trace.replace("\"relu1\"", &format!("\"{evil}\"")).as_bytes(),
    );
    let weights = ["digits.safetensors", "digits.samples.safetensors"].map(|name| models().join("digits").join(name));
    page.choose(&[&trace, &weights[0], &weights[1]]).expect("it packs");
    while page.value("$('report').contentDocument.querySelectorAll('#steps tbody tr').length") == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        page.value("[typeof hacked, $('report').contentDocument.querySelectorAll('img').length]"),
        json!(["undefined", 0])
    );

    // A panic of the library: from its own function for memory, asked for more than there can be.
    page.value(
        "stop(); $('worker').textContent += `; const real = put; let first = true;
         put = (bytes) => { if (first) { first = false; library.room(0xffffffff); } return real(bytes); };`; 1",
    );
    let panic = page.after(|browser| browser.click("#digits")).expect_err("a panic");
    assert!(
        panic.contains("a defect of the packer") && panic.contains("capacity overflow"),
        "{panic}"
    );
    // The same worker starts the library anew.
    page.after(|browser| browser.click("#digits")).expect("it packs again");
    // An end without a word: memory for which there is no room.
    page.value("stop(); $('worker').textContent = $('worker').textContent.replace('0xffffffff', '0x7ffffff0'); 1");
    let lost = page.after(|browser| browser.click("#digits")).expect_err("no memory");
    assert!(lost.contains("ran out of memory"), "{lost}");
    page.after(|browser| browser.click("#digits")).expect("it packs again");
}
