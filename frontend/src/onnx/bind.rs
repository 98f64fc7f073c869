//! Static binding: a number for every dimension that the model's inputs leave open.

use super::code;
use super::index::{Declared, Dim};
use std::collections::{BTreeMap, BTreeSet};
use trainc_ir::{Diagnostic, Diagnostics, Place, Type};

/// Numbers for symbolic dimensions: by symbol (`seq=64`), by place (`input_ids.1=64`), and for all others (`*=8`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    named: BTreeMap<String, u64>,
    rest: Option<u64>,
}

impl Bindings {
    /// Reads `NAME=N,NAME=N,*=N`. A name is anything without a comma.
    ///
    /// # Errors
    /// A part is not of that form, or a name is bound to two numbers.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let mut bindings = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            bindings.add(part)?;
        }
        Ok(bindings)
    }

    /// Adds all of `other`'s bindings.
    ///
    /// # Errors
    /// A name is bound to two numbers.
    pub fn merge(mut self, other: &Self) -> Result<Self, Diagnostic> {
        for (name, &value) in &other.named {
            self.add(&format!("{name}={value}"))?;
        }
        if let Some(value) = other.rest {
            self.add(&format!("*={value}"))?;
        }
        Ok(self)
    }

    fn add(&mut self, part: &str) -> Result<(), Diagnostic> {
        let parsed = part.rsplit_once('=').map(|(name, value)| (name.trim(), value.trim().parse::<u64>()));
        let Some((name, Ok(value))) = parsed else {
            let text = format!("binding `{part}` is not of the form NAME=N with a whole number N");
            return Err(
                Diagnostic::error(code::UNKNOWN_BINDING, text).with_help("write for example --bind batch=8,seq=1024")
            );
        };
        let earlier = if name == "*" { self.rest.replace(value) } else { self.named.insert(name.to_owned(), value) };
        match earlier {
            Some(earlier) if earlier != value => {
                let text = format!("`{name}` is bound to both {earlier} and {value}");
                Err(Diagnostic::error(code::IMPOSSIBLE_BINDING, text))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The inputs with all dimensions bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    /// Types by input name.
    pub(super) types: BTreeMap<String, Type>,
    /// Numbers by symbol, those that the inputs name.
    pub(super) symbols: BTreeMap<String, u64>,
    /// Every dimension that was open: input, axis, symbol (or `input.axis`), number.
    pub(super) places: Vec<BoundPlace>,
}

/// A dimension that a binding decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoundPlace {
    /// The input.
    pub(super) input: String,
    /// The axis.
    pub(super) axis: usize,
    /// What the user calls it.
    pub(super) symbol: String,
    /// Its number.
    pub(super) value: u64,
}

impl Bound {
    /// `input_ids[batch=2, seq=64]`, for notes.
    pub(super) fn describe(&self) -> Option<String> {
        let mut inputs: Vec<(&str, Vec<String>)> = Vec::new();
        for place in &self.places {
            let text = format!("{}={}", place.symbol, place.value);
            match inputs.last_mut() {
                Some((input, parts)) if *input == place.input => parts.push(text),
                Some(_) | None => inputs.push((&place.input, vec![text])),
            }
        }
        let shown: Vec<String> = inputs.iter().map(|(input, parts)| format!("{input}[{}]", parts.join(", "))).collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }
}

/// Binds `inputs`; `micro_batch` replaces the number of the batch dimension.
pub(super) fn bind(inputs: &[Declared], bindings: &Bindings, micro_batch: Option<u64>) -> Result<Bound, Diagnostics> {
    let mut binder =
        Binder { bindings, batch: batch_symbol(inputs), micro_batch, bound: Bound::default(), problems: Vec::new() };
    binder.refuse_unknown_names(inputs);
    for input in inputs {
        binder.input(input);
    }
    if binder.problems.is_empty() { Ok(binder.bound) } else { Err(binder.problems) }
}

struct Binder<'a> {
    bindings: &'a Bindings,
    batch: Option<String>,
    micro_batch: Option<u64>,
    bound: Bound,
    problems: Diagnostics,
}

impl Binder<'_> {
    fn input(&mut self, input: &Declared) {
        let name = &input.name;
        let dtype = match &input.dtype {
            Ok(dtype) => *dtype,
            Err(found) => {
                let text = format!("input `{name}` has {found}, expected a tensor of a type that trainc knows");
                self.problems.push(at_input(Diagnostic::error(code::NOT_IN_GRAPH, text), name));
                return;
            }
        };
        let Some(dims) = &input.dims else {
            let text = format!("input `{name}` declares no rank");
            let help = "declare the input's shape in the model; dimensions may be symbolic";
            self.problems.push(at_input(Diagnostic::error(code::UNBOUND_SYMBOL, text), name).with_help(help));
            return;
        };
        let shape: Vec<Option<u64>> =
            dims.iter().enumerate().map(|(axis, dim)| self.dimension(name, axis, dim)).collect();
        if let Some(shape) = shape.into_iter().collect::<Option<Vec<u64>>>() {
            let ty = Type::new(dtype, shape);
            match super::emit::check_size(&ty) {
                Ok(()) => drop(self.bound.types.insert(name.clone(), ty)),
                Err(fail) => {
                    let text = format!("input `{name}`: {}", fail.message);
                    self.problems.push(at_input(Diagnostic::error(code::IMPOSSIBLE_BINDING, text), name));
                }
            }
        }
    }

    fn dimension(&mut self, input: &str, axis: usize, dim: &Dim) -> Option<u64> {
        let place = place_name(input, axis);
        let by_place = self.bindings.named.get(&place).copied();
        let symbol = match dim {
            Dim::Fixed(value) => {
                if let Some(bound) = by_place.filter(|bound| bound != value) {
                    let text = format!(
                        "axis {axis} of input `{input}` is {value} in the model and cannot be bound to {bound}"
                    );
                    self.problems.push(at_input(Diagnostic::error(code::IMPOSSIBLE_BINDING, text), input));
                }
                return self.checked(input, axis, &place, *value);
            }
            Dim::Symbol(symbol) => symbol.clone(),
            Dim::Unknown => place.clone(),
        };
        let is_batch = axis == 0 && self.micro_batch.is_some() && self.is_batch(&symbol, dim);
        let value = if is_batch { self.micro_batch } else { None }
            .or(by_place)
            .or_else(|| self.named(&symbol))
            .or_else(|| self.expression(&symbol))
            .or(self.bindings.rest);
        let Some(value) = value else {
            self.unbound(input, axis, &symbol);
            return None;
        };
        if let (Dim::Symbol(_), Some(&other)) = (dim, self.bound.symbols.get(&symbol))
            && other != value
        {
            let text =
                format!("axis {axis} of input `{input}` is bound to {value}, but its symbol `{symbol}` to {other}");
            self.problems.push(at_input(Diagnostic::error(code::IMPOSSIBLE_BINDING, text), input));
            return None;
        }
        let value = self.checked(input, axis, &symbol, value)?;
        self.bound.symbols.insert(symbol.clone(), value);
        self.bound.places.push(BoundPlace { input: input.to_owned(), axis, symbol, value });
        Some(value)
    }

    fn named(&self, symbol: &str) -> Option<u64> {
        self.bindings.named.get(symbol).copied()
    }

    fn is_batch(&self, symbol: &str, dim: &Dim) -> bool {
        *dim == Dim::Unknown || self.batch.as_deref() == Some(symbol) || symbol.to_lowercase().contains("batch")
    }

    /// Symbols such as `past + seq`, which exporters write for sums and products of other symbols.
    fn expression(&self, symbol: &str) -> Option<u64> {
        let mut total = 0u64;
        for term in symbol.split('+') {
            let mut product = 1u64;
            for factor in term.split('*').map(str::trim) {
                let value = factor.parse().ok().or_else(|| self.named(factor)).or(self.bindings.rest)?;
                product = product.checked_mul(value)?;
            }
            total = total.checked_add(product)?;
        }
        (symbol.contains(['+', '*'])).then_some(total)
    }

    fn checked(&mut self, input: &str, axis: usize, symbol: &str, value: u64) -> Option<u64> {
        if value > 0 && value < 1 << 31 {
            return Some(value);
        }
        let text = format!("dimension `{symbol}` (axis {axis} of input `{input}`) cannot be {value}");
        self.problems.push(
            at_input(Diagnostic::error(code::IMPOSSIBLE_BINDING, text), input)
                .with_help(format!("bind a number from 1 to {} with --bind {symbol}=N", (1u64 << 31) - 1)),
        );
        None
    }

    fn unbound(&mut self, input: &str, axis: usize, symbol: &str) {
        let parts = symbol.split(['+', '*']).map(str::trim);
        let open: Vec<&str> = parts.filter(|part| part.parse::<u64>().is_err() && self.named(part).is_none()).collect();
        for symbol in open {
            let subject = format!("dimension `{symbol}` ");
            if self.problems.iter().any(|problem| problem.message.starts_with(&subject)) {
                continue;
            }
            let text = format!("{subject}(axis {axis} of input `{input}`) is not bound");
            self.problems.push(
                at_input(Diagnostic::error(code::UNBOUND_SYMBOL, text), input)
                    .with_help(format!("bind it with --bind {symbol}=N, or all open dimensions with --bind '*=N'")),
            );
        }
    }

    fn refuse_unknown_names(&mut self, inputs: &[Declared]) {
        let mut symbols = BTreeSet::new();
        let mut known = BTreeSet::new();
        for input in inputs {
            for (axis, dim) in input.dims.iter().flatten().enumerate() {
                known.insert(place_name(&input.name, axis));
                match dim {
                    Dim::Fixed(_) => {}
                    Dim::Symbol(symbol) => {
                        symbols.insert(symbol.clone());
                        known.extend(symbol.split(['+', '*']).map(|part| part.trim().to_owned()));
                    }
                    Dim::Unknown => {
                        symbols.insert(place_name(&input.name, axis));
                    }
                }
            }
        }
        for name in self.bindings.named.keys().filter(|name| !symbols.contains(*name) && !known.contains(*name)) {
            let text = format!("binding `{name}` matches no dimension of the model's inputs");
            let listed = symbols.iter().map(|symbol| format!("`{symbol}`")).collect::<Vec<_>>().join(", ");
            let help = if listed.is_empty() {
                "all input dimensions of the model are fixed".to_owned()
            } else {
                format!("the open dimensions are {listed}")
            };
            self.problems.push(Diagnostic::error(code::UNKNOWN_BINDING, text).with_help(help));
        }
    }
}

/// The symbol of the batch: that of axis 0 of the first input that has one.
fn batch_symbol(inputs: &[Declared]) -> Option<String> {
    inputs.iter().find_map(|input| match input.dims.as_ref()?.first()? {
        Dim::Symbol(symbol) => Some(symbol.clone()),
        Dim::Fixed(_) | Dim::Unknown => None,
    })
}

fn place_name(input: &str, axis: usize) -> String {
    format!("{input}.{axis}")
}

fn at_input(diagnostic: Diagnostic, name: &str) -> Diagnostic {
    diagnostic.at(Place::Model { kind: "input", name: name.to_owned() }, "declared here")
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainc_ir::DType;

    fn ids() -> Vec<Declared> {
        let dims = vec![Dim::Symbol("batch".into()), Dim::Symbol("seq".into()), Dim::Unknown];
        let mask = vec![Dim::Symbol("batch".into()), Dim::Symbol("seq + 1".into()), Dim::Fixed(3)];
        vec![
            Declared { name: "ids".into(), dtype: Ok(DType::I64), dims: Some(dims) },
            Declared { name: "mask".into(), dtype: Ok(DType::F32), dims: Some(mask) },
        ]
    }

    fn of(text: &str, micro_batch: Option<u64>) -> Result<Bound, Diagnostics> {
        bind(&ids(), &Bindings::parse(text).unwrap(), micro_batch)
    }

    fn messages(text: &str) -> Vec<(&'static str, String)> {
        of(text, None).unwrap_err().into_iter().map(|problem| (problem.code, problem.message)).collect()
    }

    #[test]
    fn symbols_places_sums_and_the_rest_bind() {
        let bound = of("batch=2,seq=64,ids.2=5", None).unwrap();
        assert_eq!(bound.types["ids"].shape, [2, 64, 5]);
        assert_eq!(bound.types["mask"].shape, [2, 65, 3]);
        assert_eq!(of("seq=64,*=7", None).unwrap().types["ids"].shape, [7, 64, 7]);
        assert_eq!(of("batch=2,seq=64,ids.2=5", Some(9)).unwrap().types["mask"].shape, [9, 65, 3]);
        assert_eq!(bound.describe().unwrap(), "ids[batch=2, seq=64, ids.2=5], mask[batch=2, seq + 1=65]");
    }

    #[test]
    fn every_fault_names_input_axis_and_symbol() {
        let open = messages("batch=2");
        assert_eq!(open[0], ("E0117", "dimension `seq` (axis 1 of input `ids`) is not bound".into()));
        assert!(open[1].1.contains("`ids.2`"), "{open:?}");
        let unknown = of("batch=2,sequence=8,*=4", None).unwrap_err();
        assert_eq!(unknown[0].code, "E0118");
        assert_eq!(unknown[0].help.as_deref(), Some("the open dimensions are `batch`, `ids.2`, `seq`, `seq + 1`"));
        assert_eq!(messages("batch=0,*=4")[0].0, "E0119");
        assert_eq!(messages("*=4,mask.2=9")[0].1, "axis 2 of input `mask` is 3 in the model and cannot be bound to 9");
    }

    #[test]
    fn malformed_bindings_are_refused() {
        assert!(Bindings::parse("batch").is_err());
        assert!(Bindings::parse("batch=x").is_err());
        assert!(Bindings::parse("a=1,a=2").is_err());
        assert!(Bindings::parse("a.b=c=3").unwrap().named.contains_key("a.b=c"));
    }
}
