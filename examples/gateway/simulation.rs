//! Providers that do not exist, and callers that nobody pays for: so that there is something to see at once.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::{BoxError, Config};

use super::support::{Fault, Limits, Pace, Price, Provider, Style, Window};

/// The three providers. They live as long as this does.
pub(crate) struct Simulation {
    pub(crate) flaky: Provider,
    pub(crate) slow: Provider,
    pub(crate) dear: Provider,
}

impl Simulation {
    pub(crate) async fn start() -> Result<Self, BoxError> {
        let limits = Limits::per_minute(240, 200_000).style(Style::OpenAi).window(Window::Continuous);
        let pace = |head, first_token, token| Pace {
            head: Duration::from_millis(head),
            first_token: Duration::from_millis(first_token),
            token: Duration::from_millis(token),
        };
        let flaky = Provider::builder("flaky")
            .tokens(40)
            .limits(limits)
            .price(Price::nanos(150, 600))
            .pace(pace(40, 60, 8))
            .start()
            .await?;
        flaky.rates([
            (0.08, Fault::status(500)),
            (0.04, Fault::status(503).retry_after(Duration::from_secs(1))),
            (0.02, Fault::Reset),
            (0.02, Fault::ErrorEvent { after: 0 }),
        ]);
        let slow =
            Provider::builder("slow").tokens(40).price(Price::nanos(100, 400)).pace(pace(300, 500, 30));
        let dear =
            Provider::builder("dear").tokens(40).price(Price::nanos(2_500, 10_000)).pace(pace(30, 30, 4));
        Ok(Self { flaky, slow: slow.start().await?, dear: dear.start().await? })
    }

    /// A configuration in which the flaky one is asked first.
    pub(crate) fn config(&self) -> Result<Config, BoxError> {
        let (flaky, slow, dear) = (self.flaky.url(), self.slow.url(), self.dear.url());
        let text = format!(
            r#"
[upstreams.flaky]
base_url = "{flaky}"
requests_per_minute = 220
max_concurrent = 12
[upstreams.slow]
base_url = "{slow}"
max_concurrent = 12
[upstreams.dear]
base_url = "{dear}"
[[routes]]
model = "chat"
targets = [
  {{ upstream = "flaky", model = "flaky-mini" }},
  {{ upstream = "slow", model = "slow-mini" }},
  {{ upstream = "dear", model = "dear-large" }},
]
[[routes]]
model = "best"
targets = [{{ upstream = "dear", model = "dear-large" }}, {{ upstream = "slow", model = "slow-mini" }}]
[breaker]
open_for = "5s"
[limits]
max_wait = "2s"
[[budgets]]
limit = "5.00"
window = "day"
[prices."flaky-mini"]
input_per_million = "0.15"
output_per_million = "0.60"
[prices."slow-mini"]
input_per_million = "0.10"
output_per_million = "0.40"
[prices."dear-large"]
input_per_million = "2.50"
output_per_million = "10.00"
"#
        );
        Ok(Config::from_toml(&text, |_| None)?)
    }

    /// Takes the flaky provider away every now and then, for ever.
    pub(crate) async fn weather(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(20)).await;
            self.flaky.always(Fault::status(503));
            println!("-- the flaky provider is out for 12 s");
            tokio::time::sleep(Duration::from_secs(12)).await;
            self.flaky.always(Fault::None);
            println!("-- the flaky provider is back");
        }
    }
}

/// A few people who chat, for ever: mostly to the end, at times not.
pub(crate) async fn callers(gateway: SocketAddr) {
    futures_util::future::join_all((0..6).map(|_| caller(gateway))).await;
}

async fn caller(gateway: SocketAddr) {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    loop {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(200..1_500))).await;
        let model = if fastrand::u8(..10) == 0 { "best" } else { "chat" };
        let stream = fastrand::bool();
        let body = format!(
            r#"{{"model":"{model}","stream":{stream},"max_tokens":64,"messages":[{{"role":"user","content":"Say something, number {}"}}]}}"#,
            fastrand::u32(..),
        );
        let request = Request::post(format!("http://{gateway}/v1/chat/completions"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .expect("all parts are sound");
        let Ok(response) = client.request(request).await else { continue };
        if stream && fastrand::u8(..20) == 0 {
            continue;
        }
        // What became of it stands on the page.
        let _ = response.into_body().collect().await;
    }
}
