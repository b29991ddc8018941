//! Text in aligned columns.

use super::style::{Look, Styles};
use super::text;

/// The space between two columns.
const GAP: usize = 2;

/// Rows of cells in columns; cells must be safe to show and without line breaks.
pub(crate) struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One cell: its text and its look.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    /// A cell without a look of its own.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Look::default())
    }

    /// A cell that looks so.
    pub(crate) fn new(text: impl Into<String>, look: Look) -> Self {
        Self {
            text: text.into(),
            look,
        }
    }
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(heading: &[&'static str]) -> Self {
        Self {
            heading: heading.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, one cell a column.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.heading.len(), "one cell a column");
        self.rows.push(cells);
    }

    /// The table, heading first, each line ended and no wider than `columns`: the widest columns give way.
    pub(crate) fn render(&self, columns: usize, styles: &Styles) -> String {
        let widths = self.widths(columns);
        let heading: Vec<Cell> = self
            .heading
            .iter()
            .map(|&name| Cell::new(name, styles.heading))
            .collect();
        std::iter::once(&heading)
            .chain(&self.rows)
            .map(|cells| line(cells, &widths))
            .collect()
    }

    fn widths(&self, columns: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heading.iter().map(|name| text::width(name)).collect();
        for cells in &self.rows {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(text::width(&cell.text));
            }
        }
        let room = columns.saturating_sub(GAP * widths.len().saturating_sub(1));
        share(&mut widths, room);
        widths
    }
}

/// Cuts the widest columns until all fit into `room`.
fn share(widths: &mut [usize], room: usize) {
    let mut surplus = widths.iter().sum::<usize>().saturating_sub(room);
    while surplus > 0 {
        let widest = widths.iter().copied().max().unwrap_or(0);
        let second = widths.iter().copied().filter(|width| *width < widest).max();
        let floor = second.unwrap_or(0);
        let count = widths.iter().filter(|width| **width == widest).count();
        if widest <= 1 {
            return;
        }
        let cut = (widest - floor)
            .min(surplus.div_ceil(count))
            .min(widest - 1);
        for width in widths.iter_mut().filter(|width| **width == widest) {
            *width -= cut;
        }
        surplus = widths.iter().sum::<usize>().saturating_sub(room);
    }
}

fn line(cells: &[Cell], widths: &[usize]) -> String {
    let mut line = String::new();
    let mut missing = 0;
    for (cell, width) in cells.iter().zip(widths) {
        let text = text::truncate(&cell.text, *width);
        if !text.is_empty() {
            line.push_str(&" ".repeat(missing));
            missing = 0;
            line.push_str(&cell.look.paint(&text).to_string());
        }
        missing += width - text::width(&text) + GAP;
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new(&["A", "LONGER", "C"]);
        for row in rows {
            table.row(row.iter().map(|&text| Cell::plain(text)).collect());
        }
        table
    }

    #[test]
    fn columns_are_aligned_and_lines_end_with_text() {
        let table = table(&[["漢字", "b", ""], ["a", "", "c"]]);
        assert_eq!(
            table.render(80, &Styles::default()),
            "A     LONGER  C\n漢字  b\na             c\n"
        );
    }

    #[test]
    fn the_widest_column_gives_way() {
        let table = table(&[["name", "a very long description of it", "end"]]);
        assert_eq!(
            table.render(24, &Styles::default()),
            "A     LONGER         C\nname  a very long …  end\n"
        );
    }

    #[test]
    fn no_terminal_is_too_narrow() {
        let table = table(&[["name", "description", "end"]]);
        for columns in 0..30 {
            let widest = table.render(columns, &Styles::default());
            let widest = widest.lines().map(text::width).max().unwrap();
            assert!(widest <= columns.max(3 + 2 * GAP), "{columns}: {widest}");
        }
    }
}
