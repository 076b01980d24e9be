//! One page of pictures of one run: a file that needs nothing else, on a phone and in the dark, too.

use std::fmt::{Display, Write as _};

use permitq::downstream::stub::{Entry, Summary};

use super::goal::{Goal, short};
use super::stats::{Spread, millis, seconds};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 160.0;
const LANE: f64 = 14.0;
/// More are too thin to tell anything.
const LANES: usize = 64;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f5fa8;--cap:#c33;--dim:#666;--back:#8881}\
@media(prefers-color-scheme:dark){:root{--ink:#6fb1ff;--cap:#ff7b72;--dim:#aaa}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:1060px;margin:2em auto;padding:0 1em}\
h1{font-size:1.4em}h2{font-size:1.1em;margin:1.6em 0 .4em}figure{margin:0}\
svg{width:100%;height:160px;display:block;background:var(--back)}svg.lanes{height:auto}rect{fill:var(--ink)}\
path,line{fill:none;stroke:var(--ink);stroke-width:1.5;vector-effect:non-scaling-stroke}\
.cap{stroke:var(--cap);stroke-dasharray:6 4}.bound{color:var(--cap)}\
.axis{display:flex;justify-content:space-between;gap:1em;color:var(--dim);font-size:.85em}\
.missed{color:var(--cap)}pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--back);padding:.6em 1em}";

/// A page that grows from top to bottom. (Writing to a String cannot fail.)
pub(super) struct Page(String);

impl Page {
    /// The heading, and the report as it is told in the terminal.
    pub(super) fn new(title: &str, report: &impl Display) -> Self {
        let (title, told) = (escape(title), escape(&report.to_string()));
        Self(format!(
            "<!doctype html><html lang=en><meta charset=utf-8>\
             <meta name=viewport content='width=device-width,initial-scale=1'><title>{title}</title>\
             <style>{STYLE}</style><h1>{title}</h1><pre>{told}</pre>"
        ))
    }

    /// What was aimed at.
    pub(super) fn goals(mut self, goals: &[Goal]) -> Self {
        for goal in goals.iter().filter(|goal| !goal.ok) {
            let _ = write!(self.0, "<p class=missed>{}</p>", escape(&goal.to_string()));
        }
        self
    }

    /// Calls in flight against the cap, each call as a bar, and what lies between them.
    pub(super) fn calls(self, seen: &Summary, cap: u32) -> Self {
        let first = seen.log.iter().map(|entry| entry.start_us).min().unwrap_or_default();
        let last = seen.log.iter().filter_map(|entry| entry.end_us).max().unwrap_or(first + 1);
        self.in_flight(seen, cap, (first, last)).lanes(&seen.log, (first, last))
    }

    fn in_flight(mut self, seen: &Summary, cap: u32, span: (u64, u64)) -> Self {
        let most = seen.max_in_flight.max(cap);
        let y = |n: i64| HEIGHT - n as f64 / (f64::from(most) * 1.1) * HEIGHT;
        let mut steps: Vec<(u64, i64)> = seen.log.iter().map(|entry| (entry.start_us, 1)).collect();
        steps.extend(seen.log.iter().filter_map(|entry| entry.end_us).map(|end| (end, -1)));
        steps.sort_unstable();
        let (mut n, mut path) = (0, format!("M0 {:.1}", y(0)));
        for (at, step) in steps {
            n += step;
            let _ = write!(path, "H{:.1}V{:.1}", x(at, span), y(n));
        }
        let drawn = format!("<path d='{path}'/>{}", bound(y(cap.into())));
        let said = format!("at most {}; <span class=bound>cap {cap}</span>", seen.max_in_flight);
        self.figure("Calls in flight", &said, &drawn, &[ago(0), ago(span.1 - span.0)]);
        self
    }

    /// Each call in the first lane that is free, as permits would be.
    fn lanes(mut self, log: &[Entry], span: (u64, u64)) -> Self {
        let mut calls: Vec<(u64, u64)> =
            log.iter().filter_map(|entry| Some((entry.start_us, entry.end_us?))).collect();
        calls.sort_unstable();
        let (mut free_at, mut rects): (Vec<u64>, _) = (Vec::new(), String::new());
        for (start, end) in calls {
            let lane = free_at.iter().position(|at| *at <= start).unwrap_or_else(|| {
                free_at.push(0);
                free_at.len() - 1
            });
            free_at[lane] = end;
            if lane < LANES {
                let (left, y) = (x(start, span), lane as f64 * LANE + 1.0);
                let width = (x(end, span) - left).max(0.5);
                let _ = write!(rects, "<rect x={left:.2} y={y} width={width:.2} height={:.1} />", LANE - 2.0);
            }
        }
        let (shown, height) = (free_at.len().min(LANES), free_at.len().min(LANES) as f64 * LANE);
        let _ = write!(
            self.0,
            "<h2>Lanes</h2><figure><div class=axis>Each call in the first free lane: what is empty between two \
             calls is a permit that idled. {shown} of {} lanes.</div><svg class=lanes viewBox='0 0 {WIDTH} {height}' \
             role=img aria-label='calls as lanes'>{rects}</svg></figure>",
            free_at.len()
        );
        self
    }

    /// How often what took how long, in 60 equal steps up to the 99th percentile and a little more.
    pub(super) fn histogram(mut self, title: &str, micros: &[u64]) -> Self {
        const STEPS: usize = 60;
        let spread = Spread::of(micros.to_vec());
        let most = (spread.p99_ms * 1.25).clamp(0.1, spread.max_ms.max(0.1));
        let mut counts = [0_u32; STEPS];
        for micros in micros {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 60")]
            let step = (millis(*micros) / most * STEPS as f64) as usize;
            counts[step.min(STEPS - 1)] += 1;
        }
        let (top, width) = (counts.iter().copied().max().unwrap_or(0).max(1), WIDTH / STEPS as f64);
        let mut drawn = String::new();
        for (step, count) in counts.iter().enumerate() {
            let (left, height) = (step as f64 * width, f64::from(*count) / f64::from(top) * HEIGHT * 0.95);
            let _ = write!(
                drawn,
                "<rect x={left:.1} y={:.1} width={:.1} height={height:.1} />",
                HEIGHT - height,
                width - 2.0
            );
        }
        let said = format!("{} in all; {spread}", micros.len());
        self.figure(title, &said, &drawn, &["0 ms".to_owned(), format!("{} ms and more", short(most))]);
        self
    }

    /// A figure over time, in seconds, from zero up; with a line where it should stay below.
    pub(super) fn line(mut self, title: &str, unit: &str, points: &[(f64, f64)], limit: Option<f64>) -> Self {
        let Some((end, _)) = points.last().copied() else { return self };
        let most = points.iter().map(|(_, value)| *value).chain(limit).fold(f64::MIN_POSITIVE, f64::max);
        let y = |value: f64| HEIGHT - value / (most * 1.1) * HEIGHT;
        let mut path = String::new();
        for (at, value) in points {
            let verb = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{verb}{:.1} {:.1}", at / end.max(f64::MIN_POSITIVE) * WIDTH, y(*value));
        }
        let mut drawn = format!("<path d='{path}'/>");
        if let Some(limit) = limit {
            drawn += &bound(y(limit));
        }
        let said = format!("at most {} {unit}", short(points.iter().map(|(_, v)| *v).fold(0.0, f64::max)));
        self.figure(title, &said, &drawn, &["0 s".to_owned(), format!("{} s", short(end))]);
        self
    }

    fn figure(&mut self, title: &str, said: &str, drawn: &str, axis: &[String; 2]) {
        let [from, to] = axis;
        let _ = write!(
            self.0,
            "<h2>{title}</h2><figure><div class=axis>{said}</div><svg viewBox='0 0 {WIDTH} {HEIGHT}' \
             preserveAspectRatio=none role=img aria-label='{title}'>{drawn}</svg>\
             <div class=axis><span>{from}</span><span>{to}</span></div></figure>"
        );
    }

    /// The file's content.
    pub(super) fn html(self) -> String {
        self.0
    }
}

fn x(at: u64, (first, last): (u64, u64)) -> f64 {
    at.saturating_sub(first) as f64 / (last - first).max(1) as f64 * WIDTH
}

fn bound(y: f64) -> String {
    format!("<line class=cap x1=0 x2={WIDTH} y1={y:.1} y2={y:.1} />")
}

fn ago(micros: u64) -> String {
    format!("{} s", short(seconds(micros)))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Self-contained, and every number in it is one.
    #[test]
    fn a_page_needs_nothing_else_whatever_was_measured() {
        let mut seen = Summary::default();
        for (start_us, end_us) in [(0, Some(50)), (10, None), (10, Some(10))] {
            let mut entry = Entry::default();
            (entry.start_us, entry.end_us) = (start_us, end_us);
            seen.log.push(entry);
        }
        for seen in [seen, Summary::default()] {
            let html = Page::new("a < b", &"told & done")
                .goals(&[Goal::at_most("n", 2.0, 1.0)])
                .calls(&seen, 4)
                .histogram("Gaps", &[0, 1, 1_000_000])
                .histogram("None", &[])
                .line("Tasks", "tasks", &[(0.0, 0.0), (1.0, 3.0)], Some(2.0))
                .line("Nothing", "tasks", &[], None)
                .html();
            for bad in ["NaN", "inf", "http", "<script", "a < b"] {
                assert!(!html.contains(bad), "{bad}: {html}");
            }
            assert!(html.contains("target n: 2 ≤ 1 missed"), "{html}");
        }
    }
}
