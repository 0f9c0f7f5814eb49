//! Authentication of people who agree to calls, on the page that a link leads to.

use axum::http::request::Parts;
use axum::response::Response;

use super::access_options::KnownToken;
use super::claims::Refusal;
use super::limits::Stranger;
use super::{ClientAdmission, bearer, peer_key};
use crate::mcp::endpoints::served_apis::MCP_PATH;

impl ClientAdmission {
    /// Authenticates a person who may agree to calls, and returns the name for the audit log.
    /// Whatever is missing or wrong is answered alike, and a wrong token is counted for the address.
    pub(crate) async fn approver(&self, parts: &Parts) -> Result<String, Box<Response>> {
        let rate = self.rate.as_ref().unwrap_or(&self.sign_ins);
        let mut stranger = Stranger::new(peer_key(&parts.extensions), Some(rate));
        let refusal = match self.find_approver(parts, &mut stranger).await {
            Ok(Some(name)) => return Ok(name),
            // Nothing was guessed: the page asks before the person signs in.
            Err(Refusal::NoToken) => {
                return Err(Box::new(self.refused(&Refusal::NotAnApprover, MCP_PATH)));
            }
            Err(refusal @ (Refusal::Unavailable | Refusal::TooOften(_))) => refusal,
            Ok(None) | Err(_) => Refusal::NotAnApprover,
        };
        let counted = stranger.count().await;
        let refusal = counted.map_or_else(Refusal::TooOften, |()| refusal);
        Err(Box::new(self.refused(&refusal, MCP_PATH)))
    }

    async fn find_approver(
        &self,
        parts: &Parts,
        stranger: &mut Stranger<'_>,
    ) -> Result<Option<String>, Refusal> {
        let token = bearer(&parts.headers)?;
        let tokens = self.tokens.borrow().clone();
        if let Some(found) = KnownToken::find(token, &tokens) {
            let named = found.named.and_then(|place| self.named.get(place));
            let named = named.filter(|named| named.approves);
            return Ok(named.map(|named| format!("token:{}", named.name)));
        }
        let (Some(oauth), Some(resource), Some(scope)) = (
            &self.oauth,
            self.resources.at(MCP_PATH),
            &self.approver_scope,
        ) else {
            return Ok(None);
        };
        let granted = oauth.verify(token, resource, stranger).await?.granted;
        let claims = granted.claims.filter(|_| granted.scopes.names(scope));
        let subject = claims
            .as_ref()
            .and_then(|claims| claims.get("sub")?.as_str());
        let subject = subject.filter(|subject| !subject.is_empty());
        Ok(subject.map(|subject| format!("{} {subject}", oauth.options.issuer)))
    }
}
