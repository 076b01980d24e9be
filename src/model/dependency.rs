//! What a task waits for, and in which order tasks that wait for each other go in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task that another waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Parent {
    /// By its id.
    Task(i64),
    /// By its business key.
    Key(String),
    /// One that is enqueued by the same call, and stands before: by its index.
    Nth(usize),
}

impl From<i64> for Parent {
    fn from(id: i64) -> Self {
        Self::Task(id)
    }
}

impl From<&str> for Parent {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

/// What a task waits for: the success of another, or any end of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct After {
    /// The other.
    pub parent: Parent,
    /// Also an end that is no success lets it run. Otherwise it fails with its parent.
    pub any_end: bool,
}

/// What is known of one dependency of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Relative {
    /// The other task.
    pub id: i64,
    /// Its kind, state and business key; `None` where its row is gone.
    pub task: Option<(String, super::State, Option<String>)>,
    /// Any end will do.
    pub any_end: bool,
    /// The parent's end is not told to the child yet.
    pub open: bool,
}

impl Relative {
    /// A child that may have failed because its parent did.
    pub fn failed_upstream(&self) -> bool {
        !self.any_end && matches!(self.task, Some((_, super::State::Failed, _)))
    }

    /// It in a list.
    pub fn state(&self) -> &'static str {
        self.task.as_ref().map_or("gone", |(_, state, _)| state.as_str())
    }
}

/// An order in which each comes after its parents, else that of the list; where there is none, a cycle: each waits for the
/// next, and the last for the first.
///
/// # Errors
/// The cycle.
pub fn order(parents: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut children = vec![Vec::new(); parents.len()];
    let mut waiting: Vec<usize> = parents.iter().map(Vec::len).collect();
    for (child, parents) in parents.iter().enumerate() {
        for &parent in parents {
            children[parent].push(child);
        }
    }
    let mut ready: BinaryHeap<_> = (0..parents.len()).filter(|&n| waiting[n] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(parents.len());
    while let Some(Reverse(next)) = ready.pop() {
        order.push(next);
        for &child in &children[next] {
            waiting[child] -= 1;
            if waiting[child] == 0 {
                ready.push(Reverse(child));
            }
        }
    }
    let Some(mut at) = waiting.iter().position(|&left| left > 0) else { return Ok(order) };
    // Whoever still waits has a parent that does, so this walk comes back to where it was.
    let mut seen = vec![usize::MAX; parents.len()];
    let mut path = Vec::new();
    while seen[at] == usize::MAX {
        seen[at] = path.len();
        path.push(at);
        at = parents[at].iter().copied().find(|&parent| waiting[parent] > 0).unwrap_or(at);
    }
    Err(path.split_off(seen[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_order_stays_in_its_order() {
        assert_eq!(order(&[vec![], vec![0], vec![], vec![1, 2]]), Ok(vec![0, 1, 2, 3]));
        assert_eq!(order(&[vec![2], vec![], vec![1]]), Ok(vec![1, 2, 0]));
        assert_eq!(order(&[]), Ok(vec![]));
        // The same parent twice.
        assert_eq!(order(&[vec![1, 1], vec![]]), Ok(vec![1, 0]));
    }

    #[test]
    fn a_cycle_is_shown_without_what_hangs_on_it() {
        assert_eq!(order(&[vec![0]]), Err(vec![0]));
        assert_eq!(order(&[vec![1], vec![2], vec![3], vec![1], vec![]]), Err(vec![1, 2, 3]));
    }

    #[test]
    fn a_long_chain_is_ordered_without_recursion() {
        let chain: Vec<_> =
            (0..100_000_usize).map(|n| if n < 99_999 { vec![n + 1] } else { vec![] }).collect();
        assert_eq!(order(&chain).unwrap(), (0..100_000).rev().collect::<Vec<_>>());
    }
}
