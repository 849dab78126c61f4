//! The tables of `docs/from-pytorch.md` and `docs/from-flux.md`, from a test that runs their Rust column.
//!
//! In the test, a row is the other language's text in comments, then Rust up to an empty line or the next comment:
//!
//! ```text
//! // # Creating tensors
//! // pytorch: torch.ones(2, 3)
//! // flux: ones(Float32, 2, 3)
//! let x = Tensor::ones([2, 3], &device)?;
//! ```

/// Markdown tables, one per heading, of the rows that have this language's text.
pub(super) fn tables(test: &str, language: &str, title: &str) -> String {
    let mut tables = String::new();
    for section in sections(test) {
        let rows: Vec<&Row> = section.rows.iter().filter(|row| !row.text_in(language).is_empty()).collect();
        if rows.is_empty() {
            continue;
        }
        tables += &format!("\n## {}\n\n| {title} | Consort |\n|---|---|\n", section.heading);
        for row in rows {
            tables += &format!("| {} | {} |\n", cell(&row.text_in(language)), cell(&row.statements()));
        }
    }
    tables + "\n"
}

struct Section<'a> {
    heading: &'a str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    /// Languages and lines in them.
    other: Vec<(&'a str, &'a str)>,
    rust: Vec<&'a str>,
}

impl Row<'_> {
    fn text_in(&self, language: &str) -> Vec<String> {
        let lines = self.other.iter().filter(|(of, _)| *of == language);
        lines.map(|(_, line)| (*line).to_owned()).collect()
    }

    /// The Rust lines, those of one statement joined.
    fn statements(&self) -> Vec<String> {
        let mut statements: Vec<String> = Vec::new();
        for line in &self.rust {
            match statements.last_mut().filter(|statement| is_open(statement)) {
                Some(statement) => *statement += &format!(" {line}"),
                None => statements.push((*line).to_owned()),
            }
        }
        statements
    }
}

/// Whether a statement goes on in the next line.
fn is_open(statement: &str) -> bool {
    let count = |brackets: [char; 3]| statement.matches(brackets).count();
    count(['(', '[', '{']) > count([')', ']', '}']) || !statement.ends_with([';', '}'])
}

fn sections(test: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut in_row = false;
    for line in test.lines().map(str::trim) {
        let Some(section) = sections.last_mut().filter(|_| !line.starts_with("// # ")) else {
            sections.extend(line.strip_prefix("// # ").map(|heading| Section { heading, rows: Vec::new() }));
            in_row = false;
            continue;
        };
        if let Some((language, text)) = line.strip_prefix("// ").and_then(|comment| comment.split_once(": ")) {
            match section.rows.last_mut().filter(|row| in_row && row.rust.is_empty()) {
                Some(row) => row.other.push((language, text)),
                None => section.rows.push(Row { other: vec![(language, text)], rust: Vec::new() }),
            }
            in_row = true;
        } else if line.is_empty() || line.starts_with("//") {
            in_row = false;
        } else if let Some(row) = section.rows.last_mut().filter(|_| in_row) {
            row.rust.push(line);
        }
    }
    sections
}

/// Lines of code as one cell of a table.
fn cell(lines: &[String]) -> String {
    let spans: Vec<String> = lines.iter().map(|line| format!("`{}`", line.replace('|', "\\|"))).collect();
    spans.join("<br>")
}

#[cfg(test)]
mod tests {
    use super::tables;

    const TEST: &str = "
        fn f() {
            // # Creating
            // pytorch: torch.ones(2)
            // flux: ones(2)
            let x = ones(2);

            assert!(x);

            // pytorch: with a:
            // pytorch:     b()
            let y = a(|b| {
                b;
            });
            let z = 1;

            Ok(())
        }
    ";

    #[test]
    fn rows_are_comments_and_the_code_below() {
        let expected = "\n## Creating\n\n| PyTorch | Consort |\n|---|---|\n\
                        | `torch.ones(2)` | `let x = ones(2);` |\n\
                        | `with a:`<br>`    b()` | `let y = a(\\|b\\| { b; });`<br>`let z = 1;` |\n\n";
        assert_eq!(tables(TEST, "pytorch", "PyTorch"), expected);
    }

    #[test]
    fn a_row_without_the_language_is_left_out() {
        let expected = "\n## Creating\n\n| Flux | Consort |\n|---|---|\n| `ones(2)` | `let x = ones(2);` |\n\n";
        assert_eq!(tables(TEST, "flux", "Flux"), expected);
    }
}
