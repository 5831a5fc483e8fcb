//! Zip archives: whose they are tells their entries.

/// Entries whose names are looked at, at most.
const ENTRIES: usize = 1 << 16;

/// Signature of an entry in the directory at the end of an archive, and its fixed bytes (PKWARE's APPNOTE, 4.3.12).
const ENTRY: &[u8] = b"PK\x01\x02";
const FIXED: usize = 46;
const NAME_LENGTH: usize = 28;

/// Returns the description of an archive, and advice; `None` where this is none.
pub(super) fn told(content: &[u8]) -> Option<(String, String)> {
    let names = names(content)?;
    let any = |is: &dyn Fn(&str) -> bool| names.iter().any(|name| is(name));
    let ends = |ending: &str| any(&|name: &str| name == ending || name.ends_with(&format!("/{ending}")));
    let (what, help): (&str, &str) = if names.is_empty() {
        (
            "it is a zip archive, as PyTorch (.pt, .pth, .pt2) and Keras (.keras) save models, and its directory is cut off",
            "fetch or save it again, then export it from PyTorch with arenite_trace or torch.onnx.export, from Keras with tf.lite.TFLiteConverter",
        )
    } else if names.iter().all(|name| name.ends_with(".npy")) {
        (
            "it is a NumPy archive: it holds weights and no network",
            "pass the network itself, and this file with --weights",
        )
    } else if ends("config.json") && ends("model.weights.h5") {
        (
            "it is a Keras model (.keras)",
            "convert it: tf.lite.TFLiteConverter.from_keras_model(keras.models.load_model(\"{file}\")).convert() gives a .tflite file",
        )
    } else if ends("constants.pkl") {
        (
            "it is a TorchScript module",
            "export it on: torch.onnx.export(torch.jit.load(\"{file}\"), (INPUT,), \"model.onnx\", dynamo=False)",
        )
    } else if ends("data.pkl") {
        (
            "it is a file of torch.save (.pt, .pth)",
            "load it in Python into its module and export that: arenite_trace or torch.onnx.export(module, (INPUT,), \"model.onnx\")",
        )
    } else if ends("saved_model.pb") {
        (
            "it is a zip archive with a SavedModel of TensorFlow",
            "unpack it and convert the folder: tf.lite.TFLiteConverter.from_saved_model(FOLDER).convert()",
        )
    } else {
        let network = [".tflite", ".onnx", ".trace.json"];
        let inside = names
            .iter()
            .find(|name| network.iter().any(|ending| name.ends_with(ending)));
        return Some(match inside {
            Some(name) => (
                format!("it is a zip archive that holds `{}`", shown(name)),
                "unpack it, and pack what it holds".into(),
            ),
            None => (
                format!(
                    "it is a zip archive of {} files, `{}` first",
                    names.len(),
                    shown(names.first()?)
                ),
                "unpack it: pack wants a network's own file".into(),
            ),
        });
    };
    Some((what.into(), help.into()))
}

/// Names of the entries, as the directory has them; `None` where this is no archive. Each byte of the file is of one entry at most.
pub(super) fn names(content: &[u8]) -> Option<Vec<String>> {
    if !content.starts_with(b"PK\x03\x04") {
        return None;
    }
    let mut names = Vec::new();
    let mut rest = content;
    while names.len() < ENTRIES
        && let Some(at) = rest.windows(ENTRY.len()).position(|window| window == ENTRY)
    {
        rest = rest.get(at..).unwrap_or_default();
        let length = match rest.get(NAME_LENGTH..NAME_LENGTH + 2) {
            Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
            _ => break,
        };
        let Some(name) = rest.get(FIXED..FIXED + length) else {
            break;
        };
        names.push(String::from_utf8_lossy(name).into_owned());
        rest = rest.get(FIXED + length..).unwrap_or_default();
    }
    Some(names)
}

/// The beginning of a name, without what a terminal would obey.
fn shown(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries every four bytes, each with a name of 64 KiB over the others: 330 KB that would be 4 GB.
    #[test]
    fn names_take_no_more_than_the_file() {
        let entry = [ENTRY, &[0xFF; 4]].concat();
        let content = [b"PK\x03\x04".to_vec(), entry.repeat(1 << 15), vec![b'a'; 1 << 16]].concat();
        let bytes: usize = names(&content).unwrap().iter().map(String::len).sum();
        // A byte that is no UTF-8 is shown by three.
        assert!(bytes > 0 && bytes <= 3 * content.len(), "{bytes}");
    }
}
