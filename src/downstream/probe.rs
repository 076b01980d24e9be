//! Asks a downstream how a call stands that was given up. Only a definite "done" frees its permit early: whatever else it
//! says, or does not say, the request may still be on its way.

use std::fmt;
use std::time::Duration;

use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;

use super::http::{BadHttp, FENCING_TOKEN, HttpOptions, IDEMPOTENCY_KEY, client, headers};
use super::text::percent_encode;
use super::within;

/// Bound on one question, and on its answer in bytes.
const LIMIT: Duration = Duration::from_secs(5);
const ANSWER_MAX: usize = 4 << 10;

/// How a call stands downstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// It is being worked on.
    Running,
    /// It is over.
    Done,
    /// Nobody can tell.
    Unknown,
}

/// What is asked about: one call that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The `Idempotency-Key` of its task.
    pub idempotency_key: &'a str,
    /// The fencing token of its attempt.
    pub claim_no: i64,
    /// The task was never claimed before or after, so its key means this call and no other.
    pub only: bool,
}

/// Where to ask. Prints without the template, whose query may hold a secret.
pub struct Probe {
    client: Client,
    headers: reqwest::header::HeaderMap,
    /// With `{key}` where the `Idempotency-Key` goes.
    template: String,
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").finish_non_exhaustive()
    }
}

impl Probe {
    /// `template` is a URL in which `{key}` stands for the `Idempotency-Key`; headers and limits of the connection are the
    /// downstream's. Connects nowhere yet.
    pub fn new(template: &str, options: &HttpOptions) -> Result<Self, BadHttp> {
        // A URL that has been parsed before shows its braces so.
        let template = template.replace("%7Bkey%7D", "{key}");
        let url = url(&template, "key")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadHttp::Scheme(url.scheme().to_owned()));
        }
        Ok(Self { client: client(options)?, headers: headers(&options.headers)?, template })
    }

    /// Asks once, with a `GET` that carries `Idempotency-Key` and `X-Permitq-Fencing-Token`. Whatever goes wrong is
    /// [`Probed::Unknown`].
    pub async fn ask(&self, question: &Question<'_>) -> Probed {
        let said = within(LIMIT, self.answer(question)).await.and_then(Result::ok).flatten();
        said.map_or(Probed::Unknown, |body| read(&body, question))
    }

    /// The body of a 200 that is not too long.
    async fn answer(&self, question: &Question<'_>) -> reqwest::Result<Option<Vec<u8>>> {
        let Ok(url) = url(&self.template, question.idempotency_key) else { return Ok(None) };
        let mut response = self
            .client
            .get(url)
            .headers(self.headers.clone())
            .header(IDEMPOTENCY_KEY, question.idempotency_key)
            .header(FENCING_TOKEN, question.claim_no)
            .send()
            .await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_MAX {
                return Ok(None);
            }
        }
        Ok((response.status() == StatusCode::OK).then_some(body))
    }
}

fn url(template: &str, key: &str) -> Result<Url, BadHttp> {
    let url = template.replace("{key}", &percent_encode(key));
    Url::parse(&url).map_err(|error| BadHttp::Url(error.to_string()))
}

#[derive(Deserialize)]
struct Answer {
    state: String,
    fencing_token: Option<i64>,
}

/// All attempts of a task have one key: "done" counts only where it can mean no other attempt's call.
fn read(body: &[u8], question: &Question<'_>) -> Probed {
    let Ok(Answer { state, fencing_token }) = serde_json::from_slice(body) else { return Probed::Unknown };
    let ours = fencing_token.map_or(question.only, |token| token == question.claim_no);
    match state.as_str() {
        "running" => Probed::Running,
        "done" if ours => Probed::Done,
        _ => Probed::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::stub::{self, StubOptions};

    fn question(claim_no: i64, only: bool) -> Question<'static> {
        Question { idempotency_key: "here-7", claim_no, only }
    }

    #[test]
    fn only_a_done_that_can_mean_no_other_call_is_definite() {
        use Probed::{Done, Running, Unknown};
        for (body, only, probed) in [
            (r#"{"state": "done"}"#, true, Done),
            (r#"{"state": "done"}"#, false, Unknown),
            (r#"{"state": "done", "fencing_token": 2}"#, false, Done),
            (r#"{"state": "done", "fencing_token": 1}"#, true, Unknown),
            (r#"{"state": "running"}"#, true, Running),
            (r#"{"state": "unknown"}"#, true, Unknown),
            (r#"{"state": "DONE"}"#, true, Unknown),
            (r#"{"state": true}"#, true, Unknown),
            (r#"{"said": "done"}"#, true, Unknown),
            ("done", true, Unknown),
            ("", true, Unknown),
        ] {
            assert_eq!(read(body.as_bytes(), &question(2, only)), probed, "{body} {only}");
        }
    }

    #[tokio::test]
    async fn whatever_goes_wrong_is_unknown() {
        let stub = stub::start(StubOptions::default()).await.unwrap();
        let options = HttpOptions::default();
        for template in ["/calls/{key}", "/no/such/{key}", "/summary"] {
            let template = format!("http://{}{template}", stub.addr);
            let probe = Probe::new(&template, &options).unwrap();
            assert_eq!(probe.ask(&question(1, true)).await, Probed::Unknown, "{template}");
        }
        let gone = format!("http://{}/calls/{{key}}", stub.addr);
        stub.shutdown().await;
        let probe = Probe::new(&gone, &options).unwrap();
        assert_eq!(probe.ask(&question(1, true)).await, Probed::Unknown);
        assert!(matches!(Probe::new("ftp://{key}", &options), Err(BadHttp::Scheme(_) | BadHttp::Url(_))));
    }
}
