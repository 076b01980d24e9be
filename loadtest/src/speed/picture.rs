//! A page with what the downstream saw: calls in flight against the cap, gaps, and calls as lanes.

use std::fmt::Write as _;

use permitq::downstream::stub::{Entry, Summary};

const WIDTH: f64 = 1000.0;
const LANE: f64 = 14.0;

/// One HTML file that needs nothing else.
pub(super) fn page(title: &str, seen: &Summary, cap: u32) -> String {
    let first = seen.log.iter().map(|entry| entry.start_us).min().unwrap_or_default();
    let last = seen.log.iter().filter_map(|entry| entry.end_us).max().unwrap_or(first + 1);
    let x = |at: u64| (at.saturating_sub(first)) as f64 / (last - first).max(1) as f64 * WIDTH;
    let mut page = format!(
        "<!doctype html><meta charset=utf-8><title>{title}</title><style>\
         :root{{color-scheme:light dark;--ink:#1f5fa8;--cap:#c33}}body{{font:15px/1.5 system-ui;max-width:1060px;\
         margin:2em auto;padding:0 1em}}svg{{width:100%;height:auto;background:#8881}}rect{{fill:var(--ink)}}\
         .cap{{stroke:var(--cap);stroke-dasharray:6 4}}path{{fill:none;stroke:var(--ink);stroke-width:1.5}}</style>\
         <h1>{title}</h1><p>{} calls, at most {} in flight, overruns {}.</p>",
        seen.calls, seen.max_in_flight, seen.overruns
    );
    in_flight(&mut page, seen, cap, x);
    lanes(&mut page, &seen.log, x);
    page
}

fn in_flight(page: &mut String, seen: &Summary, cap: u32, x: impl Fn(u64) -> f64) {
    let top = f64::from(cap.max(seen.max_in_flight) + 1);
    let y = |n: i32| 120.0 - f64::from(n) / top * 120.0;
    let mut steps: Vec<(u64, i32)> = seen.log.iter().map(|entry| (entry.start_us, 1)).collect();
    steps.extend(seen.log.iter().filter_map(|entry| entry.end_us).map(|end| (end, -1)));
    steps.sort_unstable();
    let (mut n, mut path) = (0, format!("M0 {:.1}", y(0)));
    for (at, step) in steps {
        n += step;
        // Writing to a String cannot fail.
        let _ = write!(path, "H{:.1}V{:.1}", x(at), y(n));
    }
    let cap = y(i32::try_from(cap).unwrap_or(i32::MAX));
    let _ = write!(
        page,
        "<h2>Calls in flight</h2><svg viewBox='0 0 {WIDTH} 124' role=img aria-label='calls in flight'>\
         <path d='{path}'/><line class=cap x1=0 x2={WIDTH} y1={cap:.1} y2={cap:.1} /></svg>"
    );
}

/// Each call in the first lane that is free, as permits would be.
fn lanes(page: &mut String, log: &[Entry], x: impl Fn(u64) -> f64) {
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
        let (left, y) = (x(start), lane as f64 * LANE + 1.0);
        let width = (x(end) - left).max(0.5);
        let _ = write!(rects, "<rect x={left:.2} y={y} width={width:.2} height={:.1} />", LANE - 2.0);
    }
    let height = free_at.len() as f64 * LANE;
    let _ = write!(
        page,
        "<h2>Lanes</h2><p>White between two calls is a permit that idled.</p>\
         <svg viewBox='0 0 {WIDTH} {height}' role=img aria-label='calls as lanes'>{rects}</svg>"
    );
}
