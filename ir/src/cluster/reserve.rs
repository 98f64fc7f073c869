//! Bytes of a GPU that a plan cannot place buffers in.

/// What the driver, the CUDA context, the libraries and the communicators keep for themselves. The built-in figures and
/// their sources stand in `ir/data/gpus.toml`; a cluster file can replace each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReserve {
    /// What the driver reports but no program sees.
    pub driver_bytes: u64,
    /// The CUDA context with its loaded modules.
    pub context_bytes: u64,
    /// Library workspace (cuBLAS) of one stream.
    pub workspace_bytes_per_stream: u64,
    /// Buffers of a communicator of two ranks.
    pub pair_communicator_bytes: u64,
    /// Buffers of a communicator of more than two ranks.
    pub communicator_bytes: u64,
}

impl MemoryReserve {
    /// Bytes that a program sees of a GPU whose driver reports `memory_bytes`.
    pub fn capacity_of(&self, memory_bytes: u64) -> u64 {
        memory_bytes.saturating_sub(self.driver_bytes)
    }

    /// Bytes of a communicator of that many ranks. A rank alone has none.
    pub fn communicator(&self, n_ranks: u32) -> u64 {
        match n_ranks {
            0 | 1 => 0,
            2 => self.pair_communicator_bytes,
            _ => self.communicator_bytes,
        }
    }

    /// Bytes that come on top of the plan's own arena: context, workspace of every stream that calls a library, and
    /// communicators, given by their numbers of ranks.
    pub fn beyond_arena(&self, n_streams: u32, communicators: &[u32]) -> u64 {
        let workspace = self.workspace_bytes_per_stream * u64::from(n_streams);
        let buffers: u64 = communicators.iter().map(|&n_ranks| self.communicator(n_ranks)).sum();
        self.context_bytes + workspace + buffers
    }
}
