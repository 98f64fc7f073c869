//! Time and peak memory of every pass against the number of nodes: `cargo bench -p trainc --bench scale`.
//!
//! Without arguments it goes up to 10,000 nodes; `-- --full` up to a million, `-- --shape deep --nodes 100000` measures
//! one graph. Recorded results are in `docs/benchmarks.md`.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench prints its results")]

mod heap;
mod measure;
mod shapes;
mod table;

use measure::Row;
use shapes::Shape;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// What the arguments ask for.
struct Request {
    shapes: Vec<Shape>,
    sizes: Vec<usize>,
}

fn main() {
    let request = request(std::env::args().skip(1));
    for shape in request.shapes {
        let runs: Vec<(usize, Vec<Row>)> = request.sizes.iter().map(|&size| measure::run(shape, size)).collect();
        println!("\n{} ({})\n", shape.name(), shape.what());
        print!("{}", table::render(&runs));
    }
}

fn request(mut args: impl Iterator<Item = String>) -> Request {
    let mut request = Request { shapes: Shape::ALL.to_vec(), sizes: vec![1_000, 10_000] };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--full" => request.sizes = vec![1_000, 10_000, 100_000, 1_000_000],
            "--shape" => {
                let name = args.next().expect("--shape takes a name");
                request.shapes.retain(|shape| shape.name() == name);
                assert!(!request.shapes.is_empty(), "there is no shape {name}");
            }
            "--nodes" => {
                let list = args.next().expect("--nodes takes numbers");
                request.sizes = list.split(',').map(|n| n.parse().expect("a number of nodes")).collect();
            }
            // Cargo tells every bench that it is one.
            _ => {}
        }
    }
    request
}
