//! Files of `torch.save` that hold tensors: an archive with a pickle, of which only what tensors are made of is understood, and nothing is called.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Cursor;
use std::rc::Rc;

use super::elements::Strided;
use crate::error::{Error, Result};
use crate::files::zip::Zip;
use crate::fold_budget::FoldBudget;
use crate::onnx::ElementType;

/// Advice for a file that contradicts itself.
pub(super) const DAMAGED: &str = "the file is damaged: save it again with torch.export.save";

/// Deepest nesting of tuples.
const DEEPEST: usize = 16;

/// The tensors of a file that holds a dictionary of them, by name.
pub(super) fn tensors(content: &[u8], budget: &FoldBudget) -> Result<HashMap<String, Strided>> {
    let archive = Saved::open(content)?;
    match archive.load()? {
        Item::Dictionary(entries) => {
            let entries = entries.borrow();
            let read = |(name, tensor): &(Rc<str>, Rc<Tensor>)| Ok((name.to_string(), archive.tensor(tensor, budget)?));
            entries.iter().map(read).collect()
        }
        _ => Err(malformed("no dictionary of tensors")),
    }
}

/// The tensor of a file that holds one.
pub(super) fn tensor(content: &[u8], budget: &FoldBudget) -> Result<Strided> {
    let archive = Saved::open(content)?;
    match archive.load()? {
        Item::Tensor(tensor) => archive.tensor(&tensor, budget),
        _ => Err(malformed("no tensor")),
    }
}

/// The archive contradicts itself.
pub(super) fn damaged(error: &std::io::Error) -> Error {
    Error::input(format!("the zip archive is damaged: {error}")).help(DAMAGED)
}

fn malformed(why: &str) -> Error {
    Error::input(format!("the saved tensors cannot be read: {why}"))
        .help("save the program again with torch.export.save, of PyTorch 2.9 or newer")
}

/// An open file of `torch.save`.
struct Saved<'c> {
    zip: Zip<Cursor<&'c [u8]>>,
    /// Prefix of all names.
    root: String,
}

impl<'c> Saved<'c> {
    fn open(content: &'c [u8]) -> Result<Self> {
        let zip = Zip::open(Cursor::new(content)).map_err(|e| damaged(&e))?;
        let root = zip
            .names()
            .find_map(|name| name.strip_suffix("data.pkl"))
            .map(str::to_string);
        let root = root.ok_or_else(|| malformed("no data.pkl"))?;
        Ok(Self { zip, root })
    }

    fn entry(&self, name: &str) -> Result<Vec<u8>> {
        let name = format!("{}{name}", self.root);
        match self.zip.read(&name) {
            Some(content) => content.map_err(|e| damaged(&e)),
            None => Err(malformed(&format!("no `{name}`"))),
        }
    }

    fn load(&self) -> Result<Item> {
        Machine::default().run(&self.entry("data.pkl")?)
    }

    fn tensor(&self, tensor: &Tensor, budget: &FoldBudget) -> Result<Strided> {
        let storage = self.entry(&format!("data/{}", tensor.key))?;
        let (shape, strides) = (tensor.shape.clone(), &tensor.strides);
        Strided::of(tensor.elem, shape, strides, tensor.offset, &storage, budget)
    }
}

/// The tensors of a dictionary, by name.
type Entries = Vec<(Rc<str>, Rc<Tensor>)>;

/// An object of a pickle.
#[derive(Debug, Clone)]
enum Item {
    /// An object that no tensor is made of.
    Other,
    Mark,
    Integer(i64),
    Text(Rc<str>),
    /// Its items, and how deep tuples are nested in it.
    Tuple(Rc<Vec<Item>>, usize),
    Dictionary(Rc<RefCell<Entries>>),
    /// Module and name of a class or function.
    Global(Rc<str>),
    Storage(ElementType, Rc<str>),
    Tensor(Rc<Tensor>),
}

#[derive(Debug)]
struct Tensor {
    elem: ElementType,
    key: Rc<str>,
    offset: i64,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// The stack machine that reads a pickle.
#[derive(Default)]
struct Machine {
    stack: Vec<Item>,
    memo: HashMap<usize, Item>,
}

/// The bytes of a pickle that are left.
struct Bytes<'p>(&'p [u8]);

impl<'p> Bytes<'p> {
    fn take(&mut self, count: usize) -> Result<&'p [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| malformed("the pickle is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number of so many bytes.
    fn number(&mut self, bytes: usize) -> Result<usize> {
        let taken = self.take(bytes)?.iter().rev();
        Ok(taken.fold(0, |number: usize, &byte| number << 8 | usize::from(byte)))
    }

    fn line(&mut self) -> Result<&'p [u8]> {
        let end = self.0.iter().position(|&byte| byte == b'\n');
        let line = self.take(end.ok_or_else(|| malformed("the pickle is cut off"))?)?;
        self.take(1)?;
        Ok(line)
    }
}

fn text(bytes: &[u8]) -> Item {
    Item::Text(String::from_utf8_lossy(bytes).into())
}

impl Machine {
    fn run(mut self, content: &[u8]) -> Result<Item> {
        let mut bytes = Bytes(content);
        loop {
            let op = bytes.take(1)?[0];
            if op == b'.' {
                return self.pop();
            }
            self.step(op, &mut bytes)?;
        }
    }

    fn pop(&mut self) -> Result<Item> {
        self.stack
            .pop()
            .ok_or_else(|| malformed("the pickle takes from an empty stack"))
    }

    /// The items down to the last mark.
    fn marked(&mut self) -> Result<Vec<Item>> {
        let mark = self.stack.iter().rposition(|item| matches!(item, Item::Mark));
        let mark = mark.ok_or_else(|| malformed("the pickle takes from an empty stack"))?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items)
    }

    fn tuple(&mut self, items: Vec<Item>) -> Result<()> {
        let depths = items.iter().map(|item| match item {
            Item::Tuple(_, depth) => *depth,
            _ => 0,
        });
        let depth = depths.max().unwrap_or(0) + 1;
        if depth > DEEPEST {
            return Err(malformed("tuples in tuples, deeper than tensors have them"));
        }
        self.stack.push(Item::Tuple(items.into(), depth));
        Ok(())
    }

    fn step(&mut self, op: u8, bytes: &mut Bytes<'_>) -> Result<()> {
        match op {
            0x80 => drop(bytes.take(1)?),
            0x95 => drop(bytes.take(8)?),
            b'(' => self.stack.push(Item::Mark),
            b'}' => self.stack.push(Item::Dictionary(Rc::default())),
            b']' | b'N' | 0x88 | 0x89 => self.stack.push(Item::Other),
            b')' => self.tuple(Vec::new())?,
            b't' => {
                let items = self.marked()?;
                self.tuple(items)?;
            }
            0x85..=0x87 => {
                let count = usize::from(op - 0x84);
                let from = self.stack.len().checked_sub(count);
                let from = from.ok_or_else(|| malformed("the pickle takes from an empty stack"))?;
                let items = self.stack.split_off(from);
                self.tuple(items)?;
            }
            b'K' => self.integer(bytes, 1)?,
            b'M' => self.integer(bytes, 2)?,
            b'J' => {
                let number = bytes.number(4)? as u32 as i32;
                self.stack.push(Item::Integer(number.into()));
            }
            0x8a => {
                let count = bytes.number(1)?;
                if count > 8 {
                    return Err(malformed("a number of more than 64 bits"));
                }
                let number = bytes.number(count)? as u64;
                let unused = 64 - 8 * count as u32;
                let number = if count == 0 {
                    0
                } else {
                    (number << unused) as i64 >> unused
                };
                self.stack.push(Item::Integer(number));
            }
            b'G' => {
                bytes.take(8)?;
                self.stack.push(Item::Other);
            }
            b'X' | 0x8c => {
                let count = bytes.number(if op == b'X' { 4 } else { 1 })?;
                self.stack.push(text(bytes.take(count)?));
            }
            b'c' => {
                let (module, name) = (bytes.line()?, bytes.line()?);
                let name = [module, b".", name].concat();
                self.stack.push(Item::Global(String::from_utf8_lossy(&name).into()));
            }
            0x93 => match (self.pop()?, self.pop()?) {
                (Item::Text(name), Item::Text(module)) => {
                    self.stack.push(Item::Global(format!("{module}.{name}").into()));
                }
                _ => return Err(malformed("a class without a name")),
            },
            b'q' | b'r' | 0x94 => {
                let slot = match op {
                    b'q' => bytes.number(1)?,
                    b'r' => bytes.number(4)?,
                    _ => self.memo.len(),
                };
                let top = self.stack.last().cloned();
                self.memo.insert(slot, top.unwrap_or(Item::Other));
            }
            b'h' | b'j' => {
                let slot = bytes.number(if op == b'h' { 1 } else { 4 })?;
                let item = self.memo.get(&slot).cloned();
                self.stack
                    .push(item.ok_or_else(|| malformed("the pickle reads what it did not store"))?);
            }
            b'Q' => {
                let id = self.pop()?;
                self.stack.push(storage(&id)?);
            }
            b'R' => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                self.stack.push(called(&function, &arguments)?);
            }
            // The state of an object, such as a dictionary's metadata; items of lists.
            b'b' | b'a' => drop(self.pop()?),
            b'e' => drop(self.marked()?),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value]);
            }
            b'u' => {
                let items = self.marked()?;
                items.chunks_exact(2).for_each(|pair| self.set(pair));
            }
            _ => return Err(malformed(&format!("the pickle has the instruction {op:#04x}"))),
        }
        Ok(())
    }

    fn integer(&mut self, bytes: &mut Bytes<'_>, count: usize) -> Result<()> {
        let number = bytes.number(count)?;
        self.stack.push(Item::Integer(number as i64));
        Ok(())
    }

    /// Gives the dictionary on top of the stack an entry; what is no tensor is left out.
    fn set(&mut self, pair: &[Item]) {
        if let (Some(Item::Dictionary(entries)), [Item::Text(name), Item::Tensor(tensor)]) = (self.stack.last(), pair) {
            entries.borrow_mut().push((Rc::clone(name), Rc::clone(tensor)));
        }
    }
}

/// The storage that a persistent id names: `("storage", type, key, location, length)`.
fn storage(id: &Item) -> Result<Item> {
    let Item::Tuple(parts, _) = id else {
        return Err(malformed("a storage without a name"));
    };
    let [Item::Text(_), Item::Global(kind), Item::Text(key), ..] = parts.as_slice() else {
        return Err(malformed("a storage without a name"));
    };
    let elem = match kind.rsplit('.').next().unwrap_or_default() {
        "FloatStorage" => ElementType::FLOAT,
        "DoubleStorage" => ElementType::DOUBLE,
        "HalfStorage" => ElementType::FLOAT16,
        "BFloat16Storage" => ElementType::BFLOAT16,
        "LongStorage" => ElementType::INT64,
        "IntStorage" => ElementType::INT32,
        "ShortStorage" => ElementType::INT16,
        "CharStorage" => ElementType::INT8,
        "ByteStorage" => ElementType::UINT8,
        "BoolStorage" => ElementType::BOOL,
        _ => return Err(malformed(&format!("it holds a {kind}"))),
    };
    Ok(Item::Storage(elem, Rc::clone(key)))
}

/// Returns the result of a call: of the few functions that tensors and dictionaries of them are made by.
fn called(function: &Item, arguments: &Item) -> Result<Item> {
    let (Item::Global(name), Item::Tuple(arguments, _)) = (function, arguments) else {
        return Err(malformed("a call of no function"));
    };
    match (&**name, arguments.as_slice()) {
        ("collections.OrderedDict", _) => Ok(Item::Dictionary(Rc::default())),
        ("torch._utils._rebuild_parameter", [tensor @ Item::Tensor(_), ..]) => Ok(tensor.clone()),
        (
            "torch._utils._rebuild_tensor_v2",
            [
                Item::Storage(elem, key),
                Item::Integer(offset),
                Item::Tuple(shape, _),
                Item::Tuple(strides, _),
                ..,
            ],
        ) => {
            let numbers = |items: &[Item]| -> Result<Vec<i64>> {
                let number = |item: &Item| match item {
                    Item::Integer(number) => Ok(*number),
                    _ => Err(malformed("a shape that is not of numbers")),
                };
                items.iter().map(number).collect()
            };
            Ok(Item::Tensor(Rc::new(Tensor {
                elem: *elem,
                key: Rc::clone(key),
                offset: *offset,
                shape: numbers(shape)?,
                strides: numbers(strides)?,
            })))
        }
        _ => Err(malformed(&format!("it calls {name}"))),
    }
}
