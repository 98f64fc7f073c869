//! Makes the Rust form of `proto/plan.proto`; needs no protobuf compiler.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/plan.proto");
    let descriptors = protox::compile(["proto/plan.proto"], ["proto"])?;
    prost_build::Config::new().compile_fds(descriptors)?;
    Ok(())
}
