//! Weights of a run: the model's own where a loader has them, else a seeded initialization.
//!
//! The initialization depends on the seed, on the parameter's position in the plan and on its shape alone:
//! a parameter whose name ends in `bias`, `beta` or `mean` (a running average) is zero; another one of rank 1 (the weight of a normalization) is one;
//! everything else is normal with deviation 0.02, as in GPT-2. Tables that are not trained have no such default.

use super::error::RunError;
use crate::host::{Site, Tensor, normal};
use trainc_ir::DType;
use trainc_ir::plan::PlanParameter;

/// Gives the value of a weight: its bytes in the plan's type, little-endian, or `None` to have it initialized.
pub type WeightLoader<'a> = dyn FnMut(&PlanParameter) -> Result<Option<Vec<u8>>, String> + 'a;

/// A site number that no random operator of a model uses.
const INIT_SITE: u32 = u32::MAX;

/// The initial value of the parameter at position `index` of the plan.
pub(super) fn initial(
    parameter: &PlanParameter,
    index: usize,
    seed: u64,
    load: &mut WeightLoader<'_>,
) -> Result<Tensor, RunError> {
    let PlanParameter { name, ty, trained, holders: _ } = parameter;
    if let Some(bytes) = load(parameter).map_err(|why| RunError::Weight(format!("weight `{name}`: {why}")))? {
        let found = bytes.len();
        return Tensor::from_bytes(ty.clone(), &bytes).ok_or_else(|| {
            RunError::Weight(format!("weight `{name}`: expected {} bytes for {ty}, found {found}", ty.bytes()))
        });
    }
    if !ty.dtype.is_float() || (!trained && ty.rank() != 1) {
        return Err(RunError::Weight(format!(
            "the table `{name}` is not trained and the model carries no values for it; export the model with them"
        )));
    }
    let mut wide = vec![0.0f32; ty.elements() as usize];
    if ["bias", "beta", "mean"].iter().any(|end| name.ends_with(end)) {
    } else if ty.rank() <= 1 {
        wide.fill(1.0);
    } else {
        normal(Site { seed, step: index as u32, site: INIT_SITE }, 0.02, &mut wide);
    }
    let bytes = wide.iter().flat_map(|&x| trainc_ir::op::encode_f64(ty.dtype, f64::from(x)));
    debug_assert_ne!(ty.dtype, DType::Bool);
    Ok(Tensor::from_bytes(ty.clone(), &bytes.collect::<Vec<u8>>()).expect("one element was encoded for each place"))
}

#[cfg(test)]
mod tests {
    use super::{PlanParameter, RunError, initial};
    use trainc_ir::{DType, Type};

    fn parameter(name: &str, ty: Type, trained: bool) -> PlanParameter {
        PlanParameter { name: name.to_owned(), ty, trained, holders: Vec::new() }
    }

    fn values(name: &str, shape: &[u64]) -> Vec<f64> {
        let parameter = parameter(name, Type::new(DType::F32, shape), true);
        initial(&parameter, 3, 1, &mut |_| Ok(None)).unwrap().to_f64s()
    }

    #[test]
    fn defaults_follow_name_and_rank() {
        assert_eq!(values("h.0.mlp.bias", &[3]), [0.0; 3]);
        assert_eq!(values("ln_f.weight", &[3]), [1.0; 3]);
        assert_eq!((values("bn.running_mean", &[2]), values("bn.running_var", &[2])), (vec![0.0; 2], vec![1.0; 2]));
        let w = values("wte.weight", &[50, 40]);
        let deviation = (w.iter().map(|x| x * x).sum::<f64>() / 2000.0).sqrt();
        assert!((deviation / 0.02 - 1.0).abs() < 0.05, "{deviation}");
        assert_eq!(values("wte.weight", &[50, 40]), w, "the same seed gives the same weights");
    }

    #[test]
    fn a_table_without_values_is_an_error() {
        let table = parameter("bias_table", Type::new(DType::I64, [4]), false);
        assert!(matches!(initial(&table, 0, 1, &mut |_| Ok(None)), Err(RunError::Weight(_))));
        let bytes = vec![1; 32];
        assert!(initial(&table, 0, 1, &mut |_| Ok(Some(bytes.clone()))).is_ok());
    }
}
