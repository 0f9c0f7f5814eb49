//! The share of a common resource that one client may hold.

/// Returns true if a client that holds `own` of `taken` places may take one more of `capacity`. It
/// may hold at most half of the capacity that others leave free, and the last tenth is for clients
/// that hold nothing yet.
pub(crate) fn may_take_place(own: usize, taken: usize, capacity: usize) -> bool {
    let free = capacity.saturating_sub(taken);
    if own == 0 {
        return free > 0;
    }
    let left_by_others = capacity.saturating_sub(taken.saturating_sub(own));
    free > capacity / 10 && own < left_by_others / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p45_a_client_gets_half_of_what_is_free_and_newcomers_get_the_last_tenth() {
        for (own, taken, allowed) in [
            (0, 0, true),
            (49, 49, true),
            (50, 50, false),
            (24, 74, true),
            (25, 75, false),
            (1, 90, false),
            (0, 90, true),
            (0, 99, true),
            (0, 100, false),
        ] {
            assert_eq!(may_take_place(own, taken, 100), allowed, "{own} of {taken}");
        }
    }
}
