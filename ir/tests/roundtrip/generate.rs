//! Draws graphs that need not be valid, with every operator and awkward names, numbers and data, from a seed.

use trainc_ir::id::{Id, SideTable, Table};
use trainc_ir::op::{Attr, Literal, LiteralData, Op, Real};
use trainc_ir::{
    Contribution, DType, Def, Graph, Input, InputRole, Node, NodeId, Origin, Output, OutputRole, Parameter, Phase,
    TrainingGraph, Type, Value, ValueId,
};

/// A source of graphs.
pub(crate) struct Generator {
    state: u64,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn several<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    fn name(&mut self) -> String {
        const PARTS: [&str; 14] = [
            "",
            "x",
            "/h.0/MatMul",
            "\"",
            "\\",
            "\n",
            "\r\n\t",
            "; no comment",
            "\0\u{7f}",
            "é",
            "🦀",
            "}",
            "\\u{41}",
            " ",
        ];
        self.several(4, |g| g.pick(&PARTS)).concat()
    }

    fn ty(&mut self) -> Type {
        let dtype = self.pick(&DType::ALL);
        let shape = self.several(4, |g| {
            let any = g.next();
            g.pick(&[0, 1, 2, 3, 64, u64::MAX, i64::MAX as u64, any])
        });
        Type { dtype, shape }
    }

    fn int(&mut self) -> i64 {
        let any = self.next() as i64;
        self.pick(&[0, 1, -1, 7, i64::MIN, i64::MAX, any])
    }

    fn real(&mut self) -> Real {
        let any = f64::from_bits(self.next());
        let special = [0.0, -0.0, 1.0, 1e-5, 1e300, 5e-324, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, any];
        Real::new(self.pick(&special))
    }

    fn literal(&mut self) -> Literal {
        let dtype = self.pick(&DType::ALL);
        let shape = self.several(3, |g| g.pick(&[0, 1, 2, 3]));
        let ty = Type { dtype, shape };
        let splat = self.chance(2);
        let fitting = if splat { 1 } else { ty.elements() as usize } * dtype.bytes() as usize;
        let len = if self.chance(8) { self.below(20) } else { fitting };
        let mut data: Vec<u8> = (0..len).map(|_| self.next() as u8).collect();
        match self.below(3) {
            // Ones in all bits are a NaN of every float type; zeros with one high bit are its negative zero.
            0 => data.fill(0xff),
            1 => {
                data.fill(0);
                data.last_mut().into_iter().for_each(|byte| *byte = 0x80);
            }
            _ => {}
        }
        let data = if splat { LiteralData::Splat(data) } else { LiteralData::Dense(data) };
        Literal { ty, data }
    }

    /// An operator of any family: its attributes are found by asking for it until nothing is missing.
    fn op(&mut self) -> Op {
        let spellings: Vec<_> = Op::spellings().map(|(_, spelling)| spelling).collect();
        let spelling = self.pick(&spellings);
        let mut attrs: Vec<(String, Attr)> = Vec::new();
        loop {
            let message = match Op::from_attrs(spelling, attrs.iter().map(|(name, attr)| (name.as_str(), attr))) {
                Ok(op) => return op,
                Err(message) => message,
            };
            let (name, expected) = message
                .strip_prefix(&format!("`{spelling}` needs the attribute `"))
                .and_then(|rest| rest.strip_suffix(')')?.split_once("` ("))
                .unwrap_or_else(|| panic!("{message}"));
            attrs.push((name.to_owned(), self.attr(expected)));
        }
    }

    fn attr(&mut self, expected: &str) -> Attr {
        match expected {
            "true or false" => Attr::Bool(self.chance(2)),
            "a whole number" => Attr::Int(self.int()),
            "a whole number that is not negative" => Attr::Int(self.int() & i64::MAX),
            "a number" => Attr::Real(self.real()),
            "a quoted text" => Attr::Text(self.name()),
            "an element type" => Attr::Word(self.pick(&DType::ALL).name().to_owned()),
            "a list of whole numbers" => Attr::Ints(self.several(4, Self::int)),
            "a list of whole numbers that are not negative" => Attr::Ints(self.several(4, |g| g.int() & i64::MAX)),
            "a list of types" => Attr::Types(self.several(3, Self::ty)),
            "constant data" => Attr::Literal(self.literal()),
            words => {
                let words: Vec<_> = words.split('`').skip(1).step_by(2).collect();
                Attr::Word(self.pick(&words).to_owned())
            }
        }
    }

    /// A graph whose values are numbered in any order and used anywhere.
    pub(crate) fn graph(&mut self) -> Graph {
        let n_inputs = self.below(5);
        let results: Vec<usize> = self.several(8, |g| g.below(4));
        let n_values = n_inputs + results.iter().sum::<usize>();
        let mut numbers: Vec<ValueId> = (0..n_values).map(ValueId::from_index).collect();
        if self.chance(2) {
            for i in (1..n_values).rev() {
                let j = self.below(i + 1);
                numbers.swap(i, j);
            }
        }
        let mut graph = Graph { name: self.name(), ..Graph::default() };
        let mut defs = vec![None; n_values];
        for (i, &value) in numbers[..n_inputs].iter().enumerate() {
            defs[value.index()] = Some(Def::Input(i));
            let (role, _) = self.pick(&InputRole::ALL);
            graph.inputs.push(Input { name: self.name(), role, value });
        }
        let mut rest = &numbers[n_inputs..];
        for count in results {
            let (outputs, later) = rest.split_at(count);
            rest = later;
            let inputs = self.several(4, |g| ValueId::from_index(g.below(n_values + 2)));
            let node = graph.nodes.push(Node { op: self.op(), inputs, outputs: outputs.to_vec() });
            for (index, value) in outputs.iter().enumerate() {
                defs[value.index()] = Some(Def::Result { node, index });
            }
            if self.chance(2) {
                let origin = if self.chance(4) { None } else { Some(Origin { name: self.name() }) };
                graph.origins.set(node, origin);
            }
        }
        for def in defs {
            graph.values.push(Value { ty: self.ty(), def: def.expect("every number is given out once") });
        }
        graph.outputs = self.several(3, |g| {
            let (role, _) = g.pick(&OutputRole::ALL);
            Output { name: g.name(), role, value: ValueId::from_index(g.below(n_values + 1)) }
        });
        graph
    }

    /// A training graph with any phases, anchors and parameters.
    pub(crate) fn training(&mut self) -> TrainingGraph {
        const PHASES: [Phase; 5] =
            [Phase::Forward, Phase::InputGrad, Phase::WeightGrad, Phase::Recompute, Phase::Update];
        let step = self.graph();
        let mut phases = SideTable::new(Phase::Forward);
        let mut anchors = SideTable::new(None);
        for node in step.nodes.ids() {
            if self.chance(2) {
                phases.set(node, self.pick(&PHASES));
            }
            if self.chance(2) {
                anchors.set(node, Some(NodeId::from_index(self.below(9))));
            }
        }
        let parameters: Table<_, _> = self
            .several(3, |g| {
                let contributions = g.several(3, |g| Contribution {
                    value: ValueId::from_index(g.below(20)),
                    user: NodeId::from_index(g.below(9)),
                });
                Parameter { name: g.name(), input: ValueId::from_index(g.below(20)), contributions }
            })
            .into_iter()
            .collect();
        let forward_nodes = self.below(9);
        TrainingGraph { step, forward_nodes, phases, anchors, parameters, update: self.graph() }
    }

    /// The text with a few characters dropped, doubled or replaced, or a line swapped for another.
    pub(crate) fn damage(&mut self, text: &str) -> String {
        const NOISE: [char; 16] = ['v', '0', '9', '-', '"', '\\', '(', ']', '<', '=', ':', ',', '\n', ';', 'é', 'e'];
        if self.chance(3) {
            let mut lines: Vec<_> = text.lines().collect();
            let (i, j) = (self.below(lines.len()), self.below(lines.len()));
            lines.swap(i, j);
            return lines.join("\n");
        }
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(2) {
            let at = self.below(chars.len());
            match self.below(3) {
                0 => drop(chars.remove(at)),
                1 => chars.insert(at, chars[at]),
                _ => chars[at] = self.pick(&NOISE),
            }
        }
        chars.into_iter().collect()
    }
}
