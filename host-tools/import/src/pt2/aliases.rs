//! Which values share memory in PyTorch, so that what one call writes in place is read under all of its names.

use std::collections::{HashMap, HashSet};

use super::program::{Kind, Program};

/// Value that an operator in place writes.
pub(super) enum Overwritten<'p> {
    /// A value that the program keeps from run to run.
    Kept(&'p str),
    /// A value that is read later under another name.
    Read(&'p str),
    Free,
}

/// The values of a program, in groups that may share memory.
pub(super) struct Aliases<'p> {
    /// The last call that reads a value; outputs are read behind all.
    last: HashMap<&'p str, usize>,
    /// Another member of a value's group, towards the one that stands for it.
    towards: HashMap<&'p str, &'p str>,
    groups: HashMap<&'p str, Group<'p>>,
    /// Values that are wholly the same, by the first of their names.
    first: HashMap<&'p str, &'p str>,
    kept: HashSet<&'p str>,
}

/// A group of names of one memory: two of its values, each by all of its names, that are read last.
#[derive(Debug, Clone, Default)]
struct Group<'p> {
    kept: Option<&'p str>,
    latest: Vec<Latest<'p>>,
}

/// A value by the first of its names, and the name that is read last.
#[derive(Debug, Clone, Copy)]
struct Latest<'p> {
    value: &'p str,
    name: &'p str,
    at: usize,
}

impl<'p> Group<'p> {
    fn note(&mut self, latest: Latest<'p>) {
        match self.latest.iter_mut().find(|own| own.value == latest.value) {
            Some(own) if own.at >= latest.at => return,
            Some(own) => *own = latest,
            None => self.latest.push(latest),
        }
        self.latest.sort_by_key(|own| std::cmp::Reverse(own.at));
        self.latest.truncate(2);
    }
}

impl<'p> Aliases<'p> {
    pub(super) fn of(program: &'p Program) -> Self {
        let mut last = HashMap::new();
        for (index, node) in program.nodes.iter().enumerate() {
            node.arguments.iter().for_each(|(_, arg)| {
                arg.each_name(&mut |name| {
                    last.insert(name, index);
                });
            });
        }
        program.outputs.iter().for_each(|arg| {
            arg.each_name(&mut |name| {
                last.insert(name, usize::MAX);
            });
        });
        let kept = program.inputs.iter().filter(|input| !matches!(input.kind, Kind::User));
        Self {
            last,
            towards: HashMap::new(),
            groups: HashMap::new(),
            first: HashMap::new(),
            kept: kept.map(|input| input.name.as_str()).collect(),
        }
    }

    /// Whether anything reads a value.
    pub(super) fn is_read(&self, name: &str) -> bool {
        self.last.contains_key(name)
    }

    /// The first name of a value.
    pub(super) fn first<'n>(&self, name: &'n str) -> &'n str
    where
        'p: 'n,
    {
        self.first.get(name).copied().unwrap_or(name)
    }

    fn root(&mut self, name: &'p str) -> &'p str {
        let mut at = name;
        while let Some(&next) = self.towards.get(at) {
            // Half of the way is forgotten with each look.
            if let Some(&further) = self.towards.get(next) {
                self.towards.insert(at, further);
            }
            at = next;
        }
        at
    }

    /// The group of a value, by the member that stands for it.
    fn group(&mut self, name: &'p str) -> &'p str {
        let root = self.root(name);
        if !self.groups.contains_key(root) {
            let mut group = Group {
                kept: self.kept.contains(root).then_some(root),
                latest: Vec::new(),
            };
            let value = self.first(root);
            let at = self.last.get(root).copied().unwrap_or(0);
            group.note(Latest { value, name: root, at });
            self.groups.insert(root, group);
        }
        root
    }

    /// Returns the value that call `index` overwrites by writing `target`.
    pub(super) fn overwritten(&mut self, target: &'p str, index: usize) -> Overwritten<'p> {
        let (root, own) = (self.group(target), self.first(target));
        let Some(group) = self.groups.get(root) else {
            return Overwritten::Free;
        };
        if let Some(kept) = group.kept {
            return Overwritten::Kept(kept);
        }
        let other = group
            .latest
            .iter()
            .find(|latest| latest.value != own && latest.at > index);
        other.map_or(Overwritten::Free, |latest| Overwritten::Read(latest.name))
    }

    /// The results of a view share the memory of its operands.
    pub(super) fn join(&mut self, operands: &[&'p str], results: &[&'p str]) {
        let Some(&operand) = operands.first() else {
            return;
        };
        let root = self.group(operand);
        for &name in operands.iter().chain(results) {
            let from = self.group(name);
            if from == root {
                continue;
            }
            self.towards.insert(from, root);
            let (Some(moved), Some(group)) = (self.groups.remove(from), self.groups.get_mut(root)) else {
                continue;
            };
            group.kept = group.kept.or(moved.kept);
            moved.latest.into_iter().for_each(|latest| group.note(latest));
        }
    }

    /// `result` is `target`, as an operator in place has left it.
    pub(super) fn same(&mut self, target: &'p str, result: &'p str) {
        let value = self.first(target);
        self.first.insert(result, value);
        self.join(&[target], &[result]);
    }
}
