//! Where the tokens of a run come from: a file of token ids, or a seeded synthetic corpus.

use super::error::RunError;
use super::job::Batches;
use super::limits::limit;
use crate::host::{Site, Tensor, normal};
use trainc_ir::plan::{Plan, PlanInput};
use trainc_ir::{DType, InputRole};

/// Width of the token ids of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenWidth {
    /// Two bytes, as nanoGPT writes them.
    U16,
    /// Four bytes.
    U32,
}

/// The text that windows of tokens are drawn from.
#[derive(Clone, Debug)]
enum Corpus {
    /// Tokens of a file.
    Tokens(Vec<u32>),
    /// An order-2 Markov chain: the two last tokens name four candidates, drawn with fixed odds.
    Synthetic,
}

/// Feeds a plan: integer inputs get windows of tokens, masks get ones, floats get normal numbers.
///
/// The window of a sample depends on the seed, the step and the sample's number in the global batch alone, so that it is the
/// same however the batch is split. All integer inputs of a sample see the same window, labels of the tokens' shape too;
/// labels of another shape get a class that follows from the sample's first tokens.
#[derive(Clone, Debug)]
pub struct Corpora {
    corpus: Corpus,
    seed: u64,
    /// For each input of the plan how large its values may be.
    limits: Vec<(String, Option<u64>)>,
}

/// A site that no random operator uses, for draws of data.
const DATA_SITE: u32 = u32::MAX - 1;
/// Odds of the four candidates of the synthetic corpus, in 1/256, accumulated.
const ODDS: [u32; 3] = [160, 216, 244];

impl Corpora {
    /// A synthetic corpus with learnable structure. Its tokens are skewed (small ids are common) and follow a chain of
    /// order two, so that a model first learns frequencies, then the chain.
    pub fn synthetic(plan: &Plan, seed: u64) -> Self {
        Self { corpus: Corpus::Synthetic, seed, limits: limits(plan) }
    }

    /// The little-endian token ids of a file.
    ///
    /// # Errors
    /// The bytes are not whole tokens, are fewer than one sample needs, or a token exceeds the model's vocabulary.
    pub fn tokens(plan: &Plan, seed: u64, bytes: &[u8], width: TokenWidth) -> Result<Self, RunError> {
        let size = match width {
            TokenWidth::U16 => 2,
            TokenWidth::U32 => 4,
        };
        if !bytes.len().is_multiple_of(size) {
            return Err(RunError::Data(format!("{} bytes are not whole tokens of {size} bytes", bytes.len())));
        }
        let tokens: Vec<u32> = match width {
            TokenWidth::U16 => bytes.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]]))).collect(),
            TokenWidth::U32 => bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        };
        if !plan.inputs.values().any(is_tokens) {
            let fed = plan.inputs.values().filter(|input| input.role != InputRole::Scalar);
            let names: Vec<_> = fed.map(|input| format!("`{}` {}", input.name, input.ty)).collect();
            let names = names.join(", ");
            return Err(RunError::Data(format!("none of the model's inputs takes tokens: they are {names}")));
        }
        let limits = limits(plan);
        for (input, (name, limit)) in plan.inputs.values().zip(&limits) {
            if is_tokens(input) {
                let window = window_len(input);
                if tokens.len() < window {
                    let found = tokens.len();
                    return Err(RunError::Data(format!(
                        "input `{name}` takes {window} tokens per sample, but the data have only {found}"
                    )));
                }
                if let (Some(limit), Some(&max)) = (limit, tokens.iter().max())
                    && u64::from(max) >= *limit
                {
                    return Err(RunError::Data(format!(
                        "the data hold token {max}, but input `{name}` takes tokens below {limit}"
                    )));
                }
            }
        }
        Ok(Self { corpus: Corpus::Tokens(tokens), seed, limits })
    }

    /// The first `len` tokens of the window of a sample, below `limit`.
    fn window(&self, step: u32, sample: u64, len: usize, limit: u64) -> Vec<u32> {
        let site = Site { seed: self.seed, step, site: DATA_SITE };
        match &self.corpus {
            Corpus::Tokens(tokens) => {
                let starts = (tokens.len() - len.min(tokens.len()) + 1) as u64;
                let word = u64::from(site.word(2 * sample)) << 32 | u64::from(site.word(2 * sample + 1));
                tokens.iter().copied().skip((word % starts) as usize).take(len).collect()
            }
            Corpus::Synthetic => {
                let first = sample << 32;
                let mut window: Vec<u32> = Vec::with_capacity(len);
                for i in 0..len {
                    let word = site.word(first + i as u64);
                    let token = match window[..] {
                        [.., a, b] => {
                            let candidate = ODDS.iter().filter(|&&odds| word >> 24 >= odds).count() as u32;
                            // The chain is a property of the seed, not of the step.
                            let chain = Site { seed: self.seed, step: 0, site: DATA_SITE - 1 };
                            let context = (u64::from(a) * limit + u64::from(b)) * 4 + u64::from(candidate);
                            skewed(chain.word(context), limit)
                        }
                        [] | [_] => skewed(word, limit),
                    };
                    window.push(token);
                }
                window
            }
        }
    }
}

/// A token below `limit`, small ones more often: the cube of a uniform number.
fn skewed(word: u32, limit: u64) -> u32 {
    let word = u128::from(word);
    ((word * word * word * u128::from(limit)) >> 96) as u32
}

impl Batches for Corpora {
    fn batch(&mut self, step: u32, micro_batch: u64, input: &PlanInput) -> Result<Tensor, RunError> {
        let ty = &input.ty;
        let n = ty.elements() as usize;
        if ty.dtype.is_float() {
            let mut wide = vec![0.0f64; n];
            let site = Site { seed: self.seed.wrapping_add(micro_batch), step, site: DATA_SITE - 2 };
            normal(site, 1.0, &mut wide);
            return Ok(encode(input, wide.into_iter().map(|x| trainc_ir::op::encode_f64(ty.dtype, x))));
        }
        if is_mask(input) {
            return Ok(encode(input, (0..n).map(|_| trainc_ir::op::encode_i64(ty.dtype, 1))));
        }
        let samples = ty.shape.first().copied().unwrap_or(1);
        let len = window_len(input);
        let limit = self.limits.iter().find(|(name, _)| *name == input.name).and_then(|(_, limit)| *limit);
        let largest = if matches!(ty.dtype, DType::Bool) { 2 } else { 128 };
        let limit = limit.unwrap_or(largest).max(1);
        let mut values = Vec::with_capacity(n);
        for sample in micro_batch * samples..(micro_batch + 1) * samples {
            if input.name.contains("position") {
                values.extend((0..len as i64).map(|i| i.min(limit as i64 - 1)));
            } else if is_tokens(input) {
                values.extend(self.window(step, sample, len, limit).into_iter().map(i64::from));
            } else {
                let first = self.window(step, sample, 2, u64::from(u32::MAX));
                let class = first.first().map_or(0, |&x| i64::from(x) % limit as i64);
                values.extend(std::iter::repeat_n(class, len));
            }
        }
        Ok(encode(input, values.into_iter().map(|x| trainc_ir::op::encode_i64(ty.dtype, x))))
    }
}

fn limits(plan: &Plan) -> Vec<(String, Option<u64>)> {
    plan.inputs.iter().map(|(id, input)| (input.name.clone(), limit(plan, id))).collect()
}

/// Whether the input takes one token per position: integers, more than one per sample, and no mask.
fn is_tokens(input: &PlanInput) -> bool {
    let is_sequence = input.ty.rank() >= 2 && input.role != InputRole::Scalar;
    is_sequence && !input.ty.dtype.is_float() && !is_mask(input) && !input.name.contains("position")
}

fn is_mask(input: &PlanInput) -> bool {
    input.name.contains("mask") || input.ty.dtype == DType::Bool
}

/// Elements per sample.
fn window_len(input: &PlanInput) -> usize {
    input.ty.shape.iter().skip(1).product::<u64>() as usize
}

fn encode(input: &PlanInput, elements: impl Iterator<Item = Vec<u8>>) -> Tensor {
    let bytes: Vec<u8> = elements.flatten().collect();
    Tensor::from_bytes(input.ty.clone(), &bytes).expect("one element was encoded for each place")
}

#[cfg(test)]
mod tests {
    use super::{Batches, Corpora, Corpus, RunError, TokenWidth};
    use crate::run::tests::two_ranks;
    use trainc_ir::plan::{Plan, PlanInput};
    use trainc_ir::{DType, InputRole, Type};

    const LIMIT: u64 = 50;

    fn input(shape: &[u64]) -> PlanInput {
        PlanInput { name: "ids".to_owned(), role: InputRole::Data, ty: Type::new(DType::I64, shape) }
    }

    fn plan(input: PlanInput) -> Plan {
        let mut plan = two_ranks();
        plan.inputs = [input].into_iter().collect();
        plan
    }

    fn synthetic() -> Corpora {
        Corpora { corpus: Corpus::Synthetic, seed: 7, limits: vec![("ids".to_owned(), Some(LIMIT))] }
    }

    #[test]
    fn samples_do_not_depend_on_how_the_batch_is_split() {
        let mut corpora = synthetic();
        let whole = corpora.batch(3, 0, &input(&[4, 16])).unwrap().to_f64s();
        for micro_batch in 0..2 {
            let half = corpora.batch(3, micro_batch, &input(&[2, 16])).unwrap().to_f64s();
            assert_eq!(half, whole[micro_batch as usize * 32..][..32]);
        }
        assert_ne!(corpora.batch(4, 0, &input(&[4, 16])).unwrap().to_f64s(), whole, "steps differ");
    }

    #[test]
    fn the_synthetic_corpus_is_a_skewed_chain_of_order_two() {
        let mut corpora = synthetic();
        let tokens = corpora.batch(1, 0, &input(&[400, 64])).unwrap().to_f64s();
        assert!(tokens.iter().all(|&t| t >= 0.0 && t < LIMIT as f64));
        let small = tokens.iter().filter(|&&t| t < LIMIT as f64 / 8.0).count();
        // The cube of a uniform number is below 1/8 half of the time.
        assert!((small as f64 / tokens.len() as f64 - 0.5).abs() < 0.1);
        let mut next = std::collections::BTreeMap::<(u64, u64), std::collections::BTreeSet<u64>>::new();
        for sample in tokens.chunks(64) {
            for w in sample.windows(3) {
                next.entry((w[0] as u64, w[1] as u64)).or_default().insert(w[2] as u64);
            }
        }
        assert!(next.values().all(|followers| followers.len() <= 4), "two tokens name four candidates");
    }

    #[test]
    fn windows_of_a_file_are_runs_of_its_tokens() {
        let bytes: Vec<u8> = (0..1000u16).flat_map(u16::to_le_bytes).collect();
        let mut corpora = Corpora::tokens(&plan(input(&[8, 10])), 7, &bytes, TokenWidth::U16).unwrap();
        let tokens = corpora.batch(1, 0, &input(&[8, 10])).unwrap().to_f64s();
        assert!(tokens.chunks(10).all(|sample| sample.windows(2).all(|w| w[1] == w[0] + 1.0)));
        let starts: std::collections::BTreeSet<u64> = tokens.chunks(10).map(|sample| sample[0] as u64).collect();
        assert!(starts.len() > 4, "samples start at different places");
    }

    #[test]
    fn a_file_must_fit_the_plan() {
        let tokens = |bytes: &[u8], width| Corpora::tokens(&plan(input(&[8, 10])), 7, bytes, width).map(drop);
        assert!(matches!(tokens(&[0; 30], TokenWidth::U32), Err(RunError::Data(m)) if m.contains("whole tokens")));
        assert!(matches!(tokens(&[0; 18], TokenWidth::U16), Err(RunError::Data(m)) if m.contains("only 9")));
        assert_eq!(tokens(&[0; 40], TokenWidth::U32), Ok(()));
    }

    #[test]
    fn a_model_without_tokens_takes_no_file() {
        for bytes in [&[][..], &[0; 40]] {
            let error = Corpora::tokens(&plan(input(&[8])), 7, bytes, TokenWidth::U16).map(drop);
            assert!(matches!(error, Err(RunError::Data(m)) if m.ends_with("they are `ids` i64[8]")));
        }
    }
}
