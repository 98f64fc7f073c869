//! The examples do what they are shown for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[allow(dead_code, reason = "its main is Cargo's")]
#[allow(clippy::exit, clippy::print_stderr, clippy::print_stdout, reason = "a build script talks to Cargo this way")]
#[path = "../../examples/build-script/build.rs"]
mod build_script;

#[path = "../../examples/snapshots/plans.rs"]
mod plans;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").to_owned()
}

/// A copy of an example, beside a copy of the inputs that it names: `a/b/c` sees them as `../../testdata`.
struct Copied {
    _root: tempfile::TempDir,
    folder: PathBuf,
    model: PathBuf,
    cluster: PathBuf,
}

fn copied(example: &str) -> Copied {
    let root = tempfile::tempdir().expect("there is room for a folder");
    let folder = root.path().join("examples").join(example);
    fs::create_dir_all(&folder).expect("the folder can be made");
    for entry in fs::read_dir(workspace().join("examples").join(example)).expect("the example is there").flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), folder.join(entry.file_name())).expect("the example can be copied");
        }
    }
    let input = |path: &str| {
        let to = root.path().join("testdata").join(path);
        fs::create_dir_all(to.parent().expect("it is in a folder")).expect("the folder can be made");
        fs::copy(workspace().join("testdata").join(path), &to).expect("the input can be copied");
        to
    };
    let (model, cluster) = (input("models/gpt2.onnx"), input("clusters/mixed.toml"));
    input("models/vit.onnx");
    Copied { _root: root, folder, model, cluster }
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

/// Whether the tool is there; a test that needs it says so and does nothing else.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        #[allow(clippy::print_stdout, reason = "whoever reads the output of the test should know")]
        {
            println!("skipped: there is no {tool}");
        }
    }
    found
}

/// Builds until nothing is to be done, then changes each input: only then it builds again.
fn rebuilds_when_an_input_changes(at: &Copied, build: &dyn Fn() -> Output) {
    let plan = at.folder.join("out/plan.json");
    let builds = || {
        let before = fs::metadata(&plan).and_then(|of| of.modified()).ok();
        let output = build();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        before != fs::metadata(&plan).and_then(|of| of.modified()).ok()
    };
    // Clocks of some disks tick slowly, and Make compares with "newer".
    let later = || std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(builds(), "the plan is made first");
    assert!(!builds(), "nothing changed");
    for input in [&at.cluster, &at.model] {
        later();
        let content = fs::read(input).expect("it can be read");
        fs::write(input, content).expect("it can be written");
        assert!(builds(), "{} changed", input.display());
        assert!(!builds(), "nothing changed since");
    }
    later();
    fs::write(at.folder.join("unrelated"), "x").expect("it can be written");
    assert!(!builds(), "the file is no input");
}

#[test]
fn make_compiles_again_when_an_input_changed() {
    if !has("make") {
        return;
    }
    let at = copied("make");
    let trainc = format!("TRAINC={}", env!("CARGO_BIN_EXE_trainc"));
    rebuilds_when_an_input_changes(&at, &|| run(Command::new("make").arg(&trainc).current_dir(&at.folder)));
    // An input that has gone is no reason for Make itself to give up: the compiler says what is wrong.
    fs::remove_file(&at.cluster).expect("it can be removed");
    let output = run(Command::new("make").arg(&trainc).current_dir(&at.folder));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("error[E1001]"), "{error}");
}

#[test]
fn ninja_compiles_again_when_an_input_changed() {
    if !has("ninja") {
        return;
    }
    let at = copied("ninja");
    let file = at.folder.join("build.ninja");
    let text = fs::read_to_string(&file).expect("it can be read");
    let trainc = format!("trainc = {}\n", env!("CARGO_BIN_EXE_trainc"));
    fs::write(&file, text.replace("trainc = trainc\n", &trainc)).expect("it can be written");
    rebuilds_when_an_input_changes(&at, &|| run(Command::new("ninja").current_dir(&at.folder)));
}

#[test]
fn a_build_script_writes_a_plan_and_knows_its_inputs() {
    let out = tempfile::tempdir().expect("there is room for a folder");
    let folder = out.path().join("plan");
    let here = workspace().join("examples/build-script");
    let inputs = build_script::plan(&here, &folder).expect("the plan fits");
    let names: Vec<_> = inputs.iter().filter_map(|input| input.file_name()).collect();
    assert_eq!(names, ["gpt2.onnx", "mixed.toml"]);
    assert!(["plan.json", "summary.json"].iter().all(|name| folder.join(name).is_file()));
}

#[test]
#[cfg(unix)]
fn the_script_fails_where_a_plan_gets_worse() {
    let at = copied("snapshots");
    let check = |options: &str, arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.arg("check.sh").args(arguments).current_dir(&at.folder);
        command.env("TRAINC", env!("CARGO_BIN_EXE_trainc")).env("GPT2_OPTIONS", options).env("NO_COLOR", "1");
        let output = run(&mut command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    assert_eq!(check("", &[]), (Some(0), "gpt2: kept\nvit: kept\n".to_owned()));
    assert_eq!(check("", &[]), (Some(0), "gpt2:\nno differences\nvit:\nno differences\n".to_owned()));
    let (code, text) = check("--recompute full", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("step time: ") && text.contains("error[E1016]: `step>+5%` holds"), "{text}");
    assert_eq!(check("--recompute full", &["--accept"]).0, Some(0));
    assert_eq!(check("--recompute full", &[]).0, Some(0));
}

/// Files whose names Make would take apart.
#[test]
fn dependency_files_spell_awkward_names() {
    if !has("make") {
        return;
    }
    let at = copied("make");
    let odd = at.folder.join("my $model #1.onnx");
    fs::copy(&at.model, &odd).expect("it can be copied");
    let trainc = run(Command::new(env!("CARGO_BIN_EXE_trainc"))
        .args(["compile", "my $model #1.onnx", "--cluster", "../../testdata/clusters/mixed.toml", "--bind", "*=8"])
        .args(["-o", "out dir", "--dep-file", "plan.d", "--quiet"])
        .current_dir(&at.folder));
    assert!(trainc.status.success(), "{}", String::from_utf8_lossy(&trainc.stderr));
    fs::write(at.folder.join("Makefile"), "out\\ dir/plan.json:\n\t@echo '$^'\n-include plan.d\n")
        .expect("it is written");
    let touched = run(Command::new("make").current_dir(&at.folder));
    assert!(String::from_utf8_lossy(&touched.stdout).contains("up to date"), "{touched:?}");
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::copy(&at.model, &odd).expect("it can be copied");
    fs::write(&odd, fs::read(&at.model).expect("it can be read")).expect("it can be written");
    let touched = run(Command::new("make").current_dir(&at.folder));
    let text = String::from_utf8_lossy(&touched.stdout).into_owned();
    assert!(text.contains("my $model #1.onnx ../../testdata/clusters/mixed.toml"), "{text}");
}
