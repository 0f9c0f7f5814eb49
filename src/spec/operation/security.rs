//! Security: which schemes a document knows, and which of them an operation asks for (OAS "Security
//! Scheme Object" and "Security Requirement Object"; 2.0 "Security Definitions Object").

use std::collections::BTreeMap;
use std::rc::Rc;

use foldhash::HashMap;

use super::security_scheme::{ConsentUrls, OAuthFlow, SecurityScheme, is_token, read_api_key};
use super::{Operation, swagger2};
use crate::spec::diagnostic::Diagnostic;
use crate::spec::document::{Document, Version};
use crate::spec::node::{Node, Object};
use crate::spec::pointer;

/// Schemes that are needed together, by name, with the scopes the document asks of each.
pub(crate) type SecurityRequirement = Vec<(String, Vec<String>)>;

/// The place of the security schemes of a document.
fn place_of_schemes(document: &Document) -> &'static [&'static str] {
    match document.version() {
        Version::V2_0 => &["securityDefinitions"],
        _ => &["components", "securitySchemes"],
    }
}

/// The security schemes that the document declares, by name.
fn declared_schemes(document: &Document) -> Object<'_> {
    let mut place = place_of_schemes(document).iter();
    let schemes = place.try_fold(document.root(), |node, name| node.member(name));
    schemes.and_then(Node::object).unwrap_or_default()
}

/// Returns true if the document declares any security scheme.
pub(crate) fn declares_schemes(document: &Document) -> bool {
    !declared_schemes(document).is_empty()
}

/// Returns the document's schemes by name. A scheme that cannot be read is reported, and missing
/// for operations that require it.
pub(crate) fn schemes(document: &Document) -> (BTreeMap<String, SecurityScheme>, Vec<Diagnostic>) {
    let read_scheme = match document.version() {
        Version::V2_0 => swagger2::read_security_scheme,
        _ => read_security_scheme,
    };
    let read = |node| {
        let object = document.resolve(node)?.object();
        read_scheme(&object.ok_or("it is not an object")?)
    };
    let (mut schemes, mut diagnostics) = (BTreeMap::new(), Vec::new());
    for (name, node) in declared_schemes(document).iter() {
        match read(node) {
            Ok(scheme) => {
                schemes.insert(name.to_owned(), scheme);
            }
            Err(why) => {
                let place = place_of_schemes(document).iter().copied();
                let place = pointer::fragment(place.chain([name]));
                let what = format!("the security scheme `{name}` cannot be used: {why}");
                diagnostics.push(Diagnostic::warning(place, what));
            }
        }
    }
    (schemes, diagnostics)
}

/// The most alternatives, and the most schemes in one alternative; more would only cost time.
const MAX_ALTERNATIVES: usize = 32;

/// Reads the alternatives of a `security` member, each of them a set of schemes. An empty list
/// requires nothing, and an empty set makes the others optional.
///
/// # Errors
/// Why it cannot be read.
fn requirements(node: Node<'_>) -> Result<Vec<SecurityRequirement>, String> {
    let items = node.array().ok_or("`security` is not a list")?;
    let requirement = |item: &Node<'_>| -> Option<SecurityRequirement> {
        let object = item.object()?;
        let schemes = object.iter();
        Some(
            schemes
                .map(|(name, scopes)| (name.to_owned(), scopes.strings()))
                .collect(),
        )
    };
    let read = items.iter().take(MAX_ALTERNATIVES + 1).map(requirement);
    let read: Option<Vec<SecurityRequirement>> = read.collect();
    let read = read.ok_or("an entry of `security` is not an object")?;
    if read.len() > MAX_ALTERNATIVES || read.iter().any(|set| set.len() > MAX_ALTERNATIVES) {
        return Err(format!(
            "`security` has more than {MAX_ALTERNATIVES} alternatives, or one of more than {MAX_ALTERNATIVES} schemes"
        ));
    }
    Ok(read)
}

/// Security requirements of the operations of a document. Requirements with the same text are read
/// once.
pub(crate) struct Requirements<'d> {
    document: &'d Document,
    root: Rc<[SecurityRequirement]>,
    read: HashMap<&'d str, Rc<[SecurityRequirement]>>,
}

impl<'d> Requirements<'d> {
    /// Reads the document's own `security`; problems, and schemes that it does not define, are
    /// pushed to `diagnostics`.
    pub(crate) fn new(
        document: &'d Document,
        schemes: &BTreeMap<String, SecurityScheme>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let root = describe_requirement(
            document.member("security"),
            "#/security",
            schemes,
            diagnostics,
        );
        Self {
            document,
            root: root.unwrap_or_else(|| Rc::from([])),
            read: HashMap::default(),
        }
    }

    /// Returns the requirements of an operation: its own `security`, else the document's.
    pub(crate) fn of(
        &mut self,
        operation: &Operation,
        schemes: &BTreeMap<String, SecurityScheme>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Rc<[SecurityRequirement]> {
        let Some(span) = operation.security else {
            return Rc::clone(&self.root);
        };
        let node = self.document.node(span);
        if let Some(known) = self.read.get(node.text()) {
            return Rc::clone(known);
        }
        let read = describe_requirement(Some(node), &operation.pointer, schemes, diagnostics)
            .unwrap_or_else(|| Rc::clone(&self.root));
        self.read.insert(node.text(), Rc::clone(&read));
        read
    }
}

fn describe_requirement(
    node: Option<Node<'_>>,
    pointer: &str,
    schemes: &BTreeMap<String, SecurityScheme>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Rc<[SecurityRequirement]>> {
    let node = node.filter(|node| node.text().trim_end() != "null")?;
    let mut warn = |text: String| diagnostics.push(Diagnostic::warning(pointer, text));
    match requirements(node) {
        Ok(read) => {
            let mut unknown: Vec<&String> = read.iter().flatten().map(|(name, _)| name).collect();
            unknown.retain(|name| !schemes.contains_key(*name));
            unknown.dedup();
            for name in unknown {
                warn(format!(
                    "`security` names `{name}`, which is not a usable security scheme of the document"
                ));
            }
            Some(read.into())
        }
        Err(why) => {
            warn(format!("{why}; no credential is sent"));
            Some(Rc::from([]))
        }
    }
}

fn read_security_scheme(object: &Object<'_>) -> Result<SecurityScheme, String> {
    let kind = object.text("type").unwrap_or_default();
    match kind.as_str() {
        "apiKey" => read_api_key(object),
        "http" => match object.text("scheme").unwrap_or_default() {
            scheme if is_token(&scheme) => Ok(SecurityScheme::Http(scheme)),
            scheme => Err(format!(
                "its `scheme: {scheme}` is not an authentication scheme"
            )),
        },
        "oauth2" => Ok(read_flows(&object.object("flows"))),
        "openIdConnect" => Ok(SecurityScheme::OpenIdConnect),
        "mutualTLS" => Ok(SecurityScheme::MutualTls),
        other => Err(format!(
            "its type `{other}` is not one of apiKey, http, mutualTLS, oauth2 and openIdConnect"
        )),
    }
}

fn read_flows(flows: &Object<'_>) -> SecurityScheme {
    let known = [
        ("clientCredentials", OAuthFlow::ClientCredentials),
        ("password", OAuthFlow::Password),
        ("authorizationCode", OAuthFlow::Consent),
        ("deviceAuthorization", OAuthFlow::Consent),
        ("implicit", OAuthFlow::Implicit),
    ];
    let is_declared = |name: &str| flows.get(name).and_then(Node::object).is_some();
    let flow = known.iter().find(|(name, _)| is_declared(name));
    let (code, device) = (
        flows.object("authorizationCode"),
        flows.object("deviceAuthorization"),
    );
    SecurityScheme::OAuth2 {
        flow: flow.map_or(OAuthFlow::ClientCredentials, |(_, flow)| *flow),
        token_url: known
            .iter()
            .find_map(|(name, _)| flows.object(name).text("tokenUrl")),
        consent: ConsentUrls {
            authorization: code.text("authorizationUrl"),
            device_authorization: device.text("deviceAuthorizationUrl"),
            token: code.text("tokenUrl").or_else(|| device.text("tokenUrl")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::operation::parameter::Location;

    fn document(text: &str) -> Document {
        Document::parse(text.as_bytes().to_vec(), None).unwrap()
    }

    #[test]
    fn schemes_of_every_version_are_read() {
        let document = document(
            r##"{"openapi":"3.1.0","paths":{},"components":{"securitySchemes":{
                "a":{"type":"apiKey","in":"cookie","name":"sid"},"b":{"type":"http","scheme":"Bearer"},"c":{"$ref":"#/components/securitySchemes/b"},
                "d":{"type":"oauth2","flows":{"password":{"tokenUrl":"/p"},"clientCredentials":{"tokenUrl":"/c"}}},
                "e":{"type":"openIdConnect","openIdConnectUrl":"http://evil.example"},"f":{"type":"mutualTLS"},
                "g":{"type":"apiKey","in":"header","name":"Host"},"h":{"type":"apiKey","in":"path","name":"x"},"i":{"type":"magic"},"j":{"type":"http","scheme":"a b"}}}}"##,
        );
        let (schemes, diagnostics) = schemes(&document);
        let key = |location, name: &str| SecurityScheme::ApiKey {
            location,
            name: name.into(),
        };
        assert_eq!(schemes["a"], key(Location::Cookie, "sid"));
        assert_eq!(
            (&schemes["b"], &schemes["c"]),
            (&SecurityScheme::Http("Bearer".into()), &schemes["b"])
        );
        assert_eq!(
            schemes["d"],
            SecurityScheme::OAuth2 {
                flow: OAuthFlow::ClientCredentials,
                token_url: Some("/c".into()),
                consent: ConsentUrls::default(),
            }
        );
        assert_eq!(
            (&schemes["e"], &schemes["f"]),
            (&SecurityScheme::OpenIdConnect, &SecurityScheme::MutualTls)
        );
        assert_eq!(
            (schemes.len(), diagnostics.len()),
            (6, 4),
            "{diagnostics:?}"
        );

        let document = super::tests::document(
            r#"{"swagger":"2.0","paths":{},"securityDefinitions":{"a":{"type":"basic"},"b":{"type":"oauth2","flow":"application","tokenUrl":"https://h/t"},"c":{"type":"apiKey","in":"query","name":"key"}}}"#,
        );
        let (schemes, diagnostics) = super::schemes(&document);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(schemes["a"], SecurityScheme::Http("basic".into()));
        assert_eq!(
            schemes["b"],
            SecurityScheme::OAuth2 {
                flow: OAuthFlow::ClientCredentials,
                token_url: Some("https://h/t".into()),
                consent: ConsentUrls::default(),
            }
        );
        assert_eq!(schemes["c"], key(Location::Query, "key"));
    }

    #[test]
    fn requirements_are_alternatives_of_sets() {
        let read = |text: &'static str| requirements(Node::new(text));
        let names = |text| -> Vec<Vec<String>> {
            let read = read(text).unwrap();
            read.into_iter()
                .map(|set| set.into_iter().map(|(name, _)| name).collect())
                .collect()
        };
        assert_eq!(
            names(r#"[{"a":[],"b":["x"]},{},{"c":[]}]"#),
            [vec!["a", "b"], vec![], vec!["c"]]
        );
        assert!(names("[]").is_empty());
        let null = Some(Node::new("null"));
        assert!(describe_requirement(null, "#", &BTreeMap::new(), &mut Vec::new()).is_none());
        assert!(read(r#"{"a":[]}"#).is_err() && read(r#"["a"]"#).is_err());
        let many = |count: usize| format!("[{}]", vec![r#"{"a":[]}"#; count].join(","));
        let read = |text: &str| requirements(Node::new(text)).is_ok();
        assert!(read(&many(32)) && !read(&many(33)) && !read(&many(100_000)));
    }
}
