//! Calls a downstream by HTTP: exactly one request per call, and a verdict that rests on what was really seen.
//!
//! How the connection is set up, and why:
//!
//! - **No hidden second request.** No redirects, no protocol retries, and no reuse of connections: a reused one may be
//!   dead, which looks like a broken call, and is the one case in which the client library would send again.
//! - **No proxy from the environment**: what the downstream counts and what we count must be the same calls.
//! - **Our own read timeout.** The library's timeout error cannot be told from the kernel's `ETIMEDOUT`. But only
//!   after the first have *we* hung up; after the second the downstream may never learn that we are gone.
//! - **`tcp_user_timeout`** bounds how late a request can still arrive, so it is part of the time that a permit cools.
//! - **Keep-alive** probes every 15 s: NATs and load balancers forget silent connections after about a minute.
//! - A body beyond the bound is read on to its end: only then is the downstream known to be done. What is kept of it never
//!   grows beyond the bound, and compressed answers are neither asked for nor unpacked.
//! - **No secret comes back.** A downstream that repeats the token it was sent, as some do when they refuse it, would put
//!   it into the table and onto every screen: it is replaced by `***`.
//!
//! A body that ends with the connection (neither `Content-Length` nor chunked) counts as read to its end, as RFC 9112, 8
//! has it; prefer a downstream that says how long its answers are.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Method, Request, Response, Url};

use super::secrets::Secrets;
use super::text::{ERROR_MAX, chain, percent_encode};
use super::{Call, Handler, Rules, Seen, classify, retry_after, within};
use crate::model::{Outcome, Verdict};

/// Pause before the first keep-alive probe of a silent connection, and between probes.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// No limit may be longer; the kernel takes no `TCP_USER_TIMEOUT` beyond 24 days.
const LONGEST: Duration = Duration::from_hours(7 * 24);

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const BIZ_KEY: HeaderName = HeaderName::from_static("x-permitq-key");
const ATTEMPT: HeaderName = HeaderName::from_static("x-permitq-attempt");
pub(super) const FENCING_TOKEN: HeaderName = HeaderName::from_static("x-permitq-fencing-token");

/// Headers that belong to the call or to its framing.
const OURS: [HeaderName; 10] = [
    IDEMPOTENCY_KEY,
    BIZ_KEY,
    ATTEMPT,
    FENCING_TOKEN,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// How a downstream is called.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Where: `http://` or `https://`.
    pub url: String,
    /// `POST` by default. `GET` and `HEAD` carry no body, all others the task's payload.
    pub method: String,
    /// Sent with every call: name and value. Values may be secrets; they are never shown.
    pub headers: Vec<(String, String)>,
    /// What must not come back with an answer: there it becomes `***`. Texts under 8 bytes are left alone, since they would
    /// be found where they mean something else.
    pub secrets: Vec<String>,
    /// The certificates in this PEM file are trusted, and no others: for a downstream with a CA of its own.
    pub ca_file: Option<PathBuf>,
    /// Until the connection stands, TLS included.
    pub connect_timeout: Duration,
    /// The longest silence: until the answer begins, and between its parts. Must exceed the longest call of a
    /// downstream that says nothing until it is done.
    pub read_timeout: Duration,
    /// Until the kernel gives up unacknowledged data.
    pub tcp_user_timeout: Duration,
    /// After these statuses the call may still run.
    pub unclear_statuses: BTreeSet<u16>,
    /// These statuses say that the downstream as a whole is down.
    pub down_statuses: BTreeSet<u16>,
    /// After these statuses another attempt may do better, as after 408, 425, 429 and 5xx.
    pub retry_statuses: BTreeSet<u16>,
    /// After these statuses none will, whatever else is said of them.
    pub fail_statuses: BTreeSet<u16>,
    /// The downstream ends a call when its caller hangs up.
    pub stops_on_disconnect: bool,
    /// The most of an answer that is kept, in bytes; the rest is read and thrown away.
    pub max_result_bytes: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let Rules { unclear_statuses, stops_on_disconnect, max_result_bytes, down_statuses, .. } =
            Rules::default();
        Self {
            url: "http://127.0.0.1:9000/call".to_owned(),
            method: "POST".to_owned(),
            headers: Vec::new(),
            secrets: Vec::new(),
            ca_file: None,
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_mins(8),
            tcp_user_timeout: Duration::from_mins(1),
            unclear_statuses,
            stops_on_disconnect,
            max_result_bytes,
            down_statuses,
            retry_statuses: BTreeSet::new(),
            fail_statuses: BTreeSet::new(),
        }
    }
}

/// Without header values, and without the parts of the URL that may hold a secret.
impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpOptions")
            .field("url", &Url::parse(&self.url).map_or_else(|_| "?".to_owned(), |url| shown(&url)))
            .field("method", &self.method)
            .field("headers", &names)
            .field("ca_file", &self.ca_file)
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("tcp_user_timeout", &self.tcp_user_timeout)
            .field("unclear_statuses", &self.unclear_statuses)
            .field("stops_on_disconnect", &self.stops_on_disconnect)
            .field("max_result_bytes", &self.max_result_bytes)
            .finish_non_exhaustive()
    }
}

/// Why a downstream cannot be called as configured. No text holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHttp {
    /// Not a URL.
    #[error("url: {0}; write it like http://host:port/path")]
    Url(String),
    /// Some other scheme.
    #[error("url: scheme {0:?} is not supported, use http or https")]
    Scheme(String),
    /// Not a method, or `CONNECT`.
    #[error(
        "method: {0:?} is not an HTTP method to call with; use POST, PUT, PATCH, DELETE or GET, in capitals"
    )]
    Method(String),
    /// Not a header's name.
    #[error("headers: {0:?} is not a header name")]
    HeaderName(String),
    /// A value with characters that no header may have.
    #[error("headers: the value of {0} has characters that a header cannot have, such as a newline")]
    HeaderValue(String),
    /// permitq sets this header itself.
    #[error("headers: {0} is set by permitq itself")]
    Ours(String),
    /// The file with the CA cannot be used.
    #[error("ca_file: {0:?} {1}; name a PEM file with the CA's certificate")]
    Ca(PathBuf, String),
    /// No limit, or none worth the name.
    #[error("{0}: must be more than 0 and at most 7 days")]
    Limit(&'static str),
    /// The HTTP client cannot be made, for example because the host has no usable root certificates.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
}

/// A downstream that is called by HTTP.
pub struct Http {
    client: Client,
    url: Url,
    method: Method,
    headers: HeaderMap,
    read_timeout: Duration,
    rules: Rules,
    secrets: Secrets,
    /// How many calls were answered otherwise than that it is down.
    well: AtomicU64,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("method", &self.method)
            .field("url", &shown(&self.url))
            .finish_non_exhaustive()
    }
}

impl Http {
    /// Checks the options and prepares the client; connects nowhere yet.
    ///
    /// ```
    /// use permitq::downstream::{BadHttp, Http, HttpOptions};
    ///
    /// let options = HttpOptions { url: "ftp://reports/".into(), ..HttpOptions::default() };
    /// assert_eq!(Http::new(options).unwrap_err(), BadHttp::Scheme("ftp".into()));
    /// ```
    pub fn new(options: HttpOptions) -> Result<Self, BadHttp> {
        let url = Url::parse(&options.url).map_err(|error| BadHttp::Url(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadHttp::Scheme(url.scheme().to_owned()));
        }
        for (name, limit) in [
            ("connect_timeout", options.connect_timeout),
            ("read_timeout", options.read_timeout),
            // To the kernel, 0 means its default of many minutes.
            ("tcp_user_timeout", options.tcp_user_timeout),
        ] {
            if limit.is_zero() || limit > LONGEST {
                return Err(BadHttp::Limit(name));
            }
        }
        Ok(Self {
            client: client(&options)?,
            url,
            method: method(&options.method)?,
            headers: headers(&options.headers)?,
            read_timeout: options.read_timeout,
            secrets: Secrets::new(&options.secrets),
            rules: Rules {
                unclear_statuses: options.unclear_statuses,
                stops_on_disconnect: options.stops_on_disconnect,
                max_result_bytes: options.max_result_bytes,
                down_statuses: options.down_statuses,
                retry_statuses: options.retry_statuses,
                fail_statuses: options.fail_statuses,
            },
            well: AtomicU64::new(0),
        })
    }

    fn request(&self, call: &Call) -> reqwest::Result<Request> {
        let mut request = self
            .client
            .request(self.method.clone(), self.url.clone())
            .header(IDEMPOTENCY_KEY, &call.idempotency_key)
            .header(ATTEMPT, call.attempt_no)
            .header(FENCING_TOKEN, call.attempt.claim_no);
        if let Some(key) = &call.biz_key {
            request = request.header(BIZ_KEY, percent_encode(key));
        }
        if !matches!(self.method, Method::GET | Method::HEAD) {
            request = request.header(header::CONTENT_TYPE, "application/json").body(call.payload.clone());
        }
        request.headers(self.headers.clone()).build()
    }

    async fn exchange(&self, request: Request) -> Seen {
        match within(self.read_timeout, self.client.execute(request)).await {
            Some(Ok(response)) => self.answer(response).await,
            // Name resolution, TCP or TLS failed.
            Some(Err(error)) if error.is_connect() && is_refusal(&error) => Seen::Refused(unreached(error)),
            Some(Err(error)) if error.is_connect() => Seen::NotConnected(unreached(error)),
            Some(Err(error)) => Seen::Broken { status: None, error: chain(&error.without_url()) },
            None => Seen::TimedOut { status: None, error: self.silent("no answer") },
        }
    }

    async fn answer(&self, mut response: Response) -> Seen {
        let status = response.status().as_u16();
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = text(header::RETRY_AFTER).and_then(|value| retry_after(value, text(header::DATE)));
        let keep = self.rules.max_result_bytes.max(ERROR_MAX);
        let (mut body, mut more) = (Vec::new(), false);
        loop {
            match within(self.read_timeout, response.chunk()).await {
                Some(Ok(Some(chunk))) => {
                    let room = chunk.len().min(keep - body.len());
                    body.extend_from_slice(&chunk[..room]);
                    more |= room < chunk.len();
                }
                Some(Ok(None)) => {
                    let body = self.secrets.hide(body, more);
                    return Seen::Answer { status, retry_after, body, more };
                }
                Some(Err(error)) => {
                    let error = format!("the answer broke off: {}", chain(&error.without_url()));
                    return Seen::Broken { status: Some(status), error };
                }
                None => {
                    return Seen::TimedOut { status: Some(status), error: self.silent("the answer stopped") };
                }
            }
        }
    }

    fn silent(&self, what: &str) -> String {
        format!("{what} for {} (read_timeout)", humantime::format_duration(self.read_timeout))
    }
}

#[async_trait]
impl Handler for Http {
    async fn call(&self, call: &Call) -> Outcome {
        match self.request(call) {
            Ok(request) => {
                let before = self.well.load(Ordering::Relaxed);
                let mut outcome = classify(self.exchange(request).await, &self.rules);
                let answered = outcome.status.is_some();
                match outcome.verdict {
                    // Others were served meanwhile: it is not down, it does not want this call.
                    Verdict::Down { error, after }
                        if answered && self.well.load(Ordering::Relaxed) != before =>
                    {
                        outcome.verdict = Verdict::Retry { error, after };
                    }
                    Verdict::Down { .. } => {}
                    _ if answered => {
                        self.well.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => {}
                }
                outcome
            }
            Err(error) => {
                Outcome::failed(format!("the request cannot be built: {}", chain(&error.without_url())))
            }
        }
    }
}

pub(super) fn client(options: &HttpOptions) -> Result<Client, BadHttp> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only where another thread was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let mut builder = Client::builder();
    if let Some(file) = &options.ca_file {
        builder = builder.tls_certs_only(certificates(file)?);
    }
    builder
        .user_agent(concat!("permitq/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(options.connect_timeout)
        .tcp_user_timeout(options.tcp_user_timeout)
        .tcp_keepalive(KEEP_ALIVE)
        .tcp_keepalive_interval(KEEP_ALIVE)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE)
        .pool_max_idle_per_host(0)
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .build()
        .map_err(|error| BadHttp::Client(chain(&error)))
}

/// Whether nobody was there: the system said so, or nothing was heard for the connect timeout. (What is wrong with a name or a
/// certificate is ours to mend, and waiting does not.)
fn is_refusal(error: &reqwest::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let by_system = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.raw_os_error().is_some())
    };
    error.is_timeout() || causes.any(by_system)
}

/// Why no connection came about, and what to do where that is known.
fn unreached(error: reqwest::Error) -> String {
    let said = chain(&error.without_url());
    // A bad signature: another CA has the same name.
    let remedy = if said.contains("UnknownIssuer") || said.contains("BadSignature") {
        "; name the CA that signed it: ca_file"
    } else if said.contains("corrupt message") {
        "; does it speak TLS at this port?"
    } else {
        ""
    };
    said + remedy
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, BadHttp> {
    let bad = |why: String| BadHttp::Ca(file.to_owned(), why);
    let pem = std::fs::read(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let certificates = Certificate::from_pem_bundle(&pem);
    let certificates = certificates.map_err(|error| bad(format!("is not PEM: {}", chain(&error))))?;
    // Without one, no downstream would be trusted, and each call would say so in its own way.
    if certificates.is_empty() { Err(bad("holds no certificate".to_owned())) } else { Ok(certificates) }
}

fn method(name: &str) -> Result<Method, BadHttp> {
    match Method::from_bytes(name.as_bytes()) {
        // Methods are case-sensitive: `post` would be sent as it stands, and refused.
        Ok(method) if method != Method::CONNECT && !name.contains(|c: char| c.is_ascii_lowercase()) => {
            Ok(method)
        }
        _ => Err(BadHttp::Method(name.to_owned())),
    }
}

pub(super) fn headers(pairs: &[(String, String)]) -> Result<HeaderMap, BadHttp> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let key = HeaderName::try_from(name).map_err(|_| BadHttp::HeaderName(name.clone()))?;
        if OURS.contains(&key) {
            return Err(BadHttp::Ours(name.clone()));
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| BadHttp::HeaderValue(name.clone()))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

/// The URL without user, password, query and fragment.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Fails only for URLs without a host, which have no password either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}
