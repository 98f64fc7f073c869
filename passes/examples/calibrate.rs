//! Prints the work of every kernel behind every measurement that is read from standard input, for the fit of the cost model.

#[path = "../tests/calibration/layers.rs"]
mod layers;
#[path = "../tests/calibration/models.rs"]
mod models;
#[path = "../tests/calibration/work.rs"]
mod work;

use std::io::{BufRead, BufWriter, Write};
use trainc_ir::DType;

fn main() -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    writeln!(out, "row,phase,op,class,dtype,flops,bytes")?;
    for (row, line) in std::io::stdin().lock().lines().skip(1).enumerate() {
        let line = line?;
        let fields: Vec<&str> = line.split(',').collect();
        let dtype = if fields[3] == "float16" { DType::F16 } else { DType::F32 };
        let number = |i: usize| fields[i].parse().expect("a whole number");
        let Some(layer) = models::layer(fields[0], fields[1], number(2), dtype, number(4)) else { continue };
        for (phase, kernels) in ["forward", "backward"].into_iter().zip(work::kernels(layer)) {
            for (op, w) in kernels.iter().filter(|(_, work)| work.flops + work.bytes > 0) {
                writeln!(out, "{row},{phase},{op},{:?},{},{},{}", w.class, w.dtype, w.flops, w.bytes)?;
            }
        }
    }
    out.flush()
}
