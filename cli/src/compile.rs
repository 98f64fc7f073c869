//! From a model and a cluster to a plan and the files that go with it.

use crate::cluster::{estimated_only, not_measured, read_cluster, shortened, with_profile};
use crate::failure::{BAD_OPTION, CANNOT_WRITE, Failure, FailureKind};
use crate::folder::{FILES, KUBERNETES, MODEL_PATH, PLAN_JSON, PLAN_PB, SLURM, SUMMARY, model_path};
use crate::header::header;
use crate::infeasible;
use crate::options::{CompileOptions, Recompute};
use crate::prepare::{Prepared, prepare};
use std::path::{Path, PathBuf};
use trainc_backend::{
    FolderFiles, KubernetesOptions, PlacementRequest, SlurmOptions, kubernetes_manifest, plan_to_json,
    plan_to_protobuf, slurm_script, summary_to_json, write_files,
};
use trainc_ir::plan::{PlanError, VerifiedPlan, verify};
use trainc_ir::{Cluster, Diagnostic, ImportOptions, Imported, ModelSource};
use trainc_passes::PassEvent;
use trainc_passes::plan::partition::{Partition, RecomputePolicy, Stages};
use trainc_passes::plan::{PlanOptions, Planned, plan_with};
use trainc_passes::schedule::Schedule;

/// A compiled model.
#[derive(Debug)]
pub struct Compiled {
    /// The plan.
    pub plan: VerifiedPlan,
    /// How the model was divided, and which divisions lost.
    pub partition: Partition,
    /// The order of work.
    pub schedule: Schedule,
    /// The cluster that the plan is for.
    pub cluster: Cluster,
    /// Every file that was read: the model, those of its data files that were needed, the cluster.
    pub inputs: Vec<PathBuf>,
    /// Warnings and notes.
    pub notes: Vec<Diagnostic>,
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To be run.
    Programs,
    /// To be looked at.
    Estimate,
}

/// What is told of a compilation while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A pass starts or is done.
    Pass(PassEvent<'a>),
    /// A step that is no pass is done: those of planning, `verify`.
    Done(&'static str),
}

/// Compiles a model.
///
/// # Errors
/// What in the model, the cluster or the options stands in the way, or why nothing fits.
pub fn compile(options: &CompileOptions) -> Result<Compiled, Failure> {
    compile_with(options, &mut |_| {})
}

/// Compiles a model; `observer` is told how it goes on.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(options: &CompileOptions, observer: &mut dyn FnMut(Progress<'_>)) -> Result<Compiled, Failure> {
    compile_for(Purpose::Programs, options, observer)
}

/// Plans a model for its estimate: on GPUs too that no program can be emitted for. Such a plan cannot be written.
///
/// # Errors
/// As [`compile`].
pub fn estimate(options: &CompileOptions) -> Result<Compiled, Failure> {
    compile_for(Purpose::Estimate, options, &mut |_| {})
}

fn compile_for(
    purpose: Purpose,
    options: &CompileOptions,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<Compiled, Failure> {
    let stages = stages(options.stages)?;
    let Imported { cluster, toml: cluster_text, notes: mut cluster_notes } =
        read_cluster(std::slice::from_ref(&options.cluster), &ImportOptions::default())?;
    let (cluster, profile) = with_profile(cluster, options.profile.as_deref())?;
    let given = shortened(&cluster, &mut cluster_notes);
    let cluster = if purpose == Purpose::Estimate { given.for_estimates() } else { given.clone() };
    let prepared = prepare(&options.model, &mut |event| observer(Progress::Pass(event)))?;
    let Prepared { model, training, micro_batches, micro_batch, notes } = &prepared;
    let graph = training.graph();
    let of_cluster = (cluster.name.as_str(), cluster_text.as_str());
    let of_model = (model.name(), model.digest());
    let header = header(options, of_model, of_cluster, graph, *micro_batch, profile.as_deref());
    let plan_options = PlanOptions {
        micro_batches: *micro_batches,
        stages,
        recompute: match options.recompute {
            Recompute::None => RecomputePolicy::None,
            Recompute::Full => RecomputePolicy::Full,
            Recompute::Fit => RecomputePolicy::Fit,
        },
        schedule: options.schedule,
        loops: loops(options.loops)?,
    };
    let mut done = |step| observer(Progress::Done(step));
    let Planned { plan, partition, units: _, schedule } = plan_with(graph, &cluster, &plan_options, &header, &mut done)
        .map_err(|why| {
            let mut failure = infeasible::failure(&why, &cluster, &prepared, options, &plan_options);
            failure.diagnostics.append(&mut cluster_notes);
            failure
        })?;
    let plan = verify(&plan, graph)
        .map_err(|errors| Failure { kind: FailureKind::Internal, diagnostics: errors.iter().map(broken).collect() })?;
    observer(Progress::Done("verify"));
    let mut inputs = model.files_read();
    inputs.push(options.cluster.clone());
    inputs.extend(options.profile.clone());
    cluster_notes.extend(notes.iter().cloned());
    cluster_notes.extend(estimated_only(&given, plan.plan()));
    cluster_notes.extend(not_measured(plan.plan(), &given));
    Ok(Compiled { plan, partition, schedule, cluster: given, inputs, notes: cluster_notes })
}

fn broken(error: &PlanError) -> Diagnostic {
    error.diagnostic().with_help("the plan was just made, so this is a bug of trainc: please report it")
}

/// The planner's form of `--pp`: without it up to as many stages as there are GPUs.
fn stages(forced: Option<u64>) -> Result<Stages, Failure> {
    let refuse = |message: String| {
        let help = "give a number from 1 to the GPUs of the cluster, or leave out --pp to have the fastest taken";
        Err(Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help)))
    };
    match forced.map(|n| (n, u32::try_from(n))) {
        Some((_, Ok(0))) => refuse("a pipeline of 0 stages holds no model".to_owned()),
        Some((_, Ok(n))) => Ok(Stages::Forced(n)),
        Some((n, Err(_))) => refuse(format!("a pipeline of {n} stages needs more GPUs than there can be")),
        None => Ok(Stages::Best { max: u32::MAX }),
    }
}

/// The planner's form of `--loops`.
fn loops(asked: Option<u64>) -> Result<Option<usize>, Failure> {
    match asked {
        Some(0) => {
            let message = "a rank with 0 stages does nothing";
            Err(Failure::usage(
                Diagnostic::error(BAD_OPTION, message).with_help("give 1 or more with --loops, or leave it out"),
            ))
        }
        asked => Ok(asked.map(|n| usize::try_from(n).unwrap_or(usize::MAX))),
    }
}

/// Writes the files of a compiled model into a folder: all or none of them, whenever it is stopped. Gives their names.
/// Other files in the folder stay.
///
/// # Errors
/// The folder cannot be written, or the requests cannot be made.
pub fn write(compiled: &Compiled, options: &CompileOptions, folder: &Path) -> Result<Vec<&'static str>, Failure> {
    let files = files(compiled, options, folder)?;
    let contents: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    write_files(folder, &FolderFiles { files: &contents, owned: &FILES })?;
    Ok(files.into_iter().map(|(name, _)| name).collect())
}

/// What [`write()`] writes into a folder.
///
/// # Errors
/// The requests cannot be made, or the folder cannot be seen.
pub fn files(
    compiled: &Compiled,
    options: &CompileOptions,
    folder: &Path,
) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let plan = compiled.plan.plan();
    let request = PlacementRequest::from_plan(plan, &compiled.cluster)?;
    let kubernetes = kubernetes_manifest(&request, &KubernetesOptions::default())?;
    let slurm = slurm_script(&request, &SlurmOptions::default())?;
    let mut files: Vec<(&'static str, Vec<u8>)> = vec![
        (PLAN_JSON, plan_to_json(plan).into_bytes()),
        (PLAN_PB, plan_to_protobuf(plan)),
        (KUBERNETES, kubernetes.into_bytes()),
        (SLURM, slurm.into_bytes()),
        (SUMMARY, summary_to_json(plan).into_bytes()),
    ];
    let path = model_path(folder, &options.model.model).map_err(|error| {
        let message = format!("cannot find the way from `{}` to the model: {error}", folder.display());
        Failure::input(Diagnostic::error(CANNOT_WRITE, message))
    })?;
    if let Some(path) = path {
        files.push((MODEL_PATH, path));
    }
    Ok(files)
}
