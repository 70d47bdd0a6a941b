//! What pages beside a layer's own say of it (the README, the front page, the pages to read) is what its constants say.

use std::time::Duration;

use super::{MemoryLedger, Settings, minute};
use crate::bulkhead::BulkheadLayer;
use crate::call::IntakeLayer;
use crate::circuit_breaker::{CircuitBreaker, CircuitBreakerLayer, SettingsBuilder};
use crate::gate::{Admission, ByUpstream, Gate, Keyed};
use crate::retry::{self, RetryPolicy};
use crate::token_bucket::TokenBucketLayer;

fn read(path: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn the_readme_and_the_front_page_name_each_feature_and_no_other() {
    let manifest = read("Cargo.toml");
    let (_, features) = manifest.split_once("[features]\n").unwrap();
    let (features, _) = features.split_once("\n\n").unwrap();
    let names = features.lines().filter_map(|line| line.split_once(" = ").map(|(name, _)| name));
    let mut names: Vec<_> = names.filter(|name| *name != "default").map(str::to_owned).collect();
    names.sort_unstable();
    for page in [read("README.md"), read("src/lib.rs")] {
        let table = page.split_once("| feature | what it adds |").unwrap().1;
        let rows = table.lines().skip(2).map(|line| line.trim_start_matches("//! "));
        let rows =
            rows.map_while(|row| row.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned()));
        let mut told: Vec<_> = rows.collect();
        told.sort_unstable();
        assert_eq!(told, names);
    }
}

#[test]
fn the_readme_names_each_example_and_no_other() {
    let readme = read("README.md");
    let table = readme.split_once("| you | your example |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut told: Vec<_> = rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect();
    told.sort_unstable();
    let files = std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap();
    let names =
        files.filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(".rs")?.to_owned()));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    assert_eq!(told, names);
}

/// The text of each source file.
fn sources(directory: &std::path::Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, texts);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn each_message_to_the_compiler_is_explained() {
    let mut texts = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
    let attribute = concat!("#[diagnostic::", "on_unimplemented(\n    message = \"");
    let messages: Vec<_> = texts.iter().flat_map(|text| text.split(attribute).skip(1)).collect();
    assert!(messages.len() > 10, "{}", messages.len());
    let page = read("src/docs/compiler_messages.rs");
    for message in messages {
        let message = message.split('"').next().unwrap();
        // The longest text between its placeholders.
        let longest = message.split(['`', '{', '}']).max_by_key(|part| part.len()).unwrap().trim();
        assert!(page.contains(longest), "{message}");
    }
}

#[test]
fn the_readme_s_dependencies_are_those_of_the_manifest() {
    let (readme, manifest) = (read("README.md"), read("Cargo.toml"));
    let block = readme.split_once("```toml\n[dependencies]\n").unwrap().1.split_once("```").unwrap().0;
    for line in block.lines().filter(|line| !line.contains("path")) {
        let (name, rest) = line.split_once(" = ").unwrap();
        let version = rest.split('"').nth(1).unwrap();
        let ours =
            manifest.lines().filter(|line| line.split_once(" = ").is_some_and(|(other, _)| other == name));
        let ours: Vec<_> = ours.filter_map(|line| line.split('"').nth(1)).collect();
        assert!(ours.iter().any(|ours| ours.starts_with(version)), "{name} {version} is none of {ours:?}");
    }
}

/// A number as pages write it: a blank after each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> =
        digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
    groups.join(" ")
}

/// What a setting is, as the `Debug` of its builder shows it: `10s` is `10 s` on a page.
#[track_caller]
fn shown(built: &impl std::fmt::Debug, setting: &str) -> String {
    let text = format!("{built:?}");
    let value = text.split_once(&format!("{setting}: ")).unwrap_or_else(|| panic!("{setting} in {text}")).1;
    let value = value.split([',', ' ']).next().unwrap().trim_start_matches("Some(").trim_end_matches(')');
    let unit = value.find(char::is_alphabetic).unwrap_or(value.len());
    format!("{} {}", &value[..unit], &value[unit..])
}

#[test]
fn defaults_that_other_pages_name_are_the_layers_own() {
    let readme = read("README.md");
    let page = |name: &str| read(&format!("src/docs/{name}.rs"));
    let bulkhead = shown(&BulkheadLayer::builder(8), "max_wait");
    let bucket = shown(&TokenBucketLayer::builder().requests(minute(60)), "max_wait");
    // The breaker keeps its settings in nanoseconds: what a page says is built, and must be the default.
    let seconds = |seconds: u64, set: fn(SettingsBuilder, Duration) -> SettingsBuilder| {
        let told = set(Settings::builder(), Duration::from_secs(seconds)).build().unwrap();
        assert_eq!(told, Settings::default());
        format!("{seconds} s")
    };
    let abandoned = seconds(60, SettingsBuilder::abandoned_counts_after);
    let open = seconds(30, SettingsBuilder::open_for);
    let window = seconds(30, SettingsBuilder::window);
    let intake: usize = shown(&IntakeLayer::new(), "limit").trim().parse().unwrap();
    let keys = grouped(Keyed::<CircuitBreaker, ByUpstream>::DEFAULT_BOUND.get());
    let says = [
        (readme.clone(), format!("collected, up to {} MiB", intake >> 20)),
        (readme.clone(), format!("up to {} KiB", crate::provider::BODY_LIMIT >> 10)),
        (readme.clone(), format!("calls wait, {bulkhead} at most")),
        (readme.clone(), format!("8 more may wait, {bulkhead} at most")),
        (readme.clone(), format!("Five failures in a row, or half of a window: refuse for {open}")),
        (page("ordering"), format!("counts only after [{abandoned}]")),
        (page("failure_semantics"), format!("no head had come after {abandoned}")),
        (page("failure_semantics"), format!("at {keys} keys by default")),
        (
            page("failure_semantics"),
            format!("the bound is {} accounts", grouped(MemoryLedger::DEFAULT_MOST_KEYS.get())),
        ),
        (page("migration/seatbelt"), format!("by time: {abandoned} without a head")),
        (page("migration/seatbelt"), format!("bounded, at {keys} keys")),
        (page("migration/seatbelt"), format!("{open} by default where it was 5 s")),
        (page("migration/seatbelt"), format!("{window} in both")),
        (
            page("migration/seatbelt"),
            format!("counts; {}by default", shown(&RetryPolicy::http(), "attempts")),
        ),
        (
            page("migration/seatbelt"),
            format!("{} by default, where it was 10 ms", shown(&RetryPolicy::http(), "base")),
        ),
        (
            page("migration/seatbelt"),
            format!("{} by default, where there was none", shown(&RetryPolicy::http(), "cap")),
        ),
        (page("migration/tower"), format!("at most n wait, {bulkhead} at most")),
        (page("migration/tower_resilience"), format!("{bulkhead} by default, not for ever")),
        (page("migration/tower_resilience"), format!("failure after {abandoned} without a head")),
        (page("migration/tower_resilience"), format!("the default kind, {window}")),
        (
            page("migration/tower_resilience"),
            format!("cap of {} by default", shown(&RetryPolicy::http(), "cap")),
        ),
    ];
    for (page, text) in says {
        assert!(page.contains(&text), "{text}");
    }
    assert_eq!(bucket, bulkhead, "the bucket's page says that it is the same");
}

#[test]
fn rates_that_other_pages_name_are_the_layers_own() {
    let told = Settings::builder().minimum_calls(20).failure_rate(0.5).build().unwrap();
    assert_eq!(told, Settings::default());
    assert!(read("src/docs/migration/seatbelt.rs").contains("| 20 by default |"));
    assert!(read("src/docs/migration/tower_resilience.rs").contains("| 20 by default |"));
    let fifth = retry::Budget::default();
    (0..10).for_each(|_| assert!(fifth.try_take(None)));
    (0..5).for_each(|_| fifth.arrive(None));
    assert_eq!(fifth.left_in_thousandths(None), 1_000, "`up to a fifth more calls in an outage`");
    assert!(read("README.md").contains("up to a fifth more calls in an outage"));
}

/// The lines of documentation right above a line of code, attributes left out.
fn above(text: &str, line: usize) -> String {
    let before: Vec<_> = text.lines().take(line).map(str::trim_start).collect();
    let block = before.iter().rev().take_while(|line| line.starts_with("///") || line.starts_with("#["));
    block.filter(|line| line.starts_with("///")).copied().collect::<Vec<_>>().join("\n")
}

#[test]
fn each_layer_has_an_example_or_leads_to_one() {
    let mut texts = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
    let mut layers = 0;
    for text in &texts {
        for (number, line) in text.lines().enumerate() {
            let Some(name) = line.strip_prefix("pub struct ") else { continue };
            let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            if name.ends_with("Layer") {
                layers += 1;
                let docs = above(text, number);
                let leads = docs.contains("](") || docs.contains("see [");
                assert!(docs.contains("```") || leads, "{name}");
            }
        }
    }
    assert!(layers > 12, "{layers}");
}

/// Who refuses the second of two calls, and what its documents call it.
#[track_caller]
fn named<G: Gate<http::Request<()>>>(gate: &G, source: &str, says: &str) {
    let _first = gate.admit(&mut http::Request::new(()));
    let Admission::Refused(refusal) = gate.admit(&mut http::Request::new(())) else {
        panic!("not refused: {says}");
    };
    let name = format!("`{}`", refusal.name());
    assert!(says.contains(&name), "{name} is not in {says}");
    assert!(read(source).contains(says), "{says}");
}

#[tokio::test(start_paused = true)]
async fn a_gate_without_a_name_has_the_one_of_its_documents() {
    let bulkhead = BulkheadLayer::new(0);
    named(bulkhead.gate(), "src/bulkhead/layer.rs", "Default: `bulkhead`.");
    let bucket = TokenBucketLayer::builder().requests(minute(1)).refuse().build().unwrap();
    named(bucket.gate(), "src/token_bucket/builder.rs", "Default: `token_bucket`.");
    let breaker = CircuitBreakerLayer::new();
    breaker.gate().force_open();
    named(breaker.gate(), "src/circuit_breaker/layer.rs", "(default `circuit_breaker`)");
}
