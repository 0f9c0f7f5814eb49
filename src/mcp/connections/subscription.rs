//! Notifications that the list of tools has changed: to subscribers (MCP 2026-07-28,
//! `subscriptions/listen`), and to the clients of earlier versions.

use std::sync::Arc;

use rmcp::model::{
    ConstString as _, ErrorData, Implementation, RequestId, ServerResult, SubscriptionFilter,
    SubscriptionsListenRequestMethod, SubscriptionsListenResult,
};
use serde_json::{Value, json};

use super::connection::{Connection, OutMessage, Outbox};
use super::request_origin::RequestOrigin;
use crate::caller::client_grant::ClientGrant;
use crate::mcp::McpServer;
use crate::mcp::protocol::answer::{McpAnswer, McpRefusal, write_message};
use crate::mcp::protocol::message::RequestParameters;
use crate::mcp::protocol::version::ProtocolVersion;

const LIST_CHANGED: &str = "notifications/tools/list_changed";
const SUBSCRIPTION_ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

impl McpServer {
    /// Sends what a client subscribes to, until it cancels the request or the server ends.
    pub(crate) async fn listen_for_changes(
        &self,
        id: &RequestId,
        mut parameters: RequestParameters,
        version: ProtocolVersion,
        origin: &RequestOrigin,
    ) -> Result<McpAnswer, McpRefusal> {
        let Some(outbox) = origin
            .outbox
            .as_ref()
            .filter(|_| !version.has_handshake() && self.state.tells_changes)
        else {
            return Err(ErrorData::method_not_found::<SubscriptionsListenRequestMethod>().into());
        };
        let requested = parameters.rest.remove("notifications").unwrap_or_default();
        let requested: SubscriptionFilter = serde_json::from_value(requested).map_err(|error| {
            let why = format!(
                "the parameters of {} are not valid: {error}",
                SubscriptionsListenRequestMethod::VALUE
            );
            ErrorData::invalid_params(why, None)
        })?;
        let info = self.state.introduction();
        let accepted = requested.supported_by(&info.capabilities);
        let mut changes = self.state.subscribe(origin.caller.granted());
        let meta = json!({ SUBSCRIPTION_ID_KEY: id });
        let acknowledged = json!({ "_meta": &meta, "notifications": &accepted });
        send(
            outbox,
            "notifications/subscriptions/acknowledged",
            &acknowledged,
        );
        changes.is_wanted = accepted.tools_list_changed == Some(true);
        while changes.changed().await {
            send(outbox, LIST_CHANGED, &json!({ "_meta": &meta }));
        }
        let mut result = SubscriptionsListenResult::complete(id.clone());
        let Implementation { name, version, .. } = info.server_info;
        result
            .meta
            .set_server_info(Implementation::new(name, version));
        Ok(McpAnswer::Result(Box::new(
            ServerResult::SubscriptionsListenResult(result),
        )))
    }
}

fn send(outbox: &Outbox, method: &str, parameters: &Value) {
    outbox.send(OutMessage::Text(write_message(None, method, parameters)));
}

/// Reports changes to the client of a connection, from its beginning on, until it or the server
/// ends. One task at a time does so. `granted` is what the token grants that the client has now, if
/// it has one.
pub(crate) async fn report_changes(
    connection: Arc<Connection>,
    granted: Option<ClientGrant>,
    outbox: Outbox,
) {
    let mut changes = connection.changes.lock().await;
    if let Some(granted) = granted {
        changes.continue_with(granted);
    }
    let ended = &connection.ended;
    while ended.run_until_cancelled(changes.changed()).await == Some(true) {
        send(&outbox, LIST_CHANGED, &json!({}));
    }
}
