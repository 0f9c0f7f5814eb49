//! Operations that are done after their first reply.

mod handles;
mod inside_a_call;
