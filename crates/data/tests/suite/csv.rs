//! Tables of text.

use data::{Column, Csv, Missing, Type};

use crate::text;

const FLOWERS: &str = "length, width,species,id\n5.1,3,setosa,7\n6,NA,virginica,9\n4.9,2,setosa,11\n";

#[test]
fn types_are_inferred_and_gaps_follow_the_rule() {
    let table = Csv::new().missing(Missing::DropRow).read_from(FLOWERS.as_bytes()).unwrap();
    assert_eq!(table.names(), ["length", "width", "species", "id"]);
    assert_eq!(table.n_rows(), 2);
    assert_eq!(table.column("length").unwrap(), &Column::Number(vec![5.1, 4.9]));
    assert_eq!(table.column("width").unwrap(), &Column::Integer(vec![3, 2]));
    assert_eq!(table.column("species").unwrap(), &Column::Text(vec!["setosa".into(), "setosa".into()]));

    let filled = |value| Csv::new().missing(Missing::Fill(value)).read_from(FLOWERS.as_bytes()).unwrap();
    assert_eq!(filled(0.0).column("width").unwrap(), &Column::Integer(vec![3, 0, 2]));
    assert_eq!(filled(0.5).column("width").unwrap(), &Column::Number(vec![3.0, 0.5, 2.0]));
    assert_eq!(filled(0.5).column("id").unwrap(), &Column::Integer(vec![7, 9, 11]));
    let Column::Number(width) = filled(f64::NAN).column("width").unwrap().clone() else { panic!("numbers") };
    assert!(width[1].is_nan());
}

#[test]
fn files_may_have_no_header_and_other_delimiters() {
    let table = Csv::new().header(false).delimiter(b';').read_from("1;\"a;b\"\n2;c\n".as_bytes()).unwrap();
    assert_eq!(table.names(), ["0", "1"]);
    assert_eq!(table.column("1").unwrap(), &Column::Text(vec!["a;b".into(), "c".into()]));
    let typed = Csv::new().column("id", Type::Text).read_from("id\n007\n".as_bytes()).unwrap();
    assert_eq!(typed.column("id").unwrap(), &Column::Text(vec!["007".into()]));
    let empty = Csv::new().read_from("a,b\n".as_bytes()).unwrap();
    assert_eq!((empty.n_rows(), empty.names().len()), (0, 2));
}

#[test]
fn bad_tables_are_named_by_line_and_column() {
    let csv = Csv::new;
    for (reader, file, want) in [
        (csv(), "a,b\n1,2\n3\n", "csv: rows must have as many fields as the first: line 3, fields 1, expected 2"),
        (csv(), "a,b\n1,2\n\n3,4,5\n", "csv: rows must have as many fields as the first: line 4, fields 3, expected 2"),
        (
            csv(),
            FLOWERS,
            "csv: a value is missing: line 3, column `width`, value `NA`; choose what becomes of it with .missing(..)",
        ),
        (
            csv().column("a", Type::Integer),
            "a\n1\n1.5\n",
            "csv: not an integer of 64 bits: line 3, column `a`, value `1.5`",
        ),
        (csv().column("a", Type::Number), "a\nx\n", "csv: not a number: line 2, column `a`, value `x`"),
        (
            csv().column("a", Type::Integer).missing(Missing::Fill(0.5)),
            "a\nNA\n",
            "csv: a column of integers cannot be filled with a number that is not whole: line 2, column `a`, value `NA`",
        ),
        (csv(), "a,a\n1,2\n", "csv: two columns have the same name: `a`, the second is column 1"),
        (csv().column("c", Type::Text), "a,b\n1,2\n", "csv: no column has this name: `c`, columns a, b"),
        (csv(), "a\n\u{1}\u{2}\n", "no error"),
    ] {
        assert_eq!(text(reader.read_from(file.as_bytes())), want);
    }
    let not_utf8 = text(csv().read_from(&b"a,b\n1,\xFF\n"[..]));
    assert_eq!(not_utf8, "csv: the text is not UTF-8: line 2, field 1");
    let missing = text(csv().read("no/such/file.csv"));
    assert!(missing.starts_with("no/such/file.csv: read: the file cannot be read"), "{missing}");
}

#[test]
fn a_wide_table_is_read_and_a_long_value_is_cut_in_an_error() {
    let names: Vec<String> = (0..100_000).map(|i| format!("c{i}")).collect();
    let wide = format!("{}\n{}\n", names.join(","), vec!["1"; names.len()].join(","));
    // Comparing each name with each other one would take minutes.
    assert!(Csv::new().read_from(wide.as_bytes()).unwrap().names() == names);

    let long = format!("a\n\"x\ny{}\"\n", "z".repeat(1_000_000));
    let error = text(Csv::new().column("a", Type::Integer).read_from(long.as_bytes()));
    let start = "csv: not an integer of 64 bits: line 2, column `a`, value `x\\nyzzz";
    assert!(error.starts_with(start) && error.ends_with("zz..`") && error.len() < 500, "{error}");
}
