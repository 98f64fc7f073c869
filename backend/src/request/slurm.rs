//! Slurm: a batch script, heterogeneous where the plan has several placement groups.
//!
//! One task for each GPU. GPUs are asked for by node (`--gres=gpu:TYPE:N`) and never bound to tasks: `--gpus-per-task` under
//! a typed request leaves tasks without GPUs on some versions, so every task sees the node's GPUs and takes its own by
//! `SLURM_LOCALID`. Three labels of a group speak to Slurm: `slurm/gres-type` (the type name in the site's `gres.conf`),
//! `slurm/constraint` and `slurm/partition`.

use super::codes;
use super::names::{dns_label, one_line, shell_word};
use super::placement::{ESTIMATE_ONLY, PlacementRequest, RequestGroup};
use trainc_ir::{Catalogue, Diagnostic, Diagnostics, Place, SLURM_CONSTRAINT, SLURM_GRES_TYPE, SLURM_PARTITION};

/// What the plan does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmOptions {
    /// Command of each task. Default: `trainc run .`, in the folder that the job is submitted from.
    pub command: Vec<String>,
    /// Port on which the first process listens. Default: 29500.
    pub port: u16,
    /// Time limit in Slurm's spelling; without one, the partition's default. Default: none.
    pub time: Option<String>,
    /// Account to charge. Default: none.
    pub account: Option<String>,
}

impl Default for SlurmOptions {
    fn default() -> Self {
        Self { command: ["trainc", "run", "."].map(str::to_owned).to_vec(), port: 29_500, time: None, account: None }
    }
}

/// The script, for `sbatch`.
pub fn slurm_script(request: &PlacementRequest, options: &SlurmOptions) -> Result<String, Diagnostics> {
    let components = check(request, options)?;
    let several = request.groups.len() > 1;
    let name = dns_label(&request.name, 63);
    let mut out = format!("#!/bin/bash\n# Training job {}: {}.\n", one_line(&request.name), request.size_in_words(),);
    for (i, (group, gres)) in request.groups.iter().zip(&components).enumerate() {
        if i > 0 {
            out.push_str("#SBATCH hetjob\n");
        }
        let (nodes, gpus) = (group.nodes, group.gpus_per_node);
        let names = format!("{}: {nodes} x {gpus} {}", one_line(&group.name), group.gpu.name);
        out.push_str(&format!("# Group {names}\n"));
        if let Some(warning) = ambiguity(group, gres) {
            out.push_str(&warning);
        }
        let mut directive = |option: &str, value: &str| out.push_str(&format!("#SBATCH --{option}={value}\n"));
        if i == 0 {
            directive("job-name", &name);
        }
        directive("nodes", &nodes.to_string());
        directive("ntasks-per-node", &gpus.to_string());
        directive("gres", &format!("gpu:{gres}:{gpus}"));
        for (option, value) in [
            ("constraint", group.labels.get(SLURM_CONSTRAINT)),
            ("partition", group.labels.get(SLURM_PARTITION)),
            ("time", options.time.as_ref()),
            ("account", options.account.as_ref()),
        ] {
            if let Some(value) = value {
                directive(option, value);
            }
        }
    }
    let hosts = if several { "SLURM_JOB_NODELIST_HET_GROUP_0" } else { "SLURM_JOB_NODELIST" };
    out.push_str(&format!(
        "\nset -euo pipefail\nMASTER_ADDR=$(scontrol show hostnames \"${hosts}\" | sed -n 1p)\n\
         export MASTER_ADDR MASTER_PORT={} WORLD_SIZE={}\n\nsrun",
        options.port,
        request.n_ranks()
    ));
    let command: Vec<String> = options.command.iter().map(|word| shell_word(word)).collect();
    for (i, (group, first_process)) in request.with_first_processes().enumerate() {
        let component = if several { format!(" --het-group={i}") } else { String::new() };
        let separator = if i == 0 { "" } else { " : \\\n " };
        out.push_str(&format!(
            "{separator}{component} \\\n  env TRAINC_GROUP={} TRAINC_FIRST_PROCESS={first_process} LOCAL_WORLD_SIZE={} \\\n  {}",
            shell_word(&group.name),
            group.gpus_per_node,
            command.join(" ")
        ));
    }
    out.push('\n');
    Ok(out)
}

/// The gres type of every group, or what keeps the script from being written.
fn check(request: &PlacementRequest, options: &SlurmOptions) -> Result<Vec<String>, Diagnostics> {
    let mut faults = Vec::new();
    let mut types = Vec::new();
    let mut checked = |what: String, value: Option<&String>| {
        // A directive ends at the end of its line and is split at blanks.
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:,+*&|()[]@/=".contains(c);
        if let Some(value) = value.filter(|value| value.is_empty() || !value.chars().all(allowed)) {
            let message = format!("{what} cannot be `{}` in a Slurm script", one_line(value));
            let help = "use letters, digits and the signs of Slurm's own expressions, without blanks";
            faults.push(Diagnostic::error(codes::BAD_LABEL, message).with_help(help));
        }
    };
    checked("the time limit".to_owned(), options.time.as_ref());
    checked("the account".to_owned(), options.account.as_ref());
    for group in &request.groups {
        for key in [SLURM_GRES_TYPE, SLURM_CONSTRAINT, SLURM_PARTITION] {
            checked(format!("label `{key}` of group `{}`", group.name), group.labels.get(key));
        }
    }
    for group in &request.groups {
        let gres = group.labels.get(SLURM_GRES_TYPE).or(group.gpu.slurm_type.as_ref()).filter(|_| group.gpu.cuda);
        if let Some(gres) = gres {
            types.push(gres.clone());
            continue;
        }
        let message =
            format!("Slurm cannot be asked for `{}`: it is no CUDA GPU with a known type name", group.gpu.name);
        let at = Place::Entity(format!("placement group `{}`", group.name));
        let help = if group.gpu.cuda {
            format!("give its name in `gres.conf` as label `{SLURM_GRES_TYPE}` of the group")
        } else {
            ESTIMATE_ONLY.to_owned()
        };
        faults.push(Diagnostic::error(codes::CANNOT_SELECT, message).at(at, "asks for it").with_help(help));
    }
    if faults.is_empty() { Ok(types) } else { Err(faults) }
}

/// A warning where the type name does not tell GPU types apart and nothing else does.
fn ambiguity(group: &RequestGroup, gres: &str) -> Option<String> {
    if group.labels.contains_key(SLURM_CONSTRAINT) || group.labels.contains_key(SLURM_GRES_TYPE) {
        return None;
    }
    let catalogue = Catalogue::builtin();
    let others = catalogue.types().filter(|gpu| gpu.slurm_type.as_deref() == Some(gres) && gpu.name != group.gpu.name);
    let others: Vec<&str> = others.map(|gpu| gpu.name.as_str()).collect();
    (!others.is_empty()).then(|| {
        format!(
            "# Type {gres} may also mean {}: where the site has those too,\n\
             # set the label {SLURM_CONSTRAINT} or {SLURM_GRES_TYPE} in the cluster file.\n",
            others.join(", ")
        )
    })
}
