//! From a request to its response.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use seawall::time;
use tokio::time::sleep;

use super::asked::{self, Api, Asked};
use super::body::{Script, Step};
use super::builder::Pace;
use super::fault::Fault;
use super::headers::{self, put};
use super::log::How;
use super::problem::Problem;
use super::shared::{Record, Shared};
use super::socket::Line;
use super::wire::{self, Answer};

/// The largest request that is read.
const LARGEST: usize = 64 << 20;

pub(super) async fn answer(
    shared: Arc<Shared>,
    line: Arc<Line>,
    request: Request<Incoming>,
) -> io::Result<Response<Script>> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LARGEST).collect().await.map_err(io::Error::other)?.to_bytes();
    let api = Api::of(&parts.method, parts.uri.path());
    let asked = Asked::read(&body);
    let (fault, pace, mut record) = note(&shared, line, api, &parts, &body, asked.as_ref());
    match fault {
        Fault::Hang => std::future::pending::<()>().await,
        Fault::Reset => {
            record.end(How::Faulted);
            record.line.cut();
            std::future::pending::<()>().await;
        }
        Fault::SlowHead(wait) => sleep(wait).await,
        _ => sleep_for(pace.head).await,
    }
    let mut headers = HeaderMap::new();
    put(&mut headers, "x-request-id", format!("req_{}_{}", shared.name, record.number()));
    let response = match check(&shared, &parts, api, asked, &fault, &mut headers) {
        Ok(Good { api: Api::Models, model, .. }) => {
            json(StatusCode::OK, wire::models(&shared, &model), record)
        }
        Ok(good) => serve(&shared, good, fault, pace, record).await,
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).map_err(io::Error::other)?;
            headers.extend(problem.headers.clone());
            json(status, problem.body(api).to_string(), record)
        }
    };
    Ok(with(response, headers))
}

/// What passed every check.
struct Good {
    api: Api,
    asked: Asked,
    model: String,
}

/// Notes the request in the log, and draws what happens to it.
fn note(
    shared: &Arc<Shared>,
    line: Arc<Line>,
    api: Option<Api>,
    parts: &Parts,
    body: &Bytes,
    asked: Option<&Asked>,
) -> (Fault, Pace, Record) {
    let chosen = shared.settings.faults_by_request.then(|| {
        let fault = asked::fault(&parts.headers, asked.and_then(|asked| asked.model.as_deref()))?;
        // Its caller sees that it is none.
        Some(fault.unwrap_or_else(|_| Fault::status(400).code("no_such_fault")))
    });
    let chosen = chosen.flatten();
    let mut state = shared.state();
    let number = state.log.note(line.number, parts, body, asked);
    // A list of models costs no turn of the script.
    let fault = match chosen {
        _ if api == Some(Api::Models) => Fault::None,
        Some(fault) => fault,
        None => state.faults.next(),
    };
    if let Some(seen) = state.log.get(number) {
        seen.fault = fault.clone();
    }
    let pace = state.pace;
    drop(state);
    let record = Record::new(shared.clone(), line, number);
    shared.tell();
    (fault, pace, record)
}

/// Says what is wrong with a request, or what it is. Where limits stand is told in any case.
fn check(
    shared: &Shared,
    parts: &Parts,
    api: Option<Api>,
    asked: Option<Asked>,
    fault: &Fault,
    headers: &mut HeaderMap,
) -> Result<Good, Box<Problem>> {
    let settings = &shared.settings;
    if settings.key.is_some() && asked::key(&parts.headers) != settings.key.as_deref() {
        return Err(Problem::key().into());
    }
    let api = api.ok_or_else(|| Problem::path(asked::path(parts)))?;
    let asked = match (asked, api) {
        (Some(asked), _) => asked,
        (None, Api::Models) => Asked::read(b"{}").ok_or_else(Problem::json)?,
        (None, _) => return Err(Problem::json().into()),
    };
    let model = match parts.uri.path().strip_prefix("/v1/models/") {
        Some(name) => name.to_owned(),
        None => asked.model.clone().unwrap_or_default(),
    };
    if let Some(problem) = Problem::of(fault, &model, asked.input) {
        return Err(problem.into());
    }
    let listed = settings.models.as_ref().is_none_or(|models| models.contains(&model));
    if !listed && (api != Api::Models || !model.is_empty()) {
        return Err(Problem::model(&model).into());
    }
    if api != Api::Models {
        let output = if api == Api::Embeddings { 0 } else { asked.most.unwrap_or(settings.tokens) };
        meter(shared, asked.input + output, &model, headers)?;
    }
    match settings.context {
        Some(limit) if asked.input > limit => Err(Problem::context(limit, asked.input).into()),
        _ => Ok(Good { api, asked, model }),
    }
}

fn meter(shared: &Shared, tokens: u64, model: &str, headers: &mut HeaderMap) -> Result<(), Box<Problem>> {
    let mut state = shared.state();
    let Some(meter) = &mut state.meter else { return Ok(()) };
    let now = time::now();
    let taken = meter.take(tokens, now);
    headers::tell(meter.limits.style, meter.limits.per, &meter.read(now), headers);
    taken.map_err(|over| headers::refusal(&meter.limits, &over, model).into())
}

/// A good answer, as far as the fault lets it be one.
async fn serve(
    shared: &Shared,
    good: Good,
    fault: Fault,
    pace: Pace,
    mut record: Record,
) -> Response<Script> {
    let Good { api, asked, model } = good;
    let content = &asked.content;
    let words = content.pieces.is_empty();
    let whole = if words { shared.settings.tokens } else { content.pieces.len() as u64 };
    let tokens = if api == Api::Embeddings { 0 } else { whole.min(asked.most.unwrap_or(whole)) };
    let usage = fault != Fault::NoUsage && (asked.usage || !asked.stream);
    let answer = Answer::new(record.number(), &model, content, (asked.input, tokens), tokens < whole, usage);
    let first = match fault {
        Fault::SlowFirstToken(wait) => wait,
        _ => pace.first_token,
    };
    // A failure instead of an answer is not billed; one in the midst of it is.
    if fault != (Fault::ErrorEvent { after: 0 }) {
        record.begin(asked.input, tokens);
    }
    if asked.stream && api != Api::Embeddings {
        return stream(steps(api, &answer, &fault, first, pace.token), record);
    }
    let between = pace.token * u32::try_from(tokens.saturating_sub(1)).unwrap_or(u32::MAX);
    sleep_for(first + between).await;
    let text = answer.whole(api, asked.items, asked.base64);
    let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    match fault {
        Fault::Cut { .. } => {
            respond(StatusCode::OK, "application/json", [Step::Send(half), Step::Flush, Step::Cut], record)
        }
        Fault::Stall { wait, .. } => {
            let rest = Bytes::copy_from_slice(&text.as_bytes()[text.len() / 2..]);
            let pause = wait.map_or(Step::Stall, Step::Wait);
            let steps = [Step::Send(half), pause, Step::Tokens(rest, tokens)];
            respond(StatusCode::OK, "application/json", steps, record)
        }
        Fault::Malformed { .. } => {
            respond(StatusCode::OK, "application/json", [Step::Tokens(half, tokens)], record)
        }
        _ => respond(StatusCode::OK, "application/json", [Step::Tokens(text.into(), tokens)], record),
    }
}

/// The steps of a stream. A fault that comes after more tokens than there are comes after the last one.
fn steps(api: Api, answer: &Answer<'_>, fault: &Fault, first: Duration, between: Duration) -> Vec<Step> {
    let mut steps: Vec<_> = answer.opening(api).into_iter().map(|text| Step::Send(text.into())).collect();
    let at = match fault {
        Fault::Cut { after }
        | Fault::Stall { after, .. }
        | Fault::Malformed { after }
        | Fault::ErrorEvent { after } => Some((*after).min(answer.tokens)),
        _ => None,
    };
    for index in 0..=answer.tokens {
        if at == Some(index) {
            match fault {
                Fault::Cut { .. } => {
                    steps.extend([Step::Flush, Step::Cut]);
                    return steps;
                }
                Fault::Stall { wait, .. } => steps.push(wait.map_or(Step::Stall, Step::Wait)),
                Fault::ErrorEvent { .. } => {
                    steps.push(Step::Send(wire::error_event(api).into()));
                    return steps;
                }
                _ => steps.push(Step::Send(Bytes::from_static(wire::MALFORMED.as_bytes()))),
            }
        }
        if index == answer.tokens {
            break;
        }
        let wait = if index == 0 { first } else { between };
        if !wait.is_zero() {
            steps.push(Step::Wait(wait));
        }
        steps.push(Step::Tokens(answer.token(api, index).into(), 1));
    }
    steps.extend(answer.closing(api).into_iter().map(|text| Step::Send(text.into())));
    if *fault != Fault::NoDone {
        steps.push(Step::Send(answer.terminal(api).into()));
    }
    steps
}

fn stream(steps: Vec<Step>, record: Record) -> Response<Script> {
    let mut response = respond(StatusCode::OK, "text/event-stream", steps, record);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn json(status: StatusCode, body: String, record: Record) -> Response<Script> {
    respond(status, "application/json", [Step::Send(body.into())], record)
}

fn respond(
    status: StatusCode,
    content_type: &'static str,
    steps: impl IntoIterator<Item = Step>,
    record: Record,
) -> Response<Script> {
    record.answered(status.as_u16());
    let mut response = Response::new(Script::new(steps, record));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn with(mut response: Response<Script>, headers: HeaderMap) -> Response<Script> {
    response.headers_mut().extend(headers);
    response
}

/// No timer at all where there is nothing to wait for.
async fn sleep_for(wait: Duration) {
    if !wait.is_zero() {
        sleep(wait).await;
    }
}
