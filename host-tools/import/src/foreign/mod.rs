//! Files that are no networks for `pack`, but that people have at hand: what they are, and the command that makes what `pack` reads.

mod archive;

use std::path::Path;

use arenite::{Bundle, Header, LoadError};

use crate::error::{Error, Result};

/// Description of a file, and advice. In the second `{file}` stands for the file.
type Told = (&'static str, &'static str);

/// A form of files.
struct Form {
    /// Whether a file of this name and content is one.
    is: fn(&Name<'_>, &[u8]) -> bool,
    told: Told,
}

/// A file's name.
struct Name<'a>(&'a Path);

impl Name<'_> {
    fn ends(&self, ending: &str) -> bool {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        name.to_ascii_lowercase().ends_with(ending)
    }
}

const WEIGHTS: Told = (
    "it holds weights and no network",
    "pass the network itself, and this file with --weights",
);
const KERAS_WEIGHTS: Told = (
    "it holds weights of a Keras model and no network",
    "load them in Python and convert the model: model.load_weights(\"{file}\"), then tf.lite.TFLiteConverter.from_keras_model(model).convert()",
);
const DAMAGED: &str = "the file is damaged or cut off: fetch or convert it again";

/// From the surest sign to a mere name.
const FORMS: [Form; 26] = [
    Form {
        is: |name, content| content.starts_with(b"\x89HDF\r\n\x1a\n") && name.ends(".weights.h5"),
        told: KERAS_WEIGHTS,
    },
    Form {
        is: |_, content| content.starts_with(b"\x89HDF\r\n\x1a\n"),
        told: (
            "it is an HDF5 file, as Keras saves models",
            "convert it: tf.lite.TFLiteConverter.from_keras_model(keras.models.load_model(\"{file}\")).convert() gives a .tflite file",
        ),
    },
    Form {
        is: |_, content| content.starts_with(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."),
        told: (
            "it is a file of torch.save from before PyTorch 1.6",
            "load it in Python, its class beside it, and export it: arenite_trace or torch.onnx.export",
        ),
    },
    Form {
        is: |_, content| matches!(content, [0x80, 2..=5, ..]),
        told: (
            "it is a Python pickle, as scikit-learn and old PyTorch save models",
            "load it in Python and export it: arenite_trace or torch.onnx.export for PyTorch, skl2onnx for scikit-learn",
        ),
    },
    Form {
        is: |_, content| is_packed(content),
        told: (
            "it is packed already",
            "load it on the device as it is: `arenite inspect {file}` says what it holds; to pack it otherwise, pack the network that it was made of",
        ),
    },
    Form {
        is: |_, content| content.get(4..8).is_some_and(|mark| mark == b"ORTM"),
        told: (
            "it is a network of ONNX Runtime's own format (.ort)",
            "pack the .onnx file that it was made of: {file} does not turn back into one",
        ),
    },
    Form {
        is: |_, content| matches!(content.get(4..8), Some([b'E', b'T', b'0'..=b'9', b'0'..=b'9'])),
        told: (
            "it is a program of ExecuTorch (.pte)",
            "export the PyTorch module that it was made of: arenite_trace or torch.onnx.export; {file} does not turn back into one",
        ),
    },
    Form {
        is: |_, content| is_safetensors(content),
        told: WEIGHTS,
    },
    Form {
        is: |_, content| is_saved_model(content),
        told: (
            "it is the network of a TensorFlow SavedModel",
            "convert the folder that it lies in: tf.lite.TFLiteConverter.from_saved_model(FOLDER).convert(), or \
             python -m tf2onnx.convert --saved-model FOLDER --output model.onnx",
        ),
    },
    Form {
        is: |_, content| is_graph_def(content),
        told: (
            "it is a frozen graph of TensorFlow 1 (GraphDef)",
            "convert it: python -m tf2onnx.convert --graphdef {file} --inputs INPUT:0 --outputs OUTPUT:0 --output model.onnx",
        ),
    },
    Form {
        is: |_, content| starts_text(content, "version https://git-lfs.github.com/"),
        told: (
            "it is a pointer of Git LFS, not the file itself",
            "fetch the file: git lfs pull --include {file}",
        ),
    },
    Form {
        is: |_, content| starts_text(content, "<!doctype html") || starts_text(content, "<html"),
        told: (
            "it is a page of the web, not the file that was to be fetched",
            "fetch the file itself: its address is that of the button for raw or download",
        ),
    },
    Form {
        is: |_, content| starts_text(content, "<?xml") && contains(content, b"<net "),
        told: (
            "it is a network of OpenVINO",
            "pack the network that it was converted from, as .onnx or .tflite",
        ),
    },
    Form {
        is: |_, content| starts_text(content, "7767517"),
        told: (
            "it is a network of ncnn",
            "pack the network that it was converted from, as .onnx or .tflite",
        ),
    },
    Form {
        is: |_, content| is_json(content) && contains(content, b"\"modelTopology\"") || is_graph_model(content),
        told: (
            "it is a network of TensorFlow.js",
            "pack the network that it was converted from, or convert it back: \
             tensorflowjs_converter --input_format tfjs_layers_model --output_format keras {file} model.h5",
        ),
    },
    Form {
        is: |_, content| is_json(content) && contains(content, b"\"class_name\"") && contains(content, b"\"config\""),
        told: (
            "it is the architecture of a Keras model, without weights",
            "load it in Python and convert the model: \
             tf.lite.TFLiteConverter.from_keras_model(keras.models.model_from_json(open(\"{file}\").read())).convert()",
        ),
    },
    Form {
        is: |_, content| {
            content.starts_with(b"ML\xefR") || starts_text(content, "module ") || starts_text(content, "module{")
        },
        told: (
            "it is a module of MLIR",
            "pack the network that it was lowered from, as .onnx or .tflite",
        ),
    },
    Form {
        is: |_, content| content.starts_with(b"\x93NUMPY"),
        told: ("it is an array of NumPy and no network", "pass the network itself"),
    },
    Form {
        is: |_, content| is_compressed(content),
        told: ("it is compressed", "unpack it, and pack the network that it holds"),
    },
    Form {
        is: |_, content| content.get(257..262).is_some_and(|mark| mark == b"ustar"),
        told: (
            "it is an archive (tar)",
            "unpack it, and pack the network that it holds",
        ),
    },
    Form {
        is: |name, _| name.ends(".tflite"),
        told: ("it is no .tflite file: `TFL3` does not stand at byte 4", DAMAGED),
    },
    Form {
        is: |name, _| name.ends(".onnx"),
        told: ("it is no .onnx file: no model begins there", DAMAGED),
    },
    Form {
        is: |name, _| name.ends(".safetensors") || name.ends(".npz"),
        told: WEIGHTS,
    },
    Form {
        is: |name, _| name.ends(".mlmodel") || name.ends(".caffemodel") || name.ends(".prototxt"),
        told: (
            "it is a network of Core ML or Caffe",
            "pack the network that it was converted from, as .onnx or .tflite",
        ),
    },
    Form {
        is: |name, _| name.ends(".py") || name.ends(".ipynb"),
        told: (
            "it is a program in Python, not a network",
            "run it, and let it export the network: arenite_trace or torch.onnx.export for PyTorch, tf.lite.TFLiteConverter for Keras",
        ),
    },
    Form {
        is: |_, _| true,
        told: (
            "pack does not know its format",
            "if you know it, pass --dialect NAME for an error with the line",
        ),
    },
];

/// Whether it is a model file, of whatever version, or a bundle of them.
fn is_packed(content: &[u8]) -> bool {
    let head = Header::parse(content);
    Bundle::is_bundle(content) || matches!(head, Ok(_) | Err(LoadError::Version { .. } | LoadError::Header))
}

/// Returns the description of a file of no known format, as far as it can be recognised, and advice.
pub(super) fn told(path: &Path, content: &[u8]) -> (String, String) {
    let name = Name(path);
    let told = match archive::told(content) {
        Some(told) => told,
        None => {
            let form = FORMS.iter().find(|form| (form.is)(&name, content));
            let (what, help) = form.map_or(("", ""), |form| form.told);
            (what.into(), help.into())
        }
    };
    (told.0, told.1.replace("{file}", &path.display().to_string()))
}

/// Names of a zip archive's entries; `None` where the content is none.
pub(super) fn names_in_archive(content: &[u8]) -> Option<Vec<String>> {
    archive::names(content)
}

/// Refuses a folder where a network was expected, and describes it.
///
/// # Errors
/// An error that names it, where it is a folder.
pub(super) fn refuse_folder(path: &Path) -> Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let holds = |name: &str| path.join(name).exists();
    let (what, help) = if holds("saved_model.pb") || holds("saved_model.pbtxt") {
        (
            "it is a SavedModel of TensorFlow",
            "convert it: tf.lite.TFLiteConverter.from_saved_model(\"{file}\").convert(), or python -m tf2onnx.convert --saved-model {file} --output model.onnx",
        )
    } else if holds("Manifest.json") && holds("Data") {
        (
            "it is a package of Core ML",
            "pack the network that it was converted from, as .onnx or .tflite",
        )
    } else if holds("config.json") && (holds("model.safetensors") || holds("pytorch_model.bin")) {
        (
            "it is a folder of Hugging Face",
            "export it: optimum-cli export onnx --model {file} OUTPUT gives OUTPUT/model.onnx",
        )
    } else {
        ("it is a directory", "pass the network's file itself")
    };
    Err(Error::unsupported(what)
        .in_file(path)
        .expected("the file of a network")
        .help(help.replace("{file}", &path.display().to_string())))
}

/// A length of eight bytes, and a JSON object of that length: what `safetensors` begins with.
fn is_safetensors(content: &[u8]) -> bool {
    let Some((length, rest)) = content.split_first_chunk::<8>() else {
        return false;
    };
    let length = u64::from_le_bytes(*length);
    rest.first() == Some(&b'{') && (2..=rest.len() as u64).contains(&length)
}

/// The fields `saved_model_schema_version` (1, a number) and `meta_graphs` (2, a message of which the first field is one too), as TensorFlow's
/// `saved_model.proto` has them.
pub(super) fn is_saved_model(content: &[u8]) -> bool {
    let [0x08, 0x01, 0x12, rest @ ..] = content else {
        return false;
    };
    let meta = rest.iter().position(|byte| byte & 0x80 == 0);
    meta.is_some_and(|last| last < 10 && rest.get(last + 1) == Some(&0x0A))
}

/// The field `node` (1) whose `name` (1) and `op` (2) come first, as TensorFlow's `graph.proto` and `node_def.proto` have them.
fn is_graph_def(content: &[u8]) -> bool {
    let node = || -> Option<&[u8]> {
        let rest = content.strip_prefix(&[0x0A])?;
        let last = rest.iter().take(10).position(|byte| byte & 0x80 == 0)?;
        let rest = rest.get(last + 1..)?.strip_prefix(&[0x0A])?;
        let (&length, rest) = rest.split_first()?;
        rest.get(usize::from(length)..)?.strip_prefix(&[0x12])
    };
    let op = node().and_then(|rest| rest.get(1..=usize::from(*rest.first()?)));
    op.is_some_and(|op| !op.is_empty() && op.iter().all(u8::is_ascii_alphanumeric))
}

fn is_graph_model(content: &[u8]) -> bool {
    is_json(content) && contains(content, b"\"graph-model\"") && contains(content, b"\"weightsManifest\"")
}

fn is_compressed(content: &[u8]) -> bool {
    const STARTS: [&[u8]; 6] = [
        b"\x1f\x8b",
        b"BZh",
        b"\xfd7zXZ\0",
        b"\x28\xb5\x2f\xfd",
        b"7z\xbc\xaf\x27\x1c",
        b"Rar!",
    ];
    STARTS.iter().any(|start| content.starts_with(start))
}

fn is_json(content: &[u8]) -> bool {
    content.trim_ascii_start().first() == Some(&b'{')
}

/// Whether a text begins so, in letters of either case.
fn starts_text(content: &[u8], start: &str) -> bool {
    let content = content.trim_ascii_start();
    content
        .get(..start.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
}

/// Whether these bytes stand in the first megabyte.
fn contains(content: &[u8], bytes: &[u8]) -> bool {
    let content = content.get(..1 << 20).unwrap_or(content);
    content.windows(bytes.len()).any(|window| window == bytes)
}
