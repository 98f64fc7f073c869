//! Tables in plain text.

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table whose columns are as wide as what stands in them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[(&str, Align)]) -> Self {
        let columns = headings.iter().map(|(_, align)| *align).collect();
        Self { columns, rows: vec![headings.iter().map(|(name, _)| (*name).to_owned()).collect()] }
    }

    /// Adds a row, one text per column.
    pub(crate) fn row(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// The table, every line indented by two blanks.
    pub(crate) fn print(&self) -> String {
        let width = |i: usize| self.rows.iter().filter_map(|row| row.get(i)).map(|t| t.chars().count()).max();
        let widths: Vec<usize> = (0..self.columns.len()).map(|i| width(i).unwrap_or(0)).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((text, width), align) in row.iter().zip(&widths).zip(&self.columns) {
                let padding = " ".repeat(width - text.chars().count());
                line += "  ";
                match align {
                    Align::Left => line = line + text + &padding,
                    Align::Right => line = line + &padding + text,
                }
            }
            out = out + line.trim_end() + "\n";
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("rank", Align::Right), ("GPU", Align::Left), ("bytes", Align::Right)]);
        table.row(["0", "T4", "1"].map(str::to_owned));
        table.row(["10", "µ", "12345678"].map(str::to_owned));
        assert_eq!(table.print(), "  rank  GPU     bytes\n     0  T4          1\n    10  µ    12345678\n");
    }
}
