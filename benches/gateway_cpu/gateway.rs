//! The example gateway, with everything on.
#![allow(dead_code, reason = "the example uses the rest")]

#[path = "../../examples/gateway/errors.rs"]
mod errors;
#[path = "../../examples/gateway/paced.rs"]
mod paced;
#[path = "../../examples/gateway/proxy.rs"]
mod proxy;
#[path = "../../examples/gateway/server.rs"]
mod server;
#[path = "../../examples/gateway/state.rs"]
mod state;
#[path = "../../examples/gateway/stats.rs"]
mod stats;
#[path = "../../examples/gateway/upstream.rs"]
mod upstream;

use std::net::SocketAddr;
use std::time::Duration;

use seawall::Config;

use state::{Gateway, Options};

pub(crate) async fn serve(upstream: SocketAddr) {
    let text = format!(
        r#"
[upstreams.first]
base_url = "http://{upstream}/v1"
api_key = "the-upstreams-key"
requests_per_minute = 1000000000
tokens_per_minute = 10000000000
max_concurrent = 100
[upstreams.second]
base_url = "http://{upstream}/v1"
max_concurrent = 100
[[routes]]
model = "chat"
targets = [
  {{ upstream = "first", model = "model-a", timeout = "30s", attempts = 3, context = 64000 }},
  {{ upstream = "second", model = "model-b" }},
]
[[budgets]]
limit = "1000000.00"
window = "day"
[[budgets]]
limit = "100000.00"
window = "day"
key = "client"
[prices."model-a"]
input_per_million = "0.42"
output_per_million = "1.10"
[[clients]]
name = "team-a"
key = "the-callers-key"
models = ["chat"]
[[clients]]
name = "team-b"
key = "another-key"
"#
    );
    let config = Config::from_toml(&text, |_| None).unwrap();
    let options = Options { quiet: true, ..Options::default() };
    let gateway = Gateway::new(config, options).unwrap();
    tokio::spawn(gateway.current().stack.monitor().clone().run(Duration::from_secs(5)));
    let listener = super::provider::listen().await;
    server::serve(listener, gateway, Duration::ZERO, std::future::pending()).await;
}
