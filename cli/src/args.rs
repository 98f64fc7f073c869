//! The command line: what each command takes. An option means the same on every command that takes it.

use crate::examples;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use trainc::{BAD_OPTION, CompileOptions, Failure, ModelOptions, Recompute, parse_bindings};
use trainc_ir::{Diagnostic, ImportOptions};
use trainc_passes::plan::ScheduleChoice;
use trainc_passes::schedule::ScheduleError;

/// Compiles a model and a description of a GPU cluster into a training plan.
#[derive(Debug, Parser)]
#[command(name = "trainc", version, disable_help_subcommand = true, max_term_width = 100, after_help = examples::TRAINC)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How to talk about it.
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan the training of a model on a cluster, and write the plan and the requests for its GPUs
    Compile(CompileArgs),
    /// Run a compiled plan on this machine, one thread per rank
    Run(RunArgs),
    /// Say what a model needs on a cluster, without writing anything
    Estimate(EstimateArgs),
    /// Replay a compiled plan on a cluster: when everything happens, and what a step's time comes from
    Simulate(SimulateArgs),
    /// Say in words what differs between two plans
    Diff(DiffArgs),
    /// Show the operators and repeated blocks of a model, or its IR
    Inspect(InspectArgs),
    /// Check a compiled plan against its model
    Verify(VerifyArgs),
    /// Show a cluster, or turn what a scheduler says of its nodes into a description
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Measure this machine's processor, in the form that --profile reads
    Profile(ProfileArgs),
    /// Explain a diagnostic code: what it means, why it matters, how to fix it
    Explain(ExplainArgs),
    /// Print a script with which your shell completes commands and options
    Completions(CompletionsArgs),
}

/// `cluster`
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Print groups, links and GPU types of a cluster
    Show(ImportArgs),
    /// Write a cluster in the form that can be edited
    Import {
        #[command(flatten)]
        args: ImportArgs,
        /// The TOML file to write; standard output if not given
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// A cluster, and what its description leaves open.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// TOML, `kubectl get nodes -o json`, `sinfo --json`, or slurm.conf with gres.conf
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Bandwidth between two nodes, in gigabits per second, which no scheduler tells
    #[arg(long, value_name = "N")]
    bandwidth_gbps: Option<f64>,
    /// Latency between two nodes, in microseconds
    #[arg(long, value_name = "N")]
    latency_us: Option<f64>,
    /// Type of the GPUs that the scheduler has no type for
    #[arg(long, value_name = "TYPE")]
    gpu: Option<String>,
    /// Offer GPUs too that are shared by time-slicing
    #[arg(long)]
    shared: bool,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct TalkArgs {
    /// Print errors and nothing else
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// How diagnostics and results are printed
    #[arg(long, global = true, value_name = "FORMAT", default_value = "human")]
    pub(crate) message_format: MessageFormat,
}

/// How diagnostics and results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// For people
    Human,
    /// One JSON object per line
    Json,
}

/// A model and how it is trained.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The model, an ONNX file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Numbers for the model's open dimensions; `*=N` binds the rest
    #[arg(long, value_name = "NAME=N,...")]
    bind: Vec<String>,
    /// Micro-batches of a step; the bound batch is one micro-batch
    #[arg(long, value_name = "N")]
    micro_batches: Option<u64>,
    /// Samples of a step: the batch times the micro-batches
    #[arg(long, value_name = "N")]
    global_batch: Option<u64>,
    /// The loss: `cross-entropy:NAME`, `mse:NAME` or `sum:NAME` of an output; the model's own if not given
    #[arg(long, value_name = "SPEC")]
    loss: Option<String>,
    /// The optimizer: `adamw` or `sgd`, with settings as in `adamw:weight_decay=0.1`
    #[arg(long, value_name = "SPEC")]
    optimizer: Option<String>,
    /// Train only the parameters that match, freeze all others; `*` stands for anything
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    train: Vec<String>,
}

/// A cluster and how the model is laid out on it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Number of ranks of the pipeline; without it the fastest is taken
    #[arg(long, value_name = "N")]
    pp: Option<u64>,
    /// The order of work: gpipe, 1f1b, interleaved, breadth-first, breadth-first:N, zb-h1, zb-v, or auto, the fastest
    #[arg(long, value_name = "KIND")]
    schedule: Option<String>,
    /// Stages of each rank, for schedules that can have several
    #[arg(long, value_name = "N")]
    loops: Option<u64>,
    /// What the backward computes again instead of keeping it: `none`, `full`, or `fit`, as little as fits
    #[arg(long, value_name = "POLICY")]
    recompute: Option<String>,
    /// Measured times in place of modelled ones, as `trainc profile` writes them
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

/// A look at the passes between the model and its training graph.
#[derive(Debug, Args)]
#[command(next_help_heading = "Passes")]
pub(crate) struct PassArgs {
    /// Print the graph after a pass to standard error
    #[arg(long, value_name = "PASS")]
    pub(crate) print_after: Vec<String>,
    /// Print how long each pass took to standard error
    #[arg(long)]
    pub(crate) time_passes: bool,
}

/// What to print in place of the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The forward graph, fused
    Ir,
    /// The training graph
    Training,
    /// The plan in its JSON form
    Plan,
    /// The order of work, a line per rank, for torch.distributed.pipelining
    TorchSchedule,
}

/// `compile`
#[derive(Debug, Args)]
#[command(after_long_help = examples::COMPILE)]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The cluster description: TOML, or nodes of Kubernetes or Slurm
    #[arg(long, value_name = "FILE", required_unless_present_any = ["stop_after", "emit"], help_heading = "Cluster")]
    cluster: Option<PathBuf>,
    #[command(flatten)]
    plan: ClusterArgs,
    /// The folder to write to; it is made if it does not exist
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["stop_after", "emit"])]
    pub(crate) output: Option<PathBuf>,
    /// Write which files the plan was made from, as a rule for Make and Ninja
    #[arg(long, value_name = "FILE", requires = "output", conflicts_with_all = ["stop_after", "emit"])]
    pub(crate) dep_file: Option<PathBuf>,
    /// Stop after a pass, or after that many, and print the graph; nothing is written
    #[arg(long, value_name = "PASS", conflicts_with = "emit", help_heading = "Passes")]
    pub(crate) stop_after: Option<String>,
    /// Print this to standard output; nothing is written
    #[arg(long, value_name = "WHAT", help_heading = "Passes")]
    pub(crate) emit: Option<Emit>,
    #[command(flatten)]
    pub(crate) passes: PassArgs,
}

/// `estimate`
#[derive(Debug, Args)]
#[command(after_long_help = examples::ESTIMATE)]
pub(crate) struct EstimateArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The cluster description: TOML, or nodes of Kubernetes or Slurm
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    cluster: PathBuf,
    #[command(flatten)]
    plan: ClusterArgs,
}

/// `inspect`
#[derive(Debug, Args)]
#[command(after_long_help = examples::INSPECT)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Stop after a pass, or after that many, and print the graph
    #[arg(long, value_name = "PASS", conflicts_with = "emit", help_heading = "Passes")]
    pub(crate) stop_after: Option<String>,
    /// Print this instead of the tables
    #[arg(long, value_name = "WHAT", help_heading = "Passes")]
    pub(crate) emit: Option<Emit>,
    #[command(flatten)]
    pub(crate) passes: PassArgs,
}

/// `verify`
#[derive(Debug, Args)]
#[command(after_long_help = examples::VERIFY)]
pub(crate) struct VerifyArgs {
    /// The folder that `compile` wrote, or a plan file
    #[arg(value_name = "DIR")]
    pub(crate) plan: PathBuf,
    /// The model, where it is not where it was when the plan was compiled
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<PathBuf>,
}

/// `simulate`
#[derive(Debug, Args)]
#[command(after_long_help = examples::SIMULATE)]
pub(crate) struct SimulateArgs {
    /// The folder that `compile` wrote, or a plan file
    #[arg(value_name = "DIR", required_unless_present_any = ["uniform", "stages"])]
    pub(crate) plan: Option<PathBuf>,
    /// The cluster description: TOML, or nodes of Kubernetes or Slurm; another than the plan's shows what its GPUs and links
    /// would do to this plan
    #[arg(long, value_name = "FILE", help_heading = "Cluster", required_unless_present_any = ["uniform", "stages"])]
    pub(crate) cluster: Option<PathBuf>,
    /// Measured times in place of modelled ones, as `trainc profile` writes them
    #[arg(long, value_name = "FILE", help_heading = "Cluster", conflicts_with_all = ["uniform", "stages"])]
    pub(crate) profile: Option<PathBuf>,
    /// Write the timeline to a file that ui.perfetto.dev and chrome://tracing open
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) schedules: ScheduleArgs,
}

/// Schedules instead of a plan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Schedules, without a plan")]
pub(crate) struct ScheduleArgs {
    /// Compare the schedules of equal stages: so many ranks, stages per rank and micro-batches
    #[arg(long, value_name = "RANKS,LOOPS,MICRO_BATCHES", conflicts_with_all = ["plan", "cluster", "trace", "stages"])]
    pub(crate) uniform: Option<String>,
    /// Only this schedule: gpipe, 1f1b, interleaved, breadth-first, breadth-first:N, zb-h1, zb-v
    #[arg(long, value_name = "KIND", requires = "uniform", conflicts_with_all = ["plan", "cluster", "trace", "stages"])]
    pub(crate) schedule: Option<String>,
    /// Search the best order of work for the unequal stages of a TOML file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "cluster", "trace"])]
    pub(crate) stages: Option<PathBuf>,
    /// Print the order of each rank in a form that other programs load
    #[arg(long, value_name = "FORM", conflicts_with_all = ["plan", "cluster", "trace"])]
    pub(crate) emit: Option<ScheduleForm>,
}

/// Forms of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScheduleForm {
    /// A line per rank, for torch.distributed.pipelining
    TorchSchedule,
}

/// `diff`
#[derive(Debug, Args)]
#[command(after_long_help = examples::DIFF)]
pub(crate) struct DiffArgs {
    /// The first plan: a folder that `compile` wrote, a plan file, or a `summary.json`
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,
    /// The second plan
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,
    /// Exit with 1 where the second plan is worse than allowed, as in `peak>+2%`, `step>+10ms` or `gpus>8`
    #[arg(long, value_name = "CONDITION,...", value_delimiter = ',')]
    pub(crate) fail_if: Vec<String>,
}

/// `profile`
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// Name of the GPU type that the times are for
    #[arg(long, value_name = "TYPE", default_value = "host")]
    pub(crate) gpu: String,
    /// The file to write; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Longest time of one kernel, in milliseconds; larger sizes are left out
    #[arg(long, value_name = "MS", default_value_t = 200)]
    pub(crate) limit_ms: u64,
}

/// `run`
#[derive(Debug, Args)]
#[command(after_long_help = examples::RUN)]
pub(crate) struct RunArgs {
    /// The folder that `compile` wrote, or a plan file
    #[arg(value_name = "DIR")]
    pub(crate) plan: PathBuf,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) steps: u32,
    /// Token ids to train on, little-endian; a synthetic corpus if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Bits of a token id in the data
    #[arg(long, value_name = "BITS", default_value = "16", value_parser = ["16", "32"])]
    pub(crate) token_bits: String,
    /// Learning rate
    #[arg(long, value_name = "RATE", default_value_t = 1e-3, allow_negative_numbers = true)]
    pub(crate) lr: f64,
    /// Seed of the data's order, of dropout, and of weights that the model carries no values for
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The model, where it is not where it was when the plan was compiled
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<PathBuf>,
    /// Poison freed bytes, refuse reads of what was never written, and report the bytes touched
    #[arg(long)]
    pub(crate) checked: bool,
    /// Threads that the kernels of all ranks share; results do not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

/// `explain`
#[derive(Debug, Args)]
#[command(after_long_help = examples::EXPLAIN)]
pub(crate) struct ExplainArgs {
    /// The code, as in `error[E0117]`, or a rule, as in `P21`; all are listed if it is not given
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// `completions`
#[derive(Debug, Args)]
#[command(after_long_help = examples::COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

impl ModelArgs {
    /// The model file.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.model
    }

    /// The options that are given; a plan has its own.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--bind", !self.bind.is_empty()),
            ("--micro-batches", self.micro_batches.is_some()),
            ("--global-batch", self.global_batch.is_some()),
            ("--loss", self.loss.is_some()),
            ("--optimizer", self.optimizer.is_some()),
            ("--train", !self.train.is_empty()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }

    /// As options.
    pub(crate) fn options(&self) -> Result<ModelOptions, Failure> {
        let mut bindings = BTreeMap::new();
        for text in &self.bind {
            parse_bindings(text, &mut bindings)?;
        }
        Ok(ModelOptions {
            model: self.model.clone(),
            bindings,
            micro_batches: self.micro_batches,
            global_batch: self.global_batch,
            loss: self.loss.clone(),
            optimizer: self.optimizer.clone(),
            train: self.train.clone(),
        })
    }
}

impl ImportArgs {
    /// As options.
    pub(crate) fn options(&self) -> Result<ImportOptions, Failure> {
        let scaled = |name: &str, value: Option<f64>, range: RangeInclusive<f64>, scale: f64| match value {
            Some(value) if !range.contains(&value) => {
                let message = format!("--{name} must be from {} to {}, found {value}", range.start(), range.end());
                Err(Failure::usage(Diagnostic::error(BAD_OPTION, message)))
            }
            value => Ok(value.map(|value| (value * scale).round() as u64)),
        };
        Ok(ImportOptions {
            bandwidth_bytes_per_s: scaled("bandwidth-gbps", self.bandwidth_gbps, 0.000_01..=1_000_000.0, 1e9 / 8.0)?,
            latency_ps: scaled("latency-us", self.latency_us, 0.0..=10_000_000.0, 1e6)?,
            gpu: self.gpu.clone(),
            shared: self.shared,
        })
    }
}

impl ClusterArgs {
    fn options(&self, model: &ModelArgs, cluster: PathBuf) -> Result<CompileOptions, Failure> {
        let recompute = self.recompute.as_deref().map_or(Ok(Recompute::default()), str::parse);
        let schedule = self.schedule.as_deref().map_or(Ok(ScheduleChoice::default()), str::parse);
        let no_schedule = |error: ScheduleError| {
            let help = "or write `auto` to have the fastest taken";
            Failure::usage(Diagnostic::error(BAD_OPTION, error.to_string()).with_help(help))
        };
        Ok(CompileOptions {
            model: model.options()?,
            cluster,
            profile: self.profile.clone(),
            stages: self.pp,
            recompute: recompute.map_err(Failure::usage)?,
            schedule: schedule.map_err(no_schedule)?,
            loops: self.loops,
        })
    }
}

impl CompileArgs {
    /// As options, where no cluster is given with none.
    pub(crate) fn options(&self) -> Result<CompileOptions, Failure> {
        self.plan.options(&self.model, self.cluster.clone().unwrap_or_default())
    }

    /// Whether a cluster is given.
    pub(crate) fn has_cluster(&self) -> bool {
        self.cluster.is_some()
    }
}

impl EstimateArgs {
    /// As options.
    pub(crate) fn options(&self) -> Result<CompileOptions, Failure> {
        self.plan.options(&self.model, self.cluster.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
