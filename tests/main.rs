#[cfg(test)]
mod servers;
#[cfg(test)]
mod support;
