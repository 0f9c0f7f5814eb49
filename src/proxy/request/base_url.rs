//! The base URL of each operation, and the origins that the operator's credentials may be sent to.

use std::sync::Arc;

use url::{Origin, Url};

use super::target::BaseUrl;
use crate::credentials::scheme::ApiLocation;
use crate::outbound::Clients;
use crate::spec::operation::server::{self, Choice, ServerError};
use crate::spec::{Document, Operation};

/// Destination of requests.
#[derive(Debug, Clone, Default)]
pub enum Destination {
    /// The servers that the document names, as the operator chose.
    Declared(Choice),
    /// This URL, in place of the document's servers.
    Fixed(Url),
    /// No requests: the tools are only listed.
    #[default]
    Nowhere,
}

/// The base URLs of an API's operations; almost all share one.
pub(crate) struct BaseUrls {
    common: Result<Option<Arc<BaseUrl>>, ServerError>,
    document_url: Option<Url>,
    /// Choice among an operation's own `servers`; `None` if `--base-url` decides alone.
    declared: Option<Choice>,
    /// Origins to which credentials may be sent; the API's own is the first.
    origins: Vec<Origin>,
}

impl BaseUrls {
    /// The base URLs; credentials may go to the origins in `more` besides the API's own.
    pub(crate) fn new(document: &Document, destination: &Destination, more: Vec<Origin>) -> Self {
        let common = match destination {
            Destination::Fixed(url) => Ok(Some(Arc::new(BaseUrl::new(url.clone())))),
            Destination::Nowhere => Ok(None),
            Destination::Declared(choice) => {
                let servers = server::declared_servers(document);
                server::root_url(&servers, document.url.as_ref(), choice)
                    .map(|url| Some(Arc::new(BaseUrl::new(url))))
            }
        };
        let own = common.as_ref().ok().and_then(Option::as_deref);
        Self {
            origins: own
                .map(|base| base.url().origin())
                .into_iter()
                .chain(more)
                .collect(),
            common,
            document_url: document.url.clone(),
            declared: match destination {
                Destination::Declared(choice) => Some(choice.clone()),
                Destination::Fixed(_) | Destination::Nowhere => None,
            },
        }
    }

    /// Returns the base URL of an operation; `None` if no requests are sent.
    ///
    /// # Errors
    /// An error if the server of the operation is not usable.
    pub(crate) fn of(&self, operation: &Operation) -> Result<Option<Arc<BaseUrl>>, ServerError> {
        if let Some(choice) = self
            .declared
            .as_ref()
            .filter(|_| !operation.servers.is_empty())
        {
            let url =
                server::resolve_base_url(&operation.servers, self.document_url.as_ref(), choice)?;
            return Ok(Some(Arc::new(BaseUrl::new(url))));
        }
        self.common.clone()
    }

    /// Returns the location of the API, for requests for tokens.
    pub(crate) fn site(&self, document: &Document, clients: Clients) -> ApiLocation {
        let common = self.common.as_ref().ok().and_then(Option::as_deref);
        ApiLocation {
            base: common.map(|base| base.url().clone()),
            document: document.url.clone(),
            clients,
        }
    }

    /// Returns true if the base has the API's own origin; called after
    /// [`BaseUrls::leads_elsewhere`].
    pub(crate) fn is_own(&self, base: &BaseUrl) -> bool {
        self.origins.first() == Some(&base.url().origin())
    }

    /// Returns true if credentials may not be sent to the origin of the base. If the document has
    /// no server for all operations, that of the first one is the API's own.
    pub(crate) fn leads_elsewhere(&mut self, base: Option<&BaseUrl>) -> bool {
        let Some(base) = base else { return false };
        if self.common.is_err() {
            self.common = Ok(None);
            self.origins.insert(0, base.url().origin());
        }
        !self.origins.contains(&base.url().origin())
    }
}
