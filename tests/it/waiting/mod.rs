//! Operations that are done after their first reply.

mod inside_a_call;
