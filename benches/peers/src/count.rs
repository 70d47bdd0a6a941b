//! So many calls of one layer and nothing else, for a profiler: `count LAYER N`. Without arguments it names the layers.

mod drive;
mod ours;

use std::process::ExitCode;

use drive::{Echo, Loop, Model, Prompt, calls};
use ours::{number, prompt};

/// Makes the calls of one layer ready.
type Make = fn() -> Loop;

/// The healthy path of each layer and of the stack, then what refuses.
const LAYERS: [(&str, Make); 22] = [
    ("bare-service", || calls(Echo, 7_u64)),
    ("bare-service-described", || calls(Model, Prompt::described())),
    ("gate", || number(ours::gate())),
    ("bulkhead", || number(ours::bulkhead())),
    ("circuit-breaker", || number(ours::breaker())),
    ("token-bucket", || number(ours::bucket())),
    ("token-bucket-of-two", || number(ours::bucket_of_two())),
    ("token-bucket-in-use", || number(ours::bucket_in_use())),
    ("token-bucket-of-two-in-use", || number(ours::bucket_of_two_in_use())),
    ("retry", || number(ours::retry())),
    ("timeout", || number(ours::timeout())),
    ("fallback", || prompt(ours::fallback())),
    ("cost-guard", || prompt(ours::guard())),
    ("cost-guard-by-tenant", || prompt(ours::guard_by_tenant())),
    ("cost-guard-of-three", || prompt(ours::guard_of_three())),
    ("monitor-of-calls", || prompt(ours::monitor_of_calls())),
    ("monitor-of-attempts", || prompt(ours::monitor_of_attempts())),
    ("all-six", || prompt(ours::all_six())),
    ("bulkhead-full", || number(ours::bulkhead_full())),
    ("breaker-held-open", || number(ours::breaker_held_open())),
    ("breaker-opened", || number(ours::breaker_opened())),
    ("bucket-empty", || number(ours::bucket_empty())),
];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime with a timer needs nothing that can be missing");
    let _inside = runtime.enter();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [] => LAYERS.iter().for_each(|(name, _)| println!("{name}")),
        [layer, n] => {
            let make = LAYERS.iter().find(|(name, _)| name == layer);
            let (Some((_, make)), Ok(n)) = (make, n.parse()) else {
                eprintln!("no such layer, or no number");
                return ExitCode::FAILURE;
            };
            make()(n);
        }
        _ => {
            eprintln!("count LAYER N");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
