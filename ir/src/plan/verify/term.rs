//! Values by number: two values have one term if and only if they are the same operator applied to the same terms.

use crate::graph::InputRole;
use crate::op::{Op, Random};
use crate::ty::Type;
use std::collections::HashMap;

/// A value. Shapes are no part of it: a value and its reshape have one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term(u32);

impl Term {
    /// What was read by mistake; stands for any value, so that one mistake gives one error.
    pub(super) const UNKNOWN: Self = Self(0);
    /// The value of every type without bytes.
    pub(super) const EMPTY: Self = Self(1);
}

/// An operator at fixed types, the sites of random operators left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KernelNumber(u32);

/// What a kernel computes, apart from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) kernel: KernelNumber,
    /// Where the operator is random, the site that its attributes name.
    pub(super) site: Option<u64>,
    /// Whether the result is the operand itself.
    pub(super) alias: bool,
}

/// The numbers that a random operator draws: those of a micro-batch and a site.
pub(super) type Draw = Option<(u64, u64)>;

#[derive(Debug)]
struct Application {
    kernel: KernelNumber,
    draw: Draw,
    operands: std::ops::Range<u32>,
    first: Term,
    /// The next application with the same hash.
    next: Option<u32>,
    about: &'static str,
    batch: Option<u64>,
}

#[derive(Debug)]
enum Source {
    Special(&'static str),
    Leaf(InputRole, String, u64),
    Application(u32),
}

/// All terms. The table is exact: an application is found by comparing it, its hash only says where to look.
#[derive(Debug)]
pub(super) struct Terms {
    kernels: HashMap<(Op, Vec<Type>, Vec<Type>), KernelNumber>,
    applications: Vec<Application>,
    operands: Vec<Term>,
    heads: HashMap<u64, u32>,
    leaves: HashMap<(InputRole, String, u64), Term>,
    sources: Vec<Source>,
}

impl Terms {
    pub(super) fn new() -> Self {
        Self {
            kernels: HashMap::new(),
            applications: Vec::new(),
            operands: Vec::new(),
            heads: HashMap::new(),
            leaves: HashMap::new(),
            sources: vec![Source::Special("an unknown value"), Source::Special("a value without bytes")],
        }
    }

    /// Numbers an operator at these types.
    pub(super) fn signature(&mut self, op: &Op, inputs: &[Type], outputs: &[Type]) -> Signature {
        let (op, site) = match op {
            Op::Random(Random::Dropout { p, site }) => (Random::Dropout { p: *p, site: 0 }.into(), Some(*site)),
            Op::Random(Random::DropoutGrad { p, site }) => (Random::DropoutGrad { p: *p, site: 0 }.into(), Some(*site)),
            Op::Elementwise(_) | Op::Contraction(_) | Op::Reduction(_) | Op::Normalization(_) | Op::Attention(_) => {
                (op.clone(), None)
            }
            Op::Indexing(_) | Op::Movement(_) | Op::Creation(_) | Op::Loss(_) | Op::Optimizer(_) | Op::Opaque(_) => {
                (op.clone(), None)
            }
            Op::Convolution(_) | Op::Pooling(_) | Op::BatchNorm(_) => (op.clone(), None),
        };
        let alias = op.is_alias();
        let next = KernelNumber(self.kernels.len() as u32);
        let kernel = *self.kernels.entry((op, inputs.to_vec(), outputs.to_vec())).or_insert(next);
        Signature { kernel, site, alias }
    }

    /// The value of an input: of a micro-batch for data, of the step (`batch` 0) otherwise.
    pub(super) fn leaf(&mut self, role: InputRole, name: &str, batch: u64) -> Term {
        let key = (role, name.to_owned(), batch);
        if let Some(&term) = self.leaves.get(&key) {
            return term;
        }
        let term = self.push(Source::Leaf(role, name.to_owned(), batch));
        self.leaves.insert(key, term);
        term
    }

    /// The first result of an operator of the training graph; `about` and `batch` are for messages only.
    pub(super) fn intern(
        &mut self,
        kernel: KernelNumber,
        draw: Draw,
        operands: &[Term],
        results: usize,
        (about, batch): (&'static str, Option<u64>),
    ) -> Term {
        let hash = hash(kernel, draw, operands);
        if let Some(term) = self.search(hash, kernel, draw, operands) {
            return term;
        }
        let number = self.applications.len() as u32;
        let first = Term(self.sources.len() as u32);
        for _ in 0..results {
            self.push(Source::Application(number));
        }
        let start = self.operands.len() as u32;
        self.operands.extend(operands);
        let operands = start..self.operands.len() as u32;
        let next = self.heads.insert(hash, number);
        self.applications.push(Application { kernel, draw, operands, first, next, about, batch });
        first
    }

    /// The first result of an operator, where the training graph computes it.
    pub(super) fn find(&self, kernel: KernelNumber, draw: Draw, operands: &[Term]) -> Option<Term> {
        self.search(hash(kernel, draw, operands), kernel, draw, operands)
    }

    /// A result after the first.
    pub(super) fn result(first: Term, index: usize) -> Term {
        Term(first.0 + index as u32)
    }

    /// The term in words.
    pub(super) fn describe(&self, term: Term) -> String {
        match &self.sources[term.0 as usize] {
            Source::Special(text) => (*text).to_owned(),
            Source::Leaf(InputRole::Data | InputRole::Label, name, batch) => {
                format!("`{name}` of micro-batch {batch}")
            }
            Source::Leaf(_, name, _) => format!("`{name}` before the step"),
            Source::Application(number) => {
                let Application { about, batch, .. } = &self.applications[*number as usize];
                match batch {
                    Some(batch) => format!("a result of `{about}` of micro-batch {batch}"),
                    None => format!("a result of `{about}`"),
                }
            }
        }
    }

    fn push(&mut self, source: Source) -> Term {
        let term = Term(u32::try_from(self.sources.len()).expect("rule P12 bounds the number of values"));
        self.sources.push(source);
        term
    }

    fn search(&self, hash: u64, kernel: KernelNumber, draw: Draw, operands: &[Term]) -> Option<Term> {
        let mut next = self.heads.get(&hash).copied();
        while let Some(number) = next {
            let entry = &self.applications[number as usize];
            let held = &self.operands[entry.operands.start as usize..entry.operands.end as usize];
            if entry.kernel == kernel && entry.draw == draw && held == operands {
                return Some(entry.first);
            }
            next = entry.next;
        }
        None
    }
}

fn hash(kernel: KernelNumber, draw: Draw, operands: &[Term]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| (state.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let state = mix(0, u64::from(kernel.0));
    let state = match draw {
        Some((batch, site)) => mix(mix(mix(state, 1), batch), site),
        None => mix(state, 0),
    };
    operands.iter().fold(state, |state, term| mix(state, u64::from(term.0)))
}
