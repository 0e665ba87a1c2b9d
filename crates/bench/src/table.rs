//! Tables that read the same in a terminal and in Markdown, and figures with units.

/// A table: the first column is text, the others are figures.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; it has a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
    }

    /// Aligned Markdown.
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = std::iter::once(&self.head).chain(&self.rows).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                0 => format!(" {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
            format!("|{}\n", cells.collect::<String>())
        };
        let rules = widths.iter().enumerate().map(|(column, &width)| match column {
            0 => format!(" {} |", "-".repeat(width)),
            _ => format!(" {}: |", "-".repeat(width - 1)),
        });
        let rule = format!("|{}\n", rules.collect::<String>());
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}{rule}{rows}", line(&self.head))
    }
}

/// A figure with as many decimals as its size leaves meaningful, and with separators between thousands.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_short_rows_filled() {
        let mut table = Table::new(&["what", "rate (1/s)"]);
        table.row(["créates", "12,345"]);
        table.row(["x"]);
        let wanted = "\
| what    | rate (1/s) |
| ------- | ---------: |
| créates |     12,345 |
| x       |            |
";
        assert_eq!(table.render(), wanted);
    }

    #[test]
    fn figures_keep_three_digits_and_group_thousands() {
        let figures = [0.0, 0.1234, 1.5, 12.34, 999.6, 1234.0, 1_234_567.0, -4.0];
        let shown = figures.map(figure);
        assert_eq!(shown, ["0.000", "0.123", "1.50", "12.3", "1,000", "1,234", "1,234,567", "-4.00"]);
    }
}
