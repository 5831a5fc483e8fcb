//! IF and WHILE: subgraphs translated in the place of the operator that runs them, where packing knows which and how often.
//!
//! A condition is known where integer arithmetic on constants computes it. A branch of IF is translated as if it stood there; the body of WHILE once for
//! each run. Values go in and out as TensorFlow Lite hands them over, as stored numbers.

use super::constant::Constant;
use super::importer::{Importer, Problem, View};
use super::rows::{is_known, remedy, rows};
use super::scope::{DEPTH, OPERATORS, Parameter, Scope, TIMES};
use crate::error::{Error, Result};
use crate::graph::{DType, Op, Tensor, TensorId, TensorKind};

/// An argument or a result of a subgraph.
#[derive(Clone)]
enum Value<'a> {
    Known(Constant<'a>, Option<Parameter>),
    Computed(TensorId),
}

impl<'m, 'a> Importer<'m, 'a> {
    /// Notes the unknown operators of the subgraphs of IF and WHILE that could not be translated.
    pub(super) fn look_ahead(&mut self) {
        let called = |view: View<'_, '_>| [self.called(view, 0), self.called(view, 1)].into_iter().flatten();
        let mut left: Vec<usize> = Vec::new();
        for problem in self.problems.iter().filter(|problem| runs(&problem.kind)) {
            let operator = &self.model.subgraphs[problem.subgraph].operators[problem.index];
            left.extend(called(View::new(
                (problem.subgraph, problem.index),
                &problem.kind,
                operator,
            )));
        }
        let mut seen = vec![false; self.model.subgraphs.len()];
        let mut found = Vec::new();
        while let Some(number) = left.pop() {
            if std::mem::replace(&mut seen[number], true) {
                continue;
            }
            let subgraph = &self.model.subgraphs[number];
            for (index, operator) in subgraph.operators.iter().enumerate() {
                let kind = self.model.codes[operator.code].name();
                if runs(&kind) {
                    left.extend(called(View::new((number, index), &kind, operator)));
                }
                if is_known(&kind) {
                    continue;
                }
                let output = operator.outputs.first().map(|&t| subgraph.tensors[t].name.clone());
                found.push(Problem {
                    index,
                    subgraph: number,
                    output: output.unwrap_or_default(),
                    error: Error::unsupported("not supported").help(remedy(&kind)),
                    kind,
                });
            }
        }
        self.problems.extend(found);
    }

    /// The subgraph that option `field` names.
    pub(super) fn called(&self, view: View<'_, '_>, field: usize) -> Result<usize> {
        let index = view.option::<i32>(field, 0)?;
        let count = self.model.subgraphs.len();
        let number = usize::try_from(index)
            .ok()
            .filter(|&i| i < count && i != self.model.main);
        number.ok_or_else(|| {
            let last = count.saturating_sub(1);
            Error::input(format!("it calls subgraph {index}")).expected(match self.model.main {
                0 => format!("1 to {last}"),
                main => format!("0 to {last}, but not {main}, the main one"),
            })
        })
    }

    /// Refuses operators that remember what they saw where they may stand in the graph several times.
    pub(super) fn state_of_its_own(&self) -> Result<()> {
        if self.scope.number == self.model.main {
            return Ok(());
        }
        Err(
            Error::unsupported("a state of its own in a subgraph that IF or WHILE runs")
                .expected("operators with a state in the main subgraph alone"),
        )
    }

    /// IF: the branch that its constant condition chooses.
    pub(super) fn choose_branch(&mut self, view: View<'_, '_>) -> Result<()> {
        let condition = view.input(0)?;
        let name = &self.info(condition).name;
        let Some(constant) = self.constant(condition)? else {
            return Err(
                Error::unsupported(format!("its condition `{name}` is computed at run time"))
                    .expected("a constant, or what integer arithmetic makes of constants and shapes")
                    .help("convert the branch that the device is to run, or let both compute and SELECT_V2 choose"),
            );
        };
        let Some(holds) = constant.truth() else {
            let elements = constant.shape.iter().product::<usize>();
            return Err(Error::input(format!("its condition `{name}` has {elements} elements")).expected("one"));
        };
        let number = self.called(view, usize::from(!holds))?;
        let values = self.handed(view, 1)?;
        let place = format!("{}{}#{}/", self.scope.place, view.kind, view.index);
        let results = self.run(view, number, place, &values)?;
        self.hand_back(view, results)
    }

    /// WHILE: its body as often as its condition holds.
    pub(super) fn unroll(&mut self, view: View<'_, '_>) -> Result<()> {
        let (condition, body) = (self.called(view, 0)?, self.called(view, 1)?);
        let graph = &self.model.subgraphs[body];
        if graph.inputs.len() != graph.outputs.len() {
            return Err(Error::input(format!(
                "its body, subgraph {body}, has {} inputs and {} outputs",
                graph.inputs.len(),
                graph.outputs.len()
            ))
            .expected("as many of both"));
        }
        let mut values = self.handed(view, 0)?;
        let mut run = 0;
        while self.holds(condition, &values, run)? {
            if run == 0 {
                // Values that the body replaces are computed from there on; one that it hands on as it is stays a constant, such as weights.
                for (position, value) in values.iter_mut().enumerate() {
                    if graph.inputs.get(position) != graph.outputs.get(position) {
                        *value = self.materialised(view, position, value)?;
                    }
                }
            }
            let place = format!("{}{}#{}.{run}/", self.scope.place, view.kind, view.index);
            match self.run(view, body, place, &values)? {
                Some(results) => values = results,
                None => return self.hand_back(view, None),
            }
            run += 1;
        }
        self.hand_back(view, Some(values))
    }

    /// The values of the operands from `first` on.
    fn handed(&mut self, view: View<'_, '_>, first: usize) -> Result<Vec<Value<'a>>> {
        let positions = first..view.inputs.len();
        positions.map(|position| self.value(view.input(position)?)).collect()
    }

    /// The value of tensor `index`.
    fn value(&mut self, index: usize) -> Result<Value<'a>> {
        if let Some(constant) = self.constant(index)? {
            return Ok(Value::Known(constant, self.parameter_of(index)));
        }
        let id = self.operand(index)?;
        if !matches!(self.out.tensor(id).kind, TensorKind::State(_)) {
            return Ok(Value::Computed(id));
        }
        Err(Error::unsupported(format!(
            "the variable tensor `{}` is handed over",
            self.info(index).name
        ))
        .help("hand over what READ_VARIABLE reads"))
    }

    /// A constant that is no integer one as what a step writes, so that any operator reads it.
    fn materialised(&mut self, view: View<'_, '_>, position: usize, value: &Value<'a>) -> Result<Value<'a>> {
        let index = view.input(position)?;
        match value {
            Value::Known(constant, _) if !matches!(constant.dtype, DType::I32 | DType::I64 | DType::Bool) => {
                let from = self.operand(index)?;
                let copy = self.described(index)?;
                let copy = self.out.add_tensor(copy);
                self.node(
                    view,
                    &format!("/begin {position}"),
                    Op::Identity,
                    vec![Some(from)],
                    vec![copy],
                );
                Ok(Value::Computed(copy))
            }
            value => Ok(value.clone()),
        }
    }

    /// Begins with subgraph `number` and hands it `values`: the scope that it interrupts.
    fn enter(&mut self, view: &str, number: usize, place: String, values: &[Value<'a>]) -> Result<Scope<'m, 'a>> {
        let graph = &self.model.subgraphs[number];
        if graph.inputs.len() != values.len() {
            return Err(Error::input(format!(
                "it hands {} values to subgraph {number}, {view}, which has {} inputs",
                values.len(),
                graph.inputs.len()
            )));
        }
        if self.control.depth >= DEPTH {
            return Err(
                Error::unsupported(format!("subgraphs that run each other, such as subgraph {number}"))
                    .expected(format!("at most {DEPTH} in each other")),
            );
        }
        let control = &mut self.control;
        let left = control.operators.checked_sub(graph.operators.len().max(1));
        control.operators = left.ok_or_else(|| {
            Error::unsupported("IF and WHILE become too many operators")
                .expected(format!("at most {OPERATORS} in all"))
                .help("let the loop run less often, or call the network of its body from your program's own loop")
        })?;
        let stored = graph.tensors.iter().map(|t| t.data.map_or(64, |d| d.len() + 64));
        let known = values.iter().map(|value| match value {
            Value::Known(constant, _) => constant.bytes.len(),
            Value::Computed(_) => 0,
        });
        control.room.take(stored.chain(known).sum(), || {
            Error::unsupported("the constants that all runs of IF and WHILE read take far more memory than the file")
                .expected(format!("at most {TIMES} times its bytes"))
        })?;
        if control.known.len() <= number {
            control.known.resize_with(number + 1, || None);
        }
        let scope = match control.known[number].take() {
            Some(scope) => Scope { place, ..scope },
            None => Scope::new(self.model, number, place),
        };
        control.depth += 1;
        Ok(std::mem::replace(&mut self.scope, scope))
    }

    /// Goes on with the scope that was interrupted, and keeps what other runs of the subgraph share.
    fn leave(&mut self, outer: Scope<'m, 'a>) {
        let inner = std::mem::replace(&mut self.scope, outer);
        let number = inner.number;
        self.control.depth -= 1;
        self.control.known[number] = Some(inner.again());
    }

    /// Whether the condition of a WHILE holds for `values`.
    fn holds(&mut self, number: usize, values: &[Value<'a>], run: usize) -> Result<bool> {
        let outer = self.enter("its condition", number, self.scope.place.clone(), values)?;
        let result = self.condition(values);
        self.leave(outer);
        result.map_err(|e| {
            e.at(format_args!(
                "its condition, subgraph {number}, before run {run} of the body"
            ))
        })
    }

    /// The condition that is the current subgraph.
    fn condition(&mut self, values: &[Value<'a>]) -> Result<bool> {
        let graph = self.scope.graph;
        for (&input, value) in graph.inputs.iter().zip(values) {
            match value {
                Value::Known(constant, _) => self.bind_known(input, constant.clone(), None)?,
                &Value::Computed(id) => {
                    let shape = self.out.tensor(id).shape.clone();
                    self.take_shape(input, &shape);
                }
            }
        }
        let mut unknown = None;
        for (index, operator) in graph.operators.iter().enumerate() {
            let kind = self.model.codes[operator.code].name();
            let view = View::new((self.scope.number, index), &kind, operator);
            // An operator that runs for its effects would have to run as often as the condition.
            let effects = view.outputs.is_empty() || matches!(kind.as_str(), "IF" | "WHILE");
            let variable = |&&t: &&Option<usize>| t.is_some_and(|t| graph.tensors[t].variable);
            if effects || view.inputs.iter().find(variable).is_some() {
                return Err(Error::unsupported(format!("operator {index} ({kind})"))
                    .expected("integer arithmetic on constants, which leaves nothing behind"));
            }
            self.infer(view, rows().find(|row| row.kind == kind))?;
            if !self.fold(view)? {
                unknown.get_or_insert(format!("operator {index} ({kind})"));
            }
        }
        let &[output] = graph.outputs.as_slice() else {
            return Err(Error::input(format!("{} outputs", graph.outputs.len())).expected("one BOOL"));
        };
        let Some(constant) = self.constant(output)? else {
            let unknown = unknown.unwrap_or_else(|| format!("`{}`", self.info(output).name));
            return Err(Error::unsupported(format!("{unknown} is computed at run time"))
                .expected("a number of runs that integer arithmetic on constants decides")
                .help("unroll the loop, or call the network of its body from your program's own loop"));
        };
        constant.truth().ok_or_else(|| {
            Error::input(format!("its output is {} {:?}", constant.dtype.name(), constant.shape)).expected("one BOOL")
        })
    }

    /// Translates subgraph `number` for `values`: what it hands back, or nothing where some of its operators cannot be translated.
    fn run(
        &mut self,
        view: View<'_, '_>,
        number: usize,
        place: String,
        values: &[Value<'a>],
    ) -> Result<Option<Vec<Value<'a>>>> {
        let (name, subgraph) = (view.kind, &self.model.subgraphs[number]);
        let outer = self.enter(&format!("which {name} runs"), number, place, values)?;
        let bound = self.bind(view, values);
        let known = self.problems.len();
        if bound.is_ok() {
            self.operators();
        }
        let results = bound.and_then(|()| {
            if self.problems.len() > known {
                return Ok(None);
            }
            let result = |&t: &usize| match subgraph.inputs.iter().position(|&input| input == t) {
                Some(same) => Ok(values[same].clone()),
                None => self.value(t),
            };
            subgraph.outputs.iter().map(result).collect::<Result<_>>().map(Some)
        });
        self.leave(outer);
        results.map_err(|e| e.at(format_args!("subgraph {number}")))
    }

    /// The inputs of the current subgraph.
    fn bind(&mut self, view: View<'_, '_>, values: &[Value<'a>]) -> Result<()> {
        for (position, (&input, value)) in self.scope.graph.inputs.iter().zip(values).enumerate() {
            match value {
                Value::Known(constant, parameter) => self.bind_known(input, constant.clone(), *parameter)?,
                &Value::Computed(id) => {
                    self.has_no_value(input)?;
                    let shape = self.out.tensor(id).shape.clone();
                    self.take_shape(input, &shape);
                    let own = self.described(input)?;
                    self.scope.map[input] = Some(self.seen_as(view, &format!("/input {position}"), id, own)?);
                }
            }
        }
        Ok(())
    }

    /// The input `index` of the current subgraph is a constant.
    fn bind_known(&mut self, index: usize, constant: Constant<'a>, parameter: Option<Parameter>) -> Result<()> {
        self.has_no_value(index)?;
        self.take_shape(index, &constant.shape);
        let (dtype, shape) = (self.dtype(index)?, self.shape(index)?);
        if dtype != constant.dtype || shape.iter().product::<usize>() != constant.shape.iter().product::<usize>() {
            return Err(self.unlike(index, constant.dtype, &constant.shape));
        }
        self.scope.made.insert(index, parameter);
        self.scope.folded.insert(index, Constant { shape, ..constant });
        Ok(())
    }

    fn unlike(&self, index: usize, dtype: DType, shape: &[usize]) -> Error {
        let info = self.info(index);
        Error::input(format!("`{}` takes the value of {} {shape:?}", info.name, dtype.name())).expected(format!(
            "{} {:?}, its own",
            info.type_name(),
            info.shape
        ))
    }

    /// The stored numbers of `id` as a tensor like `own`.
    fn seen_as(&mut self, view: View<'_, '_>, suffix: &str, id: TensorId, own: Tensor) -> Result<TensorId> {
        let tensor = self.out.tensor(id);
        if (tensor.dtype, tensor.elements()) != (own.dtype, own.elements()) {
            return Err(Error::input(format!(
                "`{}`, {} {:?}, takes the value of `{}`, {} {:?}",
                own.name,
                own.dtype.name(),
                own.shape,
                tensor.name,
                tensor.dtype.name(),
                tensor.shape
            )));
        }
        if (&tensor.shape, &tensor.quant) == (&own.shape, &own.quant) {
            return Ok(id);
        }
        let to = self.out.add_tensor(own);
        self.node(view, suffix, Op::Reshape, vec![Some(id)], vec![to]);
        Ok(to)
    }

    /// The results of the operator: `values`, or unknown ones, so that later operators are still looked at.
    fn hand_back(&mut self, view: View<'_, '_>, values: Option<Vec<Value<'a>>>) -> Result<()> {
        let Some(values) = values else {
            return view.outputs.iter().try_for_each(|&y| self.output(y).map(|_| ()));
        };
        if values.len() != view.outputs.len() {
            return Err(Error::input(format!("{} results", view.outputs.len()))
                .expected(format!("{}, of its subgraph", values.len())));
        }
        for (position, (value, &y)) in values.into_iter().zip(view.outputs).enumerate() {
            match value {
                Value::Known(constant, parameter) => self.bind_known(y, constant, parameter)?,
                Value::Computed(id) => {
                    let tensor = self.out.tensor(id);
                    let (dtype, elements, shape) = (tensor.dtype, tensor.elements(), tensor.shape.clone());
                    self.take_shape(y, &shape);
                    if (dtype, elements) != (self.dtype(y)?, self.shape(y)?.iter().product()) {
                        return Err(self.unlike(y, dtype, &shape));
                    }
                    let y = self.output(y)?;
                    let suffix = if position == 0 {
                        String::new()
                    } else {
                        format!("/result {position}")
                    };
                    self.node(view, &suffix, Op::Reshape, vec![Some(id)], vec![y]);
                }
            }
        }
        Ok(())
    }
}

/// Whether operators of this name run subgraphs.
fn runs(kind: &str) -> bool {
    matches!(kind, "IF" | "WHILE")
}
