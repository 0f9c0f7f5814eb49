//! The versions of MCP, and the `_meta` of results, which names the server since 2026-07-28 (results
//! SHOULD have it). Most differences of versions are methods here; `message.rs` reads the keys that
//! requests need, and `transport/http/message.rs` has the status of HTTP answers.

use std::borrow::Cow;
use std::sync::LazyLock;

use rmcp::model::{Implementation, ProtocolVersion as NamedVersion};
use serde_json::json;

use crate::observe::metrics::labels::OTHER;

/// A version of MCP that this server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProtocolVersion {
    V20241105,
    V20250326,
    V20250618,
    V20251125,
    V20260728,
}

impl ProtocolVersion {
    /// All versions, the oldest first.
    pub(crate) const ALL: [Self; 5] = [
        Self::V20241105,
        Self::V20250326,
        Self::V20250618,
        Self::V20251125,
        Self::V20260728,
    ];
    /// The version of an HTTP request that names none (MCP 2025-11-25, transports, "Protocol
    /// Version Header").
    pub(crate) const UNNAMED_OVER_HTTP: Self = Self::V20250326;

    /// The first version whose requests each describe their client, and whose HTTP headers repeat
    /// what a message says.
    pub(crate) const FIRST_WITHOUT_HANDSHAKE: Self = Self::V20260728;

    /// The version of that name; `None` if this server does not speak it.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The name in messages and headers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V20241105 => "2024-11-05",
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
            Self::V20260728 => "2026-07-28",
        }
    }

    /// The name as metrics have it, of any version that a client names.
    pub(crate) fn label(name: &str) -> &'static str {
        Self::parse(name).map_or(OTHER, Self::name)
    }

    /// Returns true if a client begins with `initialize`. Since 2026-07-28, each request describes
    /// its client in `_meta` instead.
    pub(crate) fn has_handshake(self) -> bool {
        self < Self::FIRST_WITHOUT_HANDSHAKE
    }

    /// Returns true if results have `resultType`, and name the server in `_meta` (2026-07-28,
    /// basic, "Results").
    pub(crate) fn has_result_type(self) -> bool {
        self >= Self::V20260728
    }

    /// Returns true if the content of a result may be a link (2025-06-18, tools, "Resource Links").
    pub(crate) fn has_resource_links(self) -> bool {
        self >= Self::V20250618
    }

    /// Returns true if a question to the user is the result of the call (2026-07-28,
    /// `InputRequiredResult`); before, it is a request to the client.
    pub(crate) fn asks_by_result(self) -> bool {
        self >= Self::V20260728
    }
}

/// All versions as rmcp names them.
pub(crate) fn named_versions() -> Cow<'static, [NamedVersion]> {
    static NAMED: LazyLock<Vec<NamedVersion>> = LazyLock::new(|| {
        let named = |version: ProtocolVersion| serde_json::from_value(version.name().into()).ok();
        ProtocolVersion::ALL.into_iter().filter_map(named).collect()
    });
    Cow::Borrowed(NAMED.as_slice())
}

/// The member of `_meta` that names the server in results, which need no icon, as text.
pub(crate) fn server_meta(info: &Implementation) -> String {
    let info = json!({ "name": info.name, "version": info.version });
    format!("\"io.modelcontextprotocol/serverInfo\":{info}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_read_by_its_name() {
        for version in ProtocolVersion::ALL {
            assert_eq!(ProtocolVersion::parse(version.name()), Some(version));
        }
        assert_eq!(ProtocolVersion::parse("2026-07-29"), None);
        let names: Vec<String> = named_versions().iter().map(ToString::to_string).collect();
        assert_eq!(names, ProtocolVersion::ALL.map(ProtocolVersion::name));
    }
}
