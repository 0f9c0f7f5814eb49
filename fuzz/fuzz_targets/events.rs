//! Any stream of records, in any pieces: counted the same however it is cut, and collected without
//! a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openapi_mcp::internals::{Counter, Framing, records};

fuzz_target!(|input: (u8, Vec<u8>, Vec<u8>)| {
    let (framing, text, cuts) = input;
    let framing = [Framing::Events, Framing::Lines, Framing::Sequence][usize::from(framing) % 3];
    let whole = Counter::new(framing).feed(&text);
    let (mut counter, mut rest) = (Counter::new(framing), &text[..]);
    for cut in cuts {
        let (piece, tail) = rest.split_at(usize::from(cut).min(rest.len()));
        assert!(counter.feed(piece) <= whole);
        rest = tail;
    }
    if !rest.is_empty() {
        assert_eq!(counter.feed(rest), whole);
    }
    let text = String::from_utf8_lossy(&text);
    for ended in [true, false] {
        let found = records(framing, &text, ended);
        // What the counter does not see is at the most the record that nothing closes.
        assert!(found.len() <= text.len());
        assert!(framing != Framing::Events || found.len() <= whole + 1, "{} of {whole}", found.len());
    }
    assert!(records(framing, &text, false).len() <= records(framing, &text, true).len());
});
