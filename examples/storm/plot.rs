//! Pictures of the figures, in SVG.

use std::fmt::Write as _;

use super::report::Figures;
use super::run::Cell;
use super::scenario::Scenario;
use super::setups::{self, SetUp};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 400.0;
/// The plot within the picture: left, right, top, bottom.
const PLOT: [f64; 4] = [56.0, 944.0, 84.0, 344.0];
/// Told apart by people who see few colours, too.
const COLOURS: [&str; 5] = ["#9aa0a6", "#e69f00", "#56b4e9", "#0072b2", "#009e73"];

/// All pictures, with the names of their files.
pub(crate) fn all(scenarios: &[Scenario], cells: &[Cell]) -> Vec<(&'static str, String)> {
    vec![
        ("success.svg", bars("Calls served, in percent", scenarios, cells, 100.0, |of| of.success)),
        (
            "attempts.svg",
            bars("Attempts at the provider for each call", scenarios, cells, 2.0, |of| of.attempts),
        ),
        ("cost.svg", bars("Dollars billed for a thousand calls served", scenarios, cells, 1.6, |of| of.cost)),
        ("frozen.svg", frozen(cells)),
    ]
}

/// A picture with a title and the legend of the set-ups.
fn picture(title: &str, inside: &str) -> String {
    let mut text = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">
<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>
<text x="{x}" y="30" font-size="17" font-weight="600" fill="#202124">{title}</text>
"##,
        x = PLOT[0] - 32.0,
    );
    let mut x = PLOT[0] - 32.0;
    for (set_up, colour) in setups::ALL.iter().zip(COLOURS) {
        let name = set_up.name();
        let _ = writeln!(
            text,
            r##"<rect x="{x}" y="45" width="12" height="12" rx="2" fill="{colour}"/><text x="{tx}" y="55" font-size="12" fill="#3c4043">{name}</text>"##,
            tx = x + 17.0
        );
        x += 42.0 + 6.2 * f64::from(u32::try_from(name.len()).unwrap_or(0));
    }
    text.push_str(inside);
    text.push_str("</svg>\n");
    text
}

/// Lines across, with what they stand for.
fn grid(text: &mut String, top: f64) {
    let [left, right, _, _] = PLOT;
    for step in 0..=4 {
        let value = top * f64::from(step) / 4.0;
        let y = height(value, top);
        let _ = writeln!(
            text,
            r##"<line x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}" stroke="#e0e3e7"/><text x="{tx}" y="{ty:.1}" font-size="11" fill="#5f6368" text-anchor="end">{value:.digits$}</text>"##,
            digits = usize::from(top < 10.0),
            tx = left - 6.0,
            ty = y + 4.0
        );
    }
}

fn height(value: f64, top: f64) -> f64 {
    PLOT[3] - (PLOT[3] - PLOT[2]) * value.clamp(0.0, top) / top
}

/// A group of bars for each scenario. A bar that is too high for the picture says how high it is.
fn bars(
    title: &str,
    scenarios: &[Scenario],
    cells: &[Cell],
    top: f64,
    value: impl Fn(&Figures) -> f64,
) -> String {
    let mut text = String::new();
    grid(&mut text, top);
    let [left, right, _, bottom] = PLOT;
    let group = (right - left) / f64::from(u32::try_from(scenarios.len().max(1)).unwrap_or(1));
    let (wide, gap) = (group * 0.165, group * 0.175);
    let mut start = left;
    for scenario in scenarios {
        let mut x = start;
        for (set_up, colour) in setups::ALL.iter().zip(COLOURS) {
            x += gap;
            let Some(cell) = find(cells, scenario.key, *set_up) else { continue };
            let value = value(&Figures::of(cell));
            let y = height(value, top);
            let at = x - gap * 0.6;
            let label = if top < 10.0 { format!("{value:.2}") } else { exact(value) };
            let _ = writeln!(
                text,
                r##"<rect x="{at:.1}" y="{y:.1}" width="{wide:.1}" height="{h:.1}" rx="1.5" fill="{colour}"/><text x="{mid:.1}" y="{ty:.1}" font-size="9.5" fill="#3c4043" text-anchor="middle">{label}</text>"##,
                h = bottom - y,
                mid = at + wide / 2.0,
                ty = y - 4.0
            );
        }
        let _ = writeln!(
            text,
            r##"<text x="{mid:.1}" y="{y}" font-size="13" fill="#202124" text-anchor="middle">({key}) {name}</text>"##,
            mid = start + group / 2.0,
            y = bottom + 22.0,
            key = scenario.key,
            name = scenario.name
        );
        start += group;
    }
    picture(title, &text)
}

/// Never more than it was: 99.96 is not 100.
fn exact(value: f64) -> String {
    let floor = (value * 10.0).floor() / 10.0;
    if value >= 100.0 { "100".to_owned() } else { format!("{floor:.1}") }
}

fn find(cells: &[Cell], scenario: char, set_up: SetUp) -> Option<&Cell> {
    cells.iter().find(|cell| cell.scenario == scenario && cell.set_up == set_up)
}

/// How many of the calls that came in within each second were served, where the provider froze.
fn frozen(cells: &[Cell]) -> String {
    let last = |cell: &Cell| cell.calls.last().map_or(0, |(due, _)| due.as_secs());
    let seconds = cells.iter().filter(|cell| cell.scenario == 'f').map(last).max().unwrap_or(0).max(1);
    let [left, right, top, bottom] = PLOT;
    let across = |halves: u64| left + (right - left) * ratio(halves, 2 * seconds);
    let mut text = String::new();
    let (from, to) = (across(20), across(40));
    let _ = writeln!(
        text,
        r##"<rect x="{from:.1}" y="{top}" width="{w:.1}" height="{h}" fill="#fce8e6"/><text x="{mid:.1}" y="{y}" font-size="12" fill="#b3261e" text-anchor="middle">frozen</text>"##,
        w = to - from,
        h = bottom - top,
        mid = f64::midpoint(from, to),
        y = top + 16.0
    );
    grid(&mut text, 100.0);
    for second in (0..=seconds).step_by(10) {
        let _ = writeln!(
            text,
            r##"<text x="{x:.1}" y="{y}" font-size="11" fill="#5f6368" text-anchor="middle">{second} s</text>"##,
            x = across(2 * second),
            y = bottom + 20.0
        );
    }
    for (set_up, colour) in setups::ALL.iter().zip(COLOURS) {
        let Some(cell) = find(cells, 'f', *set_up) else { continue };
        // A second is drawn at its middle.
        let point =
            |second| format!("{:.1},{:.1}", across(2 * second + 1), height(served(cell, second), 100.0));
        let points: Vec<String> = (0..seconds).map(point).collect();
        let _ = writeln!(
            text,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round"/>"#,
            points.join(" ")
        );
    }
    picture(
        "Calls served, by the second in which they came in, in percent; (f): frozen for ten seconds",
        &text,
    )
}

fn served(cell: &Cell, second: u64) -> f64 {
    let calls: Vec<_> = cell.calls.iter().filter(|(due, _)| due.as_secs() == second).collect();
    let served = calls.iter().filter(|(_, took)| took.is_some()).count();
    ratio(served as u64, calls.len() as u64) * 100.0
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
