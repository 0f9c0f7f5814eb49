//! Further pages of a list in the call that asks for them.

use std::sync::Arc;

use super::{Api, ToolIndex};
use crate::proxy::{CallError, Caller, PageReport, PreparedCall, Reply, RequestedPages};

impl Api {
    /// The reply to a call, with the items of further pages if `request` asks for them.
    ///
    /// # Errors
    /// The first page cannot be requested, or no complete reply comes.
    pub(super) async fn reply(
        self: &Arc<Self>,
        index: ToolIndex,
        call: &PreparedCall<'_>,
        caller: &Caller,
        request: Option<RequestedPages<'_>>,
    ) -> Result<(Reply, Option<PageReport>), CallError> {
        let first = self.proxy.send(call).await?;
        match request.filter(|_| first.response.status.is_success()) {
            Some(request) => {
                let (reply, report) =
                    Box::pin(self.collect_pages(index, request, call, caller, first)).await;
                Ok((reply, Some(report)))
            }
            None => Ok((first, None)),
        }
    }

    /// Collects the pages after the first one, each by a call of its own: its arguments are checked
    /// as those of a model are.
    async fn collect_pages(
        self: &Arc<Self>,
        index: ToolIndex,
        request: RequestedPages<'_>,
        call: &PreparedCall<'_>,
        caller: &Caller,
        mut first: Reply,
    ) -> (Reply, PageReport) {
        let next = self.proxy.read_page(call, &mut first.response).await;
        let mut pages = request.begin(
            caller,
            first,
            next,
            self.proxy.max_page_bytes(call),
            &self.proxy.options.memory,
        );
        while let Some((arguments, max_bytes)) = pages.next_call() {
            let page = async {
                let checked = self.checked_arguments(index, arguments).await?;
                let call = self
                    .proxy
                    .prepare_page(call, checked.arguments, max_bytes)?;
                let mut reply = self.proxy.send(&call).await?;
                let next = self.proxy.read_page(&call, &mut reply.response).await;
                Ok::<_, CallError>((reply, next))
            };
            match page.await {
                Ok((reply, next)) if reply.response.status.is_success() => pages.add(&reply, next),
                Ok((reply, _)) => pages.refuse(&reply, call.describe_refused_page(&reply.response)),
                Err(error) => pages.fail(&error),
            }
        }
        pages.finish()
    }
}
