//! What a caller asks of the stub, and the plan for its call.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::StubOptions;

/// How a call misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Fault {
    /// `fail`, or a number such as `429`: answers with this status; 500 for `fail`.
    Status(u16),
    /// `hang`: never answers, and closes the connection when its time is over.
    Hang,
    /// `drip`: answers at once, and sends its body in small pieces for as long as the call takes.
    Drip,
    /// `cut`: closes the connection after half of the answer; the call goes on.
    Cut,
    /// `reset`: resets the connection without an answer; the call goes on.
    Reset,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(500) => f.write_str("fail"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Hang => f.write_str("hang"),
            Self::Drip => f.write_str("drip"),
            Self::Cut => f.write_str("cut"),
            Self::Reset => f.write_str("reset"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "fail" => Self::Status(500),
            "hang" => Self::Hang,
            "drip" => Self::Drip,
            "cut" => Self::Cut,
            "reset" => Self::Reset,
            _ => match word.parse() {
                Ok(status @ 200..=599) => Self::Status(status),
                _ => {
                    return Err(format!(
                        "unknown fault {word:?}; use fail, hang, drip, cut, reset or a status from 200 to 599"
                    ));
                }
            },
        })
    }
}

impl TryFrom<String> for Fault {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        word.parse()
    }
}

/// What a caller asks, in the query or in the JSON body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Ask {
    ms: Option<u64>,
    answer_ms: Option<u64>,
    fault: Option<Fault>,
    status: Option<u16>,
    retry_after: Option<u64>,
    fault_attempts: Option<u32>,
}

/// How a call will go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// How long the call is in flight.
    pub span: Duration,
    /// When its answer comes.
    pub answer: Duration,
    /// How it misbehaves.
    pub fault: Option<Fault>,
    /// For the `Retry-After` header, in seconds.
    pub retry_after: Option<u64>,
}

impl Ask {
    /// A body that is no JSON object asks nothing: payloads are their owners' business. One that asks wrongly is told.
    pub(super) fn from_body(body: &[u8]) -> Result<Self, String> {
        match serde_json::from_slice::<Value>(body) {
            Ok(object @ Value::Object(_)) => {
                serde_json::from_value(object).map_err(|error| format!("body: {error}"))
            }
            _ => Ok(Self::default()),
        }
    }

    /// `self`, and `other` where `self` says nothing.
    pub(super) fn or(self, other: Self) -> Self {
        let own_fault = self.fault.is_some() || self.status.is_some();
        Self {
            ms: self.ms.or(other.ms),
            answer_ms: self.answer_ms.or(other.answer_ms),
            fault: if own_fault { self.fault } else { other.fault },
            status: if own_fault { self.status } else { other.status },
            retry_after: self.retry_after.or(other.retry_after),
            fault_attempts: self.fault_attempts.or(other.fault_attempts),
        }
    }

    /// `attempt` is the caller's, counted from 1. One draw of luck per call, so that a seed says it all.
    pub(super) fn plan(self, options: &StubOptions, attempt: Option<u32>, luck: &mut fastrand::Rng) -> Plan {
        let struck = luck.f64() < options.fault_rate;
        let by_chance = luck.choice(&options.faults).copied().filter(|_| struck);
        let spared = self.fault_attempts.is_some_and(|most| attempt.is_some_and(|attempt| attempt > most));
        let fault = self.fault.or(self.status.map(Fault::Status)).or(by_chance).filter(|_| !spared);
        let span = Duration::from_millis(self.ms.unwrap_or(options.default_ms));
        let answer = match fault {
            Some(Fault::Status(202 | 504) | Fault::Cut | Fault::Reset) => span / 2,
            _ => span,
        };
        let retry_after = match fault {
            Some(Fault::Status(429)) => self.retry_after.or(Some(1)),
            Some(Fault::Status(_)) => self.retry_after,
            _ => None,
        };
        let answer = self.answer_ms.map_or(answer, |ms| span.min(Duration::from_millis(ms)));
        Plan { span, answer, fault, retry_after }
    }
}

impl Plan {
    /// The status of its answer, where it gives one.
    pub(super) fn status(&self) -> StatusCode {
        match self.fault {
            Some(Fault::Status(status)) => StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
            _ => StatusCode::OK,
        }
    }

    /// Whether the call is a success once its time is over, whether or not the caller hears of it.
    pub(super) fn succeeds(&self) -> bool {
        matches!(self.fault, None | Some(Fault::Drip | Fault::Status(200..=299)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(ask: Ask) -> Plan {
        ask.plan(&StubOptions::default(), Some(2), &mut fastrand::Rng::with_seed(1))
    }

    #[test]
    fn the_query_wins_over_the_body() {
        let body =
            Ask::from_body(br#"{"ms": 80, "fault": "drip", "retry_after": 3, "month": "2026-11"}"#).unwrap();
        let query = Ask { ms: Some(40), status: Some(503), ..Ask::default() };
        let expected = Plan {
            span: Duration::from_millis(40),
            answer: Duration::from_millis(40),
            fault: Some(Fault::Status(503)),
            retry_after: Some(3),
        };
        assert_eq!(plan(query.or(body)), expected);
    }

    #[test]
    fn a_payload_that_asks_nothing_is_left_alone_and_one_that_asks_wrongly_is_told() {
        for body in ["", "not json", "[1]", "\"ms\"", "{}", r#"{"month": {"ms": "x"}}"#] {
            assert_eq!(Ask::from_body(body.as_bytes()), Ok(Ask::default()), "{body}");
        }
        assert!(Ask::from_body(br#"{"ms": "soon"}"#).unwrap_err().contains("soon"));
        assert!(Ask::from_body(br#"{"fault": "explode"}"#).unwrap_err().contains("drip"));
    }

    #[test]
    fn what_says_still_working_answers_before_its_end() {
        let answers = ["202", "504", "cut", "reset", "200", "fail", "429", "hang"].map(|fault| {
            let ask = Ask { ms: Some(100), fault: Some(fault.parse().unwrap()), ..Ask::default() };
            plan(ask).answer.as_millis()
        });
        assert_eq!(answers, [50, 50, 50, 50, 100, 100, 100, 100]);
        let late = Ask { ms: Some(100), answer_ms: Some(900), ..Ask::default() };
        assert_eq!(plan(late).answer.as_millis(), 100);
    }

    #[test]
    fn faults_may_spare_later_attempts_and_strike_by_seeded_chance() {
        let fault =
            |fault_attempts| plan(Ask { fault: Some(Fault::Cut), fault_attempts, ..Ask::default() }).fault;
        assert_eq!([fault(None), fault(Some(2)), fault(Some(1))], [Some(Fault::Cut), Some(Fault::Cut), None]);

        let options = StubOptions {
            faults: vec![Fault::Hang, Fault::Reset],
            fault_rate: 0.5,
            ..StubOptions::default()
        };
        let faults = |seed| {
            let mut luck = fastrand::Rng::with_seed(seed);
            [(); 64].map(|()| Ask::default().plan(&options, None, &mut luck).fault)
        };
        let struck = faults(1);
        assert_eq!(struck, faults(1));
        assert_ne!(struck, faults(2));
        for fault in [None, Some(Fault::Hang), Some(Fault::Reset)] {
            assert!(struck.contains(&fault), "{fault:?}");
        }
    }

    #[test]
    fn words_round_trip() {
        for word in ["fail", "429", "599", "hang", "drip", "cut", "reset"] {
            assert_eq!(word.parse::<Fault>().unwrap().to_string(), word);
        }
        for word in ["", "100", "600", "Fail"] {
            assert!(word.parse::<Fault>().is_err(), "{word}");
        }
    }
}
