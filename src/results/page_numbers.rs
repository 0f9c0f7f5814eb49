//! The next page by numbers: a reply that says which page it is, or that there is more, and names
//! no next page itself.

use std::str::FromStr;

use crate::json::JsonObject;
use crate::spec::node::Object;
use crate::spec::paging::{normalized_name, page_size_parameter, query_parameter};
use crate::spec::{Operation, Parameter};
use crate::text::is_word_of;

/// Parameters with the number of a page, and members that have that of this page, in names without
/// case and punctuation.
const PAGES: &str = "page currentpage pagenumber pageno pagenum pageindex";
/// Parameters with the number of items to skip, and members that have it.
const OFFSETS: &str = "offset skip startat";
/// Members with the number of pages.
const PAGE_COUNTS: &str = "totalpages pages pagecount pagestotal numpages lastpage";
/// Members with the number of items on all pages.
const TOTALS: &str =
    "total totalcount totalitems totalresults totalelements totalrecords totalhits";
/// Members with the number of items of a page.
const SIZES: &str = "perpage pagesize itemsperpage size limit";
/// Members that are true if there is more.
const MORE: &str = "hasmore hasnext hasnextpage hasmorepages";
/// Members that are true on the last page.
const LAST: &str = "last islast islastpage";

/// A reply that may be one of several pages.
pub(super) struct NumberedPage<'p, 'd> {
    pub(super) operation: &'p Operation,
    pub(super) arguments: &'p JsonObject,
    /// The reply, and the objects in it that describe pages.
    pub(super) objects: Vec<&'p Object<'d>>,
}

/// Returns the query parameter that has the first of these names.
pub(super) fn first_parameter<'o>(operation: &'o Operation, names: &str) -> Option<&'o Parameter> {
    names
        .split(' ')
        .find_map(|name| query_parameter(operation, name))
}

impl<'p> NumberedPage<'p, '_> {
    /// Returns the parameter of the next page and its value. `first` is the value of a parameter
    /// that a call does not give.
    pub(super) fn next(
        &self,
        first: impl Fn(&Parameter) -> Option<u64>,
    ) -> Option<(&'p Parameter, u64)> {
        let members = || self.objects.iter().flat_map(|object| object.iter());
        // A member for the next page takes precedence, also if it is null.
        if members().any(|(name, _)| normalized_name(name).starts_with("next")) {
            return None;
        }
        let items = self.items();
        if items == Some(0) {
            return None;
        }
        let given = |parameter: &Parameter| match self.arguments.get(&parameter.key) {
            Some(value) => value.as_u64().or_else(|| value.as_str()?.parse().ok()),
            None => first(parameter),
        };
        let flag = self.says_more();
        let total = self.read(TOTALS);
        if let Some(parameter) = first_parameter(self.operation, PAGES) {
            let count = self.read(PAGE_COUNTS);
            let spring = || self.read("number").filter(|_| count.is_some());
            let page = self
                .read(PAGES)
                .or_else(spring)
                .or_else(|| given(parameter))?;
            let is_from_zero = page == 0 || first(parameter) == Some(0);
            let done = page.checked_add(u64::from(is_from_zero))?;
            let by_total = || {
                let size = self
                    .read(SIZES)
                    .or_else(|| given(page_size_parameter(self.operation)?))?;
                Some(done.checked_mul(size)? < total?)
            };
            let has_more = flag.or_else(|| Some(done < count?)).or_else(by_total)?;
            return has_more.then_some((parameter, page.checked_add(1)?));
        }
        let parameter = first_parameter(self.operation, OFFSETS)?;
        let offset = self
            .read::<u64>(OFFSETS)
            .or_else(|| given(parameter))
            .unwrap_or_default();
        let end = offset.checked_add(items?)?;
        let has_more = flag.or_else(|| Some(end < total?))?;
        has_more.then_some((parameter, end))
    }

    /// What a member says about whether there is more.
    pub(super) fn says_more(&self) -> Option<bool> {
        self.read(MORE).or_else(|| Some(!self.read::<bool>(LAST)?))
    }

    /// What the first member of one of these names has that can be read.
    fn read<T: FromStr>(&self, names: &str) -> Option<T> {
        let members = self.objects.iter().flat_map(|object| object.iter());
        members
            .filter(|(name, _)| is_word_of(names, &normalized_name(name)))
            .find_map(|(_, node)| node.text().trim().parse().ok())
    }

    /// The number of items of the longest list of the reply.
    fn items(&self) -> Option<u64> {
        let lists = self
            .objects
            .first()?
            .iter()
            .filter_map(|(_, node)| node.items());
        lists.map(|items| items.count() as u64).max()
    }
}
