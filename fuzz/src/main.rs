//! Drives a target for longer than the tests do: `cargo run --release -p trainc-fuzz -- TARGET [--runs N] [--seed N]`.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a tool for developers prints what it finds")]

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use trainc_fuzz::{Counting, Session, TARGETS, Target, run_once};

#[global_allocator]
static HEAP: Counting = Counting;

/// Longer runs of one input are reported.
const SLOW: Duration = Duration::from_secs(1);
/// Longer runs of one input end the process.
const HANGS: Duration = Duration::from_secs(30);

/// The input that is being run, for the watchdog.
static CURRENT: Mutex<Option<(Instant, Vec<u8>)>> = Mutex::new(None);

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut names, mut runs, mut seed) = (Vec::new(), u64::MAX, 1);
    while let Some(arg) = args.next() {
        let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).expect("a number");
        match arg.as_str() {
            "--runs" => runs = number(args.next()),
            "--seed" => seed = number(args.next()),
            _ => names.push(arg),
        }
    }
    for name in names {
        if let Ok(bytes) = std::fs::read(&name) {
            replay(&name, &bytes);
            continue;
        }
        let target = TARGETS.iter().find(|target| target.name == name);
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        session(target.unwrap_or_else(|| panic!("the targets are {known:?}, and {name} is no file")), runs, seed);
    }
}

/// Runs one file with the target that its folder is named after.
fn replay(path: &str, bytes: &[u8]) {
    for target in TARGETS.iter().filter(|target| path.contains(&format!("{}/", target.name))) {
        let outcome = run_once(target, bytes);
        println!("{path}: {:?}, {} bytes, {:?}", outcome.time, outcome.peak, outcome.fault);
    }
}

fn session(target: &'static Target, runs: u64, seed: u64) {
    let folder = PathBuf::from("fuzz-findings").join(target.name);
    std::fs::create_dir_all(&folder).expect("findings can be written");
    let watched = folder.clone();
    std::thread::spawn(move || watch(&watched));
    // Panics are findings: they are told of in one line.
    std::panic::set_hook(Box::new(|_| {}));
    let mut session = Session::new(target, seed);
    let (start, mut told, mut n_findings) = (Instant::now(), Instant::now(), 0u32);
    for n in 0..runs {
        let input = session.input();
        std::fs::write(folder.join("last"), &input).expect("findings can be written");
        *CURRENT.lock().expect("nobody panics with it") = Some((Instant::now(), input.clone()));
        let outcome = run_once(target, &input);
        *CURRENT.lock().expect("nobody panics with it") = None;
        let fault = outcome.fault.or_else(|| (outcome.time > SLOW).then(|| format!("{:?}", outcome.time)));
        if let Some(fault) = fault {
            n_findings += 1;
            let path = folder.join(format!("{seed}-{n}"));
            std::fs::write(&path, &input).expect("findings can be written");
            let line = fault.lines().next().unwrap_or_default();
            println!("{}: input {n} of {} bytes: {line}", target.name, input.len());
        }
        if told.elapsed() > Duration::from_secs(60) {
            told = Instant::now();
            println!("{}: {n} inputs in {:?}, {n_findings} findings", target.name, start.elapsed());
        }
    }
    println!("{}: {runs} inputs in {:?}, {n_findings} findings", target.name, start.elapsed());
}

/// Keeps an input that does not end, and ends the process.
fn watch(folder: &std::path::Path) {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let current = CURRENT.lock().expect("nobody panics with it");
        if let Some((since, input)) = current.as_ref()
            && since.elapsed() > HANGS
        {
            std::fs::write(folder.join("hang"), input).expect("findings can be written");
            println!("an input does not end: {}", folder.join("hang").display());
            std::process::abort();
        }
    }
}
