//! Flags that take seconds.

/// The value of a flag that takes seconds.
///
/// # Errors
/// What is given is not a number.
pub(crate) fn read_seconds(text: &str) -> Result<f64, &'static str> {
    text.trim().parse().map_err(|_| "must be a number of seconds, such as 5")
}
