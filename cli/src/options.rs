//! What a job is asked to do, in the words of the command line.

use crate::failure::{BAD_OPTION, Failure};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use trainc_ir::Diagnostic;
use trainc_passes::TrainingOptions;
use trainc_passes::plan::ScheduleChoice;
use trainc_passes::transform::{LossSpec, OptimizerConfig, Trainable};

/// A model and how it is trained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// The model file.
    pub model: PathBuf,
    /// Numbers for its open dimensions by name; `*` binds the rest.
    pub bindings: BTreeMap<String, u64>,
    /// Number of micro-batches of a step; 1 where neither this nor the global batch says otherwise.
    pub micro_batches: Option<u64>,
    /// Samples of a step: the bound batch times the micro-batches.
    pub global_batch: Option<u64>,
    /// The loss, as `cross-entropy:NAME`, `mse:NAME` or `sum:NAME`; the model's own where absent.
    pub loss: Option<String>,
    /// The optimizer, as `adamw:weight_decay=0.1`; AdamW with PyTorch's numbers where absent.
    pub optimizer: Option<String>,
    /// Patterns of the parameters to train; all where empty.
    pub train: Vec<String>,
}

/// What to compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// The model and how it is trained.
    pub model: ModelOptions,
    /// The file that describes the cluster.
    pub cluster: PathBuf,
    /// A file of measured times that replace modelled ones.
    pub profile: Option<PathBuf>,
    /// Number of ranks of the pipeline; the planner chooses where absent.
    pub stages: Option<u64>,
    /// What to recompute.
    pub recompute: Recompute,
    /// The order in which ranks do their work.
    pub schedule: ScheduleChoice,
    /// Stages of each rank; what the schedule has where absent.
    pub loops: Option<u64>,
}

/// What the backward computes again instead of keeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recompute {
    /// Nothing.
    None,
    /// Every block.
    Full,
    /// As few blocks as each stage needs to fit.
    #[default]
    Fit,
}

impl Recompute {
    /// All policies with their spelling.
    pub const ALL: [(Self, &'static str); 3] = [(Self::None, "none"), (Self::Full, "full"), (Self::Fit, "fit")];

    /// Its spelling.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(policy, _)| *policy == self).map_or("fit", |(_, name)| name)
    }
}

impl FromStr for Recompute {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let text = if text == "auto" { "fit" } else { text };
        let found = Self::ALL.iter().find(|(_, name)| *name == text).map(|(policy, _)| *policy);
        found.ok_or_else(|| {
            Diagnostic::error(BAD_OPTION, format!("`{text}` is no recompute policy"))
                .with_help("write `none`, `full` or `fit`")
        })
    }
}

/// Adds bindings in the form `NAME=N,NAME=N`. A name is anything without a comma.
///
/// # Errors
/// A part is not of that form, or a name is bound to two numbers.
pub fn parse_bindings(text: &str, bindings: &mut BTreeMap<String, u64>) -> Result<(), Failure> {
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let parsed = part.rsplit_once('=').map(|(name, value)| (name.trim(), value.trim().parse::<u64>()));
        let Some((name, Ok(value))) = parsed else {
            let message = format!("binding `{part}` is not of the form NAME=N with a whole number N");
            let help = "write for example --bind batch=8,seq=1024";
            return Err(Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help)));
        };
        if let Some(earlier) = bindings.insert(name.to_owned(), value).filter(|earlier| *earlier != value) {
            let message = format!("`{name}` is bound to both {earlier} and {value}");
            return Err(Failure::usage(Diagnostic::error(BAD_OPTION, message)));
        }
    }
    Ok(())
}

/// Bindings in the form that [`parse_bindings`] reads.
pub fn print_bindings(bindings: &BTreeMap<String, u64>) -> String {
    bindings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// What the passes are told.
pub(crate) fn training_options(options: &ModelOptions) -> Result<TrainingOptions, Failure> {
    let loss = options.loss.as_deref().map_or(Ok(LossSpec::default()), str::parse).map_err(Failure::usage)?;
    let optimizer = options.optimizer.as_deref().map_or(Ok(OptimizerConfig::default()), optimizer)?;
    Ok(TrainingOptions { loss, trainable: Trainable::matching(options.train.iter().cloned()), optimizer })
}

/// Decays of running means are below 1; everything else is finite and not negative.
fn allows(key: &str, value: f64) -> bool {
    let decay = matches!(key, "beta1" | "beta2" | "momentum");
    value.is_finite() && value >= 0.0 && (!decay || value < 1.0)
}

/// Reads `NAME` or `NAME:KEY=NUMBER,KEY=NUMBER`.
fn optimizer(text: &str) -> Result<OptimizerConfig, Failure> {
    let refuse = |message: String, help: &str| {
        Err(Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help.to_owned())))
    };
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let mut numbers = match name {
        "adamw" => vec![("beta1", 0.9), ("beta2", 0.999), ("eps", 1e-8), ("weight_decay", 0.01)],
        "sgd" => vec![("momentum", 0.0)],
        _ => return refuse(format!("there is no optimizer `{name}`"), "write `adamw` or `sgd`"),
    };
    let keys = numbers.iter().map(|(key, _)| *key).collect::<Vec<_>>().join("`, `");
    for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
        let value = setting.split_once('=').map(|(key, value)| (key.trim(), value.trim().parse::<f64>()));
        let place = value.as_ref().and_then(|(key, _)| numbers.iter_mut().find(|(known, _)| known == key));
        match (place, value) {
            (Some((key, number)), Some((_, Ok(value)))) if allows(key, value) => *number = value,
            _ => {
                let message = format!("`{setting}` is no setting that the optimizer `{name}` takes");
                let help =
                    format!("settings have the form KEY=NUMBER; keys of `{name}` are `{keys}`, decays are below 1");
                return refuse(message, &help);
            }
        }
    }
    Ok(match (name, numbers.as_slice()) {
        ("adamw", &[(_, beta1), (_, beta2), (_, eps), (_, weight_decay)]) => {
            OptimizerConfig::AdamW { beta1, beta2, eps, weight_decay }
        }
        (_, &[(_, momentum)]) if momentum > 0.0 => OptimizerConfig::SgdMomentum { momentum },
        _ => OptimizerConfig::Sgd,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimizers_are_read_with_their_numbers() {
        let adamw = OptimizerConfig::AdamW { beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1 };
        assert_eq!(optimizer("adamw:beta2=0.95, weight_decay=0.1").unwrap(), adamw);
        assert_eq!(optimizer("adamw").unwrap(), OptimizerConfig::default());
        assert_eq!(optimizer("sgd").unwrap(), OptimizerConfig::Sgd);
        assert_eq!(optimizer("sgd:momentum=0.9").unwrap(), OptimizerConfig::SgdMomentum { momentum: 0.9 });
        for wrong in ["adam", "adamw:beta3=1", "adamw:eps=", "sgd:momentum=-1", "sgd:momentum=nan", "sgd:momentum"] {
            assert_eq!(optimizer(wrong).unwrap_err().diagnostics[0].code, BAD_OPTION, "{wrong}");
        }
    }

    #[test]
    fn bindings_are_read_as_they_are_printed() {
        let mut bindings = BTreeMap::new();
        parse_bindings("batch=2, seq=64,*=8", &mut bindings).unwrap();
        parse_bindings("a.b=c=3,batch=2", &mut bindings).unwrap();
        assert_eq!(print_bindings(&bindings), "*=8,a.b=c=3,batch=2,seq=64");
        let mut again = BTreeMap::new();
        parse_bindings(&print_bindings(&bindings), &mut again).unwrap();
        assert_eq!(again, bindings);
        for wrong in ["batch", "batch=x", "batch=3"] {
            assert!(parse_bindings(wrong, &mut bindings).is_err(), "{wrong}");
        }
    }

    #[test]
    fn policies_are_read_as_they_are_named() {
        for (policy, name) in Recompute::ALL {
            assert_eq!((name.parse(), policy.name()), (Ok(policy), name));
        }
        assert_eq!("auto".parse(), Ok(Recompute::Fit));
        assert!("some".parse::<Recompute>().is_err());
    }
}
