//! Property: whatever a graph holds, reading what was printed gives the graph back, and no text makes a reader panic.

mod roundtrip;

use roundtrip::generate::Generator;
use trainc_ir::text::{parse, print, print_training, read, read_training};
use trainc_ir::{Graph, print_errors, verify};

/// Graphs per property; failures name the seed.
const GRAPHS: u64 = 400;

#[test]
fn printed_graphs_read_back() {
    let mut operators = std::collections::BTreeSet::new();
    for seed in 0..GRAPHS {
        let graph = Generator::new(seed).graph();
        operators.extend(graph.nodes.values().map(|node| node.op.spelling()));
        let text = print(&graph);
        let (back, _) = read("graph.ir", &text).unwrap_or_else(|errors| panic!("seed {seed}: {errors:?}\n{text}"));
        assert_eq!(back, graph, "seed {seed}:\n{text}");
        assert_eq!(print(&back), text, "seed {seed}");
    }
    let all: std::collections::BTreeSet<_> = trainc_ir::Op::spellings().map(|(_, spelling)| spelling).collect();
    assert_eq!(operators, all, "the generator leaves out operators");
}

#[test]
fn printed_training_graphs_read_back() {
    for seed in 0..GRAPHS {
        let training = Generator::new(seed).training();
        let text = print_training(&training);
        let (back, _) = read_training("t.ir", &text).unwrap_or_else(|errors| panic!("seed {seed}: {errors:?}\n{text}"));
        assert_eq!(back, training, "seed {seed}:\n{text}");
    }
}

#[test]
fn errors_in_a_print_are_comments() {
    for seed in 0..GRAPHS {
        let graph = Generator::new(seed).graph();
        let Err((graph, errors)) = verify(graph) else { continue };
        let text = print_errors(&graph, &errors);
        let printed = text.lines().filter(|line| line.trim_start().starts_with("; error[V")).count();
        assert_eq!(printed, errors.len(), "seed {seed}:\n{text}");
        assert_eq!(read("graph.ir", &text).expect("comments are skipped").0, graph, "seed {seed}");
    }
}

#[test]
fn no_damage_makes_a_reader_panic() {
    let (mut read_well, mut refused) = (0, 0);
    for seed in 0..GRAPHS {
        let mut generator = Generator::new(seed);
        let training = generator.training();
        let (graph, whole) = (print(&training.step), print_training(&training));
        for _ in 0..10 {
            let damaged = generator.damage(&graph);
            match read("graph.ir", &damaged) {
                Ok((graph, _)) => {
                    read_well += 1;
                    assert_reads_back(&graph);
                    let _ = parse("graph.ir", &damaged);
                }
                Err(errors) => {
                    refused += 1;
                    assert!(!errors.is_empty() && errors.iter().all(|error| !error.labels.is_empty()), "{damaged}");
                }
            }
            let _ = read_training("t.ir", &generator.damage(&whole));
        }
    }
    assert!(read_well > 100 && refused > 100, "{read_well} damaged texts were read, {refused} refused");
}

fn assert_reads_back(graph: &Graph) {
    let text = print(graph);
    let (back, _) = read("graph.ir", &text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    assert_eq!(&back, graph, "{text}");
}
