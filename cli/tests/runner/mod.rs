//! What the tests over the whole workspace share.

#[allow(dead_code, reason = "each test file uses a part")]
pub(crate) mod commands;
#[allow(dead_code, reason = "each test file uses a part")]
pub(crate) mod coverage;
#[allow(dead_code, reason = "each test file uses a part")]
pub(crate) mod files;
#[allow(dead_code, reason = "each test file uses a part")]
pub(crate) mod fusion;
#[allow(dead_code, reason = "each test file uses a part")]
pub(crate) mod shell;

use std::path::PathBuf;

/// The folder of the workspace.
pub(crate) fn workspace() -> PathBuf {
    let cli = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    cli.parent().expect("the crate is in a folder of the workspace").to_owned()
}
