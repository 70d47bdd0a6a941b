//! What cannot run is refused before it runs, with the reason.

use std::net::SocketAddr;

use seawall::Config;

use super::app::{server, state};
use super::world::*;
use crate::provider::Provider;

async fn sound() -> String {
    let provider = Provider::builder("any").start().await.unwrap();
    config(&Setup::default(), &provider, &provider)
}

fn problem(text: &str) -> String {
    let folder = Folder::new();
    let error = state::read(&folder.write(text)).err().unwrap().to_string();
    assert!(error.starts_with(&folder.file().display().to_string()), "{error}");
    assert!(!error.contains("secret-of-"), "{error}");
    error
}

#[tokio::test]
async fn a_file_that_is_missing_half_written_or_of_another_kind() {
    let folder = Folder::new();
    let error = state::read(&folder.file()).err().unwrap().to_string();
    assert!(error.contains("gateway.toml: No such file"), "{error}");
    let text = sound().await;
    // Wherever a writer was stopped within a line, the file is refused or means less; it never means something else.
    let half = text.find("targets").unwrap() + 30;
    let line = text[..half].lines().count();
    let error = problem(&text[..half]);
    assert!(error.contains(&format!("line {line}")), "{error}");
    for cut in (1..text.len()).step_by(7) {
        let _ = Config::from_toml(&text[..cut], |_| None);
    }
    assert!(problem("").contains("upstreams"));
    assert!(problem("{\"upstreams\": {}}").contains("line 1"));
    assert!(problem("\u{0}\u{1}").contains("line 1"));
}

#[tokio::test]
async fn an_unknown_key_and_a_wrong_value_have_their_line_and_path() {
    let text = sound().await;
    for (from, to, problems) in [
        ("max_concurrent = 200", "max_concurent = 200", ["upstreams.first", "max_concurent"]),
        ("max_concurrent = 200", "max_concurrent = -1", ["upstreams.first.max_concurrent", "-1"]),
        ("limit = \"1.00\"", "limit = \"a lot\"", ["budgets[0].limit", "dollars"]),
        ("commit = \"first_content\"", "commit = \"soon\"", ["routes[0].commit", "`first_content`"]),
        ("base_url = \"http:", "base_url = \"gopher:", ["upstreams.first.base_url", ""]),
    ] {
        let wrong = text.replacen(from, to, 1);
        let line = wrong.lines().position(|line| line.contains(to)).unwrap() + 1;
        let error = problem(&wrong);
        for problem in problems {
            assert!(error.contains(problem), "{problem}: {error}");
        }
        assert!(error.contains(&format!("line {line}")), "line {line}: {error}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_set_and_prices_that_cannot_be_read() {
    let text = sound().await;
    let error = problem(&text.replacen("secret-of-first", "env:SEAWALL_NOT_SET", 1));
    assert!(error.contains("upstreams.first.api_key") && error.contains("SEAWALL_NOT_SET"), "{error}");
    let error = problem(&format!("{text}\n[[clients]]\nname = \"a\"\nkey = \"env:SEAWALL_NOT_SET\"\n"));
    assert!(error.contains("clients[0].key") && error.contains("SEAWALL_NOT_SET"), "{error}");
    let prices = Folder::new();
    let path = prices.write("half a { list");
    let list = |path: &std::path::Path| {
        format!("{text}\n[price_file]\npath = \"{}\"\nformat = \"litellm\"\n", path.display())
    };
    assert!(problem(&list(&path)).contains("price_file.path"));
    assert!(problem(&list(std::path::Path::new("/nowhere/prices.json"))).contains("cannot be read"));
}

#[tokio::test]
async fn a_gateway_without_clients_listens_to_this_machine_alone() {
    let text = sound().await;
    let config = Config::from_toml(&text, |_| None).unwrap();
    for here in ["127.0.0.1:8080", "[::1]:8080", "127.8.8.8:1"] {
        assert!(server::allow(&config, here.parse().unwrap()).is_ok(), "{here}");
    }
    for elsewhere in ["0.0.0.0:8080", "[::]:8080", "192.168.1.7:8080"] {
        let error = server::allow(&config, elsewhere.parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains(elsewhere) && error.contains("[[clients]]"), "{error}");
    }
    let clients = format!("{text}\n[[clients]]\nname = \"a\"\nkey = \"b\"\n");
    let config = Config::from_toml(&clients, |_| None).unwrap();
    assert!(server::allow(&config, "0.0.0.0:8080".parse().unwrap()).is_ok());
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let first = server::listen(here, false).await.unwrap();
    let taken = first.local_addr().unwrap();
    let error = server::listen(taken, false).await.unwrap_err().to_string();
    assert!(error.contains(&format!("cannot listen on {taken}")), "{error}");
    // The simulation just takes another.
    assert_ne!(server::listen(taken, true).await.unwrap().local_addr().unwrap(), taken);
}
