//! The cost guard as its users meet it.

mod bounds;
mod cases;
mod include_usage;
mod intake;
#[cfg(feature = "file-ledger")]
mod killed;
mod layer;
mod left;
mod race;
mod usage;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use seawall::BoxError;
use seawall::call::{Call, Estimate, OutcomeLayer};
use seawall::cost_guard::{
    AccountState, Budget, CostGuard, CostGuardBuilder, CostGuardLayer, Price, PriceTable, Usd, Window,
};
use seawall::monitor::Event;
use tower::{Layer, Service, service_fn};

use crate::support::TestBody;

/// $1 a million tokens in and out: a token is a thousand nano-dollars.
pub(crate) fn prices() -> PriceTable {
    PriceTable::new().model("m", Price::per_million("1", "1").unwrap())
}

/// Dollars of a thousand-token call at those prices: $0.001.
pub(crate) fn tokens(tokens: u64) -> Usd {
    Usd::nanos(tokens * 1_000)
}

/// A call of so many bytes in and so many tokens out.
pub(crate) fn call(input: u64, output: u64) -> Call {
    let mut call = Call::default();
    call.model = Some("m".into());
    call.estimate = Some(Estimate::new(input / 4, input));
    call.output_bound = Some(output);
    call
}

pub(crate) fn request(call: Call) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(call);
    request
}

pub(crate) fn builder() -> CostGuardBuilder {
    CostGuardLayer::builder()
        .prices(prices())
        .framing(0)
        .unknown_output(0)
        .patience(std::time::Duration::ZERO)
}

/// A guard of one budget for all time, with nothing added to the bounds.
pub(crate) fn guard(limit: Usd) -> CostGuardLayer {
    builder().budget(Budget::new(limit, Window::TOTAL)).build().unwrap()
}

pub(crate) fn account(guard: &CostGuard) -> AccountState {
    guard.ledger().account("total budget", "").unwrap()
}

/// Spent and reserved.
pub(crate) fn sums(guard: &CostGuard) -> (Usd, Usd) {
    let account = account(guard);
    assert!(guard.ledger().audit().balanced, "the holds are what the accounts say");
    (account.spent, account.reserved)
}

type Answers = VecDeque<Result<Response<TestBody>, BoxError>>;

/// An upstream that gives prepared answers and counts how often it was asked.
#[derive(Clone, Default)]
pub(crate) struct Upstream {
    answers: Arc<Mutex<Answers>>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Upstream {
    pub(crate) fn answering(answers: impl IntoIterator<Item = Result<Response<TestBody>, BoxError>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Behind the outcome layer, as a client's stack has it.
    pub(crate) fn service(
        &self,
    ) -> impl Service<
        Request<()>,
        Response = Response<impl Body<Data = Bytes, Error = BoxError> + use<>>,
        Error = BoxError,
        Future: Send,
    > + Clone
    + use<> {
        let this = self.clone();
        OutcomeLayer::new().layer(service_fn(move |_: Request<()>| {
            this.asked.fetch_add(1, Ordering::SeqCst);
            let answer = this.answers.lock().unwrap().pop_front();
            async move { answer.unwrap_or_else(|| Ok(json("{}"))) }
        }))
    }
}

pub(crate) fn response(status: u16, content_type: &str, parts: &[&[u8]]) -> Response<TestBody> {
    let frames = parts.iter().map(|part| Ok(Frame::data(Bytes::copy_from_slice(part)))).collect();
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(TestBody::new(frames))
        .unwrap()
}

pub(crate) fn json(body: &str) -> Response<TestBody> {
    response(200, "application/json", &[body.as_bytes()])
}

pub(crate) fn sse(events: &[&str]) -> Response<TestBody> {
    let events: Vec<String> = events.iter().map(|data| format!("data: {data}\n\n")).collect();
    let parts: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    response(200, "text/event-stream", &parts)
}

pub(crate) fn used(input: u64, output: u64) -> String {
    format!(r#"{{"usage":{{"prompt_tokens":{input},"completion_tokens":{output}}}}}"#)
}

pub(crate) async fn drain<B: Body<Error = BoxError>>(response: Response<B>) {
    let _ = response.into_body().collect().await;
}

/// Calls the service and reads the answer to its end.
pub(crate) async fn ask<S, B>(service: &mut S, call: Call) -> Result<(), BoxError>
where
    S: Service<Request<()>, Response = Response<B>, Error = BoxError>,
    B: Body<Error = BoxError>,
{
    use tower::ServiceExt;
    let response = service.ready().await?.call(request(call)).await?;
    drain(response).await;
    Ok(())
}

/// Writes down what the guard tells.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn observer(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let log = self.clone();
        move |event| {
            let line = match event {
                Event::Spent { amount, reserved, basis, .. } => {
                    format!("spent {amount} of {reserved} by {basis:?}")
                }
                Event::BudgetMark { percent, spent, .. } => format!("mark {percent} at {spent}"),
                Event::Unpriced { .. } => "unpriced".into(),
                Event::Unreserved { .. } => "unreserved".into(),
                Event::Refused { refusal, .. } => format!("refused {}", refusal.kind().as_str()),
                Event::WouldRefuse { refusal, .. } => format!("would refuse {}", refusal.kind().as_str()),
                Event::Waited { .. } => "waited".into(),
                other => format!("{other:?}"),
            };
            log.0.lock().unwrap().push(line);
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

pub(crate) fn kind(error: &BoxError) -> seawall::RefusalKind {
    seawall::refusal::find(&**error).expect("a refusal of ours").kind()
}
