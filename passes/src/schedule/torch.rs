//! Schedules in the form that `torch.distributed.pipelining` loads: a line per rank with its work, separated by commas.

use super::{Schedule, ScheduleError, Work, WorkKind};
use std::fmt::Write;

impl Schedule {
    /// The compute-only form of PyTorch: `0F0,0F1,0B0,0B1`, with `I` and `W` for the halves of a backward.
    ///
    /// `_PipelineScheduleRuntime` loads it with `_load_csv(path, format="compute_only")` and adds communication itself.
    pub fn to_torch_csv(&self) -> String {
        let mut text = String::new();
        for works in &self.ranks {
            for (i, work) in works.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                write!(text, "{comma}{work}").expect("a string takes any text");
            }
            text.push('\n');
        }
        text
    }

    /// Reads the compute-only form. Empty cells are left out, and what runs at once, as `(0F1;7B0)OVERLAP_F_B`, comes one
    /// after the other.
    ///
    /// # Errors
    /// If a cell is no work, or two ranks do the work of one stage. Whether it can be executed is not checked.
    pub fn from_torch_csv(text: &str) -> Result<Self, ScheduleError> {
        let mut ranks = Vec::new();
        let mut rank_of: Vec<Option<usize>> = Vec::new();
        let mut micro_batches = 0u64;
        for (rank, line) in text.lines().enumerate() {
            let mut works = Vec::new();
            for cell in line.split(',').map(str::trim).filter(|cell| !cell.is_empty()) {
                let parts = match cell.strip_prefix('(').and_then(|cell| cell.split_once(')')) {
                    Some((parts, "OVERLAP_F_B")) => parts,
                    Some(_) => return Err(ScheduleError::NoWork { rank, cell: cell.to_owned() }),
                    None => cell,
                };
                for part in parts.split(';') {
                    let work = read(part).ok_or_else(|| ScheduleError::NoWork { rank, cell: part.to_owned() })?;
                    if rank_of.len() <= work.stage {
                        rank_of.resize(work.stage + 1, None);
                    }
                    let expected = *rank_of[work.stage].get_or_insert(rank);
                    if expected != rank {
                        return Err(ScheduleError::WrongRank { rank, work, expected });
                    }
                    micro_batches = micro_batches.max(work.micro_batch + 1);
                    works.push(work);
                }
            }
            ranks.push(works);
        }
        let missing = |stage| Work::forward(stage, 0);
        let rank_of = rank_of.into_iter().enumerate();
        let rank_of = rank_of.map(|(stage, rank)| rank.ok_or(ScheduleError::Missing { work: missing(stage) }));
        Ok(Self { micro_batches, rank_of: rank_of.collect::<Result<_, _>>()?, ranks })
    }
}

/// `2F0`; numbers that no schedule has are refused.
fn read(cell: &str) -> Option<Work> {
    let (stage, rest) = cell.split_at(cell.find(|letter: char| !letter.is_ascii_digit())?);
    let kind = match rest.chars().next()? {
        'F' => WorkKind::Forward,
        'B' => WorkKind::Backward,
        'I' => WorkKind::InputGrad,
        'W' => WorkKind::WeightGrad,
        _ => return None,
    };
    let micro_batch = &rest[1..];
    let digits = !micro_batch.is_empty() && micro_batch.bytes().all(|byte| byte.is_ascii_digit());
    let (stage, micro_batch): (u64, u64) = (stage.parse().ok()?, micro_batch.parse().ok().filter(|_| digits)?);
    let most = super::Shape::MOST;
    (stage < most && micro_batch < most).then_some(Work { kind, stage: stage as usize, micro_batch })
}
