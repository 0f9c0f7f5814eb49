//! Settings of who agrees to the calls that `--confirm` asks about.

use crate::config::choices::ConfirmBy;
use crate::config::problems::Problems;
use crate::config::transport::Transport;
use crate::mcp::calls::approval::AskedBy;

/// Resolves who is asked, if some calls need agreement; faults of the settings are pushed to
/// `problems`.
pub(crate) fn resolve_approval(
    confirm_by: Option<ConfirmBy>,
    transport: &Transport,
    some_calls_ask: bool,
    problems: &mut Problems,
) -> AskedBy {
    if confirm_by.is_some() && !some_calls_ask {
        problems.push("--confirm-by needs --confirm, which says what is asked about");
    }
    let links = matches!(confirm_by, Some(ConfirmBy::Link | ConfirmBy::ClientOrLink));
    let mut asked_by = AskedBy {
        client: some_calls_ask && confirm_by != Some(ConfirmBy::Link),
        link: some_calls_ask && links,
        approver_scope: None,
    };
    let Transport::Http { bind, options } = transport else {
        return asked_by;
    };
    let access = &options.access;
    asked_by.approver_scope.clone_from(&access.approver_scope);
    if access.has_approvers() && !links {
        problems.push("`approve` in `auth_tokens` and `approver_scope` need --confirm-by link");
    }
    if !links {
        return asked_by;
    }
    if !access.has_approvers() {
        problems.push("--confirm-by link needs somebody who may agree: a token with `approve: true` in `auth_tokens`, or `approver_scope` with --oauth-issuer");
    }
    let is_local = bind.ip().is_loopback();
    if !is_local && access.public_url.is_none() {
        problems.push("--confirm-by link needs --public-url URL, with which links begin");
    }
    if !is_local && access.is_open() {
        problems.push("--confirm-by link needs clients that authenticate, because others can reach this server: without a credential, no client can be distinguished from another");
    }
    asked_by
}
