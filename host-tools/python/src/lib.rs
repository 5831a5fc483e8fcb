//! The module `arenite._native`: model files, sessions and the command line's commands for the Python package around it, which has the words that users see.
//! Arrays come as the bytes of `.npy` files, so that they are read, checked and converted as `arenite run` does.
//!
//! It is written without PyO3's macros: they want other features of what derives are made with, and with these cargo would compile nearly every package of the
//! workspace twice. An object is the functions that it has, which own what they work on.

mod failure;
mod session;

use std::cell::UnsafeCell;
use std::ffi::{CStr, OsString, c_int, c_void};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

use arenite::Port;
use arenite_host::Result;
use arenite_host::cli::calls::{self, Array};
use arenite_host::model::ModelFile;
use pyo3::BoundObject;
use pyo3::ffi::{Py_mod_exec, PyModuleDef, PyModuleDef_HEAD_INIT, PyModuleDef_Init, PyModuleDef_Slot, PyObject};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyCFunction, PyTuple};

use failure::{detached, raised};

/// Name, shape, dtype, scale and zero point.
type PortTuple = (String, Vec<u32>, &'static str, f32, i32);
/// Shape, NumPy's name of the dtype, and the elements, little-endian in C order.
type ArrayTuple = (Vec<usize>, &'static str, Py<PyByteArray>);
/// Result of a call from Python.
type Given = PyResult<Py<PyAny>>;

/// Looks for the module's definition; Python calls it.
#[unsafe(no_mangle)]
pub extern "C" fn PyInit__native() -> *mut PyObject {
    // SAFETY: the definition is a static, and its slots end with a zero.
    unsafe { PyModuleDef_Init(DEFINITION.0.get()) }
}

/// Fills a new module: 0, or -1 beside an exception.
extern "C" fn fill(module: *mut PyObject) -> c_int {
    // SAFETY: Python calls this function alone, from a thread that is attached to it, and the token does not outlive the call.
    let py = unsafe { Python::assume_attached() };
    let filled = || -> PyResult<()> {
        // SAFETY: the module is Python's for the whole call.
        let module = unsafe { Bound::from_borrowed_ptr(py, module) };
        module.setattr("VERSION", env!("CARGO_PKG_VERSION"))?;
        module.setattr("call", function(py, c"call", call)?)?;
        module.setattr("open", function(py, c"open", open)?)
    };
    filled().map_or_else(
        |exception| {
            exception.restore(py);
            -1
        },
        |()| 0,
    )
}

/// A static that Python takes a pointer to.
struct Held<T>(UnsafeCell<T>);

// SAFETY: only Python reads and writes it, and holds its own lock as it does.
unsafe impl<T> Sync for Held<T> {}

static SLOTS: Held<[PyModuleDef_Slot; 2]> = Held(UnsafeCell::new([
    PyModuleDef_Slot {
        slot: Py_mod_exec,
        value: fill as *mut c_void,
    },
    PyModuleDef_Slot {
        slot: 0,
        value: null_mut(),
    },
]));

static DEFINITION: Held<PyModuleDef> = Held(UnsafeCell::new(PyModuleDef {
    m_base: PyModuleDef_HEAD_INIT,
    m_name: c"_native".as_ptr(),
    m_doc: null(),
    m_size: 0,
    m_methods: null_mut(),
    m_slots: SLOTS.0.get().cast(),
    m_traverse: None,
    m_clear: None,
    m_free: None,
}));

/// A function of positional arguments.
fn function<'py>(
    py: Python<'py>,
    name: &'static CStr,
    work: impl Fn(&Bound<'_, PyTuple>) -> Given + Send + Sync + 'static,
) -> PyResult<Bound<'py, PyCFunction>> {
    PyCFunction::new_closure(py, Some(name), None, move |arguments, _| work(arguments))
}

fn given<'py>(py: Python<'py>, value: impl IntoPyObject<'py>) -> Given {
    let object = value.into_pyobject(py).map_err(Into::<PyErr>::into)?;
    Ok(object.into_any().unbind())
}

/// `call(words, progress)`: what a command line prints, its notes, and whether it ends with 0. The first word is the program's name.
fn call(arguments: &Bound<'_, PyTuple>) -> Given {
    let (words, progress) = arguments.extract::<(Vec<OsString>, Option<Py<PyAny>>)>()?;
    let py = arguments.py();
    let answer = detached(py, progress, |watch| calls::call(words, watch))?;
    given(py, (answer.text, answer.notes, answer.good))
}

/// `open(path)`: inputs, outputs, and the functions `run` and `session` of a model file, which must not change while they live.
fn open(arguments: &Bound<'_, PyTuple>) -> Given {
    let (path,) = arguments.extract::<(PathBuf,)>()?;
    let py = arguments.py();
    let opened = || -> Result<_> {
        let file = ModelFile::open(&path)?;
        let view = file.view()?;
        let ports = [&view.inputs, &view.outputs].map(|ports| ports.iter().map(port_tuple).collect::<Vec<_>>());
        drop(view);
        Ok((Arc::new(file), ports))
    };
    let (file, [inputs, outputs]) = py.detach(opened).map_err(|e| raised(py, &e))?;
    let same = file.clone();
    let run = function(py, c"run", move |arguments| run(&same, arguments))?;
    let session = function(py, c"session", move |arguments| session::open(&file, arguments.py()))?;
    given(py, (inputs, outputs, run, session))
}

/// `run(inputs, on, reset_each, timeout, progress)`: outputs, notes.
fn run(file: &ModelFile, arguments: &Bound<'_, PyTuple>) -> Given {
    let (inputs, on, reset_each, timeout, progress) =
        arguments.extract::<(Vec<PyBackedBytes>, String, bool, u64, Option<Py<PyAny>>)>()?;
    let py = arguments.py();
    let ran = detached(py, progress, |watch| {
        let arrays = decoded(&inputs)?;
        calls::run(file, &arrays, &on, reset_each, Duration::from_secs(timeout), watch)
    })?;
    given(py, (array_tuples(py, &ran.outputs), ran.notes))
}

fn port_tuple(port: &Port<'_>) -> PortTuple {
    let shape = port.shape.iter().copied().collect();
    (
        port.name.to_string(),
        shape,
        port.dtype.name(),
        port.scale,
        port.zero_point,
    )
}

fn array_tuples(py: Python<'_>, arrays: &[Array]) -> Vec<ArrayTuple> {
    let tuple = |array: &Array| {
        let bytes = PyByteArray::new(py, &array.bytes()).unbind();
        (array.shape.clone(), array.type_name(), bytes)
    };
    arrays.iter().map(tuple).collect()
}

fn decoded(inputs: &[PyBackedBytes]) -> Result<Vec<Array>> {
    inputs.iter().map(|npy| Array::decode(npy)).collect()
}
