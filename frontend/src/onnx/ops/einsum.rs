//! Einstein sums of one or two operands, as transposes around one matrix product.

use super::Rule;
use crate::onnx::call::{Call, Fail, Operand, Results};
use crate::onnx::lower::Lower;
use trainc_ir::op::ReduceKind;

pub(super) fn rule(op: &str) -> Option<Rule> {
    if op == "Einsum" { Some(einsum) } else { None }
}

/// An operand with the letters of its axes.
#[derive(Clone)]
struct Lettered {
    x: Operand,
    letters: Vec<char>,
}

fn einsum(lower: &mut Lower<'_>, call: &Call<'_>) -> Results {
    let equation: String = call.string("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let bad = || Fail::form(format!("equation `{equation}`"));
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left.to_owned(), right.to_owned()),
        None => (equation.clone(), implicit_output(&equation)),
    };
    if !equation.chars().all(|c| c.is_ascii_alphabetic() || ",->".contains(c)) {
        return Err(bad());
    }
    let mut operands = Vec::new();
    for (slot, letters) in left.split(',').enumerate() {
        let x = call.input(slot)?.clone();
        let letters: Vec<char> = letters.chars().collect();
        let repeats = letters.iter().enumerate().any(|(i, letter)| letters[..i].contains(letter));
        if letters.len() != lower.rank(&x) || repeats {
            return Err(bad());
        }
        operands.push(Lettered { x, letters });
    }
    let output: Vec<char> = right.chars().collect();
    let mut result = operands.remove(0);
    while !operands.is_empty() {
        let next = operands.remove(0);
        let later: Vec<char> =
            operands.iter().flat_map(|operand| operand.letters.clone()).chain(output.clone()).collect();
        result = product(lower, result, next, &later)?;
    }
    let result = sum_out(lower, result, &output)?;
    let perm = output.iter().map(|letter| result.letters.iter().position(|own| own == letter));
    let perm = perm.collect::<Option<Vec<_>>>().ok_or_else(bad)?;
    Ok(vec![lower.transpose(&result.x, &perm)?])
}

/// Letters that occur once, in alphabetical order.
fn implicit_output(equation: &str) -> String {
    let mut letters: Vec<char> = equation.chars().filter(char::is_ascii_alphabetic).collect();
    letters.sort_unstable();
    letters.iter().filter(|letter| equation.matches(**letter).count() == 1).collect()
}

/// Sums over the axes whose letters nobody needs.
fn sum_out(lower: &mut Lower<'_>, operand: Lettered, needed: &[char]) -> Result<Lettered, Fail> {
    let gone: Vec<usize> = (0..operand.letters.len()).filter(|&i| !needed.contains(&operand.letters[i])).collect();
    let x = lower.reduce(ReduceKind::Sum, &operand.x, &gone, false)?;
    let letters = operand.letters.into_iter().filter(|letter| needed.contains(letter)).collect();
    Ok(Lettered { x, letters })
}

/// One product: `[shared, left, summed] x [shared, summed, right]`.
fn product(lower: &mut Lower<'_>, a: Lettered, b: Lettered, later: &[char]) -> Result<Lettered, Fail> {
    let needed = |other: &[char]| [other, later].concat();
    let a = sum_out(lower, a, &needed(&b.letters.clone()))?;
    let b = sum_out(lower, b, &needed(&a.letters.clone()))?;
    let in_both = |letter: &&char| b.letters.contains(letter);
    let shared: Vec<char> = a.letters.iter().filter(in_both).filter(|l| later.contains(l)).copied().collect();
    let summed: Vec<char> = a.letters.iter().filter(in_both).filter(|l| !later.contains(l)).copied().collect();
    let left: Vec<char> = a.letters.iter().filter(|letter| !b.letters.contains(letter)).copied().collect();
    let right: Vec<char> = b.letters.iter().filter(|letter| !a.letters.contains(letter)).copied().collect();
    let (matrix_a, [lead, rows, _]) = grouped(lower, &a, [&shared, &left, &summed])?;
    let (matrix_b, [_, _, columns]) = grouped(lower, &b, [&shared, &summed, &right])?;
    let y = lower.matmul(&matrix_a, &matrix_b)?;
    let shape = [lead, rows, columns].concat();
    Ok(Lettered { x: lower.reshape(&y, &shape)?, letters: [shared, left, right].concat() })
}

/// The operand with its axes in three groups, each group one axis; and the dimensions of each group. Without shared
/// letters the leading group is left out, so that a weight serves all rows.
fn grouped(lower: &mut Lower<'_>, x: &Lettered, groups: [&Vec<char>; 3]) -> Result<(Operand, [Vec<u64>; 3]), Fail> {
    let shape = lower.shape(&x.x);
    let at = |letter: &char| x.letters.iter().position(|own| own == letter).ok_or("a letter is missing");
    let mut perm = Vec::new();
    let mut dims: [Vec<u64>; 3] = Default::default();
    for (group, dims) in groups.iter().zip(&mut dims) {
        for letter in *group {
            let axis = at(letter)?;
            perm.push(axis);
            dims.push(shape[axis]);
        }
    }
    let turned = lower.transpose(&x.x, &perm)?;
    let skip = usize::from(groups[0].is_empty());
    let target: Vec<u64> = dims[skip..].iter().map(|group| group.iter().product()).collect();
    Ok((lower.reshape(&turned, &target)?, dims))
}

#[cfg(test)]
mod tests {
    use super::implicit_output;

    #[test]
    fn implicit_outputs_are_the_single_letters() {
        assert_eq!(implicit_output("ij,jk"), "ik");
        assert_eq!(implicit_output("ba"), "ab");
    }
}
