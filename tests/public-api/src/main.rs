//! Prints the public API that a file of rustdoc's JSON describes, an item a line.

use std::collections::HashSet;
use std::env::args_os;
use std::error::Error;
use std::path::Path;

use public_api::{Builder, PublicApi};

fn main() -> Result<(), Box<dyn Error>> {
    let path = args_os().nth(1).ok_or("the path of rustdoc's JSON is missing")?;
    let all = api(path.as_ref(), false)?;
    let written = api(path.as_ref(), true)?;
    let written: HashSet<_> = written.items().map(ToString::to_string).collect();
    // Of what is derived, that it is there: the methods of `Clone` and `Debug` say nothing more.
    for item in all.items().map(ToString::to_string) {
        if item.starts_with("impl") || written.contains(&item) {
            println!("{item}");
        }
    }
    Ok(())
}

/// Blanket impls are other crates' business, and `tests/it/auto_traits.rs` holds `Send`, `Sync` and `Unpin`.
fn api(json: &Path, omit_derived: bool) -> public_api::Result<PublicApi> {
    let json = Builder::from_rustdoc_json(json);
    json.omit_blanket_impls(true).omit_auto_trait_impls(true).omit_auto_derived_impls(omit_derived).build()
}
