//! What is shown of a trained network: its mistakes as a table, some images with its guesses, its learning curve.

use std::fmt::Write;
use std::io::{IsTerminal, stdout};
use std::path::Path;

use consort::data::Digits;
use consort::prelude::*;
use plotters::prelude::*;

use crate::train::{self, Epoch, Evaluation};

/// How often each digit was taken for each other one.
pub(crate) fn confusion(result: &Evaluation) -> String {
    let mut counts = [[0; Digits::CLASSES]; Digits::CLASSES];
    for (&label, &guess) in result.labels.iter().zip(&result.guesses) {
        counts[label as usize][guess as usize] += 1;
    }
    let mut text = String::from("\nConfusion matrix: rows are digits, columns are the network's guesses.\n\n    ");
    (0..Digits::CLASSES).for_each(|guess| text += &format!("{guess:>4}"));
    text += "\n";
    for (label, row) in counts.iter().enumerate() {
        text += &format!("{label:>4}");
        for (guess, &n) in row.iter().enumerate() {
            text += &if n == 0 && guess != label { "   ·".into() } else { format!("{n:>4}") };
        }
        text += "\n";
    }
    text
}

/// How many images stand side by side.
const SHOWN: usize = 6;

/// Test images with the network's guesses: up to half of them mistakes.
pub(crate) fn pictures(set: &train::Digits, result: &Evaluation) -> Result<String> {
    let (right, mut shown): (Vec<usize>, Vec<usize>) =
        (0..result.labels.len()).partition(|&i| result.labels[i] == result.guesses[i]);
    shown.truncate(SHOWN / 2);
    shown.extend(right.into_iter().take(SHOWN - shown.len()));

    let colours = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut lines = vec![String::new(); Digits::SIDE / 2];
    let mut captions = String::new();
    for &i in &shown {
        let (image, _) = consort::data::Dataset::get(set, i)?;
        for (line, half) in lines.iter_mut().zip(drawn(&image.to_vec()?, colours)) {
            *line += &format!("  {half}  ");
        }
        let (label, guess) = (result.labels[i], result.guesses[i]);
        let caption = if label == guess { guess.to_string() } else { format!("{guess} (is {label})") };
        captions += &format!("  {caption:10}");
    }
    Ok(format!("\nTest images and the network's guesses:\n\n{}\n{}\n", lines.join("\n"), captions.trim_end()))
}

/// An image as lines of text: each character is two pixels, one above the other.
fn drawn(ink: &[f32], colours: bool) -> impl Iterator<Item = String> {
    let rows: Vec<&[f32]> = ink.chunks(Digits::SIDE).collect();
    let line = move |pair: &[&[f32]]| {
        let mut line = String::new();
        for (&above, &below) in pair[0].iter().zip(pair[1]) {
            if colours {
                // The terminal's greys are colours 232 to 255: the upper pixel in the foreground's, the lower in the
                // background's.
                let grey = |ink: f32| 232 + (ink * 23.0) as u8;
                let _ = write!(line, "\x1b[38;5;{};48;5;{}m▀", grey(above), grey(below));
            } else {
                line.push([[' ', '▄'], ['▀', '█']][usize::from(above > 0.4)][usize::from(below > 0.4)]);
            }
        }
        line + if colours { "\x1b[0m" } else { "" }
    };
    rows.chunks(2).map(line).collect::<Vec<_>>().into_iter()
}

/// The learning curve as an SVG: losses on the left, test accuracy on the right.
pub(crate) fn curve(history: &[Epoch]) -> Result<String> {
    let mut svg = String::new();
    draw(&mut svg, history).map_err(|error| Error::other("curve", format!("cannot be drawn: {error}")))?;
    Ok(svg)
}

const BLUE: RGBColor = RGBColor(31, 119, 180);
const ORANGE: RGBColor = RGBColor(255, 127, 14);
const INK: RGBColor = RGBColor(60, 60, 60);

fn draw(svg: &mut String, history: &[Epoch]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (960, 400)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(480);
    let losses = [Line("training", BLUE, |epoch| epoch.train_loss), Line("test", ORANGE, |epoch| epoch.test_loss)];
    panel(&left, history, "loss", Some(0.0), &losses)?;
    let accuracy = [Line("test", ORANGE, |epoch| 100.0 * epoch.test_accuracy)];
    panel(&right, history, "test accuracy, %", None, &accuracy)?;
    root.present()?;
    Ok(())
}

/// A line of a plot: its name, its colour, its value after an epoch.
struct Line(&'static str, RGBColor, fn(&Epoch) -> f64);

/// One plot. The vertical axis starts at `from`, or below the smallest value.
fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    history: &[Epoch],
    title: &str,
    from: Option<f64>,
    lines: &[Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let values = || lines.iter().flat_map(|line| history.iter().map(line.2));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let margin = 0.05 * (high - low).max(1e-3);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20, &INK))
        .margin(14)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.5..history.len() as f64 + 0.5, from.unwrap_or(low - margin)..high + margin)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK.mix(0.12))
        .axis_style(INK.mix(0.5))
        .label_style(("sans-serif", 14, &INK))
        .x_desc("epoch")
        .x_label_formatter(&|epoch| if epoch.fract() == 0.0 { format!("{epoch:.0}") } else { String::new() })
        .draw()?;
    for &Line(name, colour, value) in lines {
        let points: Vec<(f64, f64)> = (1..).zip(history).map(|(n, epoch)| (f64::from(n), value(epoch))).collect();
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 2, colour.filled())))?;
    }
    if lines.len() > 1 {
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(INK.mix(0.2))
            .label_font(("sans-serif", 14, &INK))
            .draw()?;
    }
    Ok(())
}

/// Writes a whole file or nothing.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let part = path.with_extension("part");
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path)).map_err(|error| {
        let _ = std::fs::remove_file(&part);
        Error::io("write", format!("the file cannot be written: {}: {error}", path.display())).with_source(error)
    })
}
