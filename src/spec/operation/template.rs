//! Path templates: `/pets/{petId}/photo.{format}` as segments of literal text and variables.
//!
//! A document may be untrusted, so a template is checked once, when it is read: what could leave
//! the API's base path, or be read differently by a sloppy server, costs the operation.

use percent_encoding::percent_decode_str;

use crate::outbound::request::{Keep, percent_encode};

/// A path template, split at its slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate {
    /// The segments between the slashes; the path `/` has one empty segment.
    pub segments: Vec<Vec<TemplatePart>>,
    /// The constants of a query that the path itself carries (`/?Action=List`), already encoded;
    /// not OpenAPI, but common.
    pub query: Option<String>,
    /// The variables of that query (`?lat={latitude}`): the key on the wire, and the name of the
    /// variable.
    pub query_variables: Vec<(String, String)>,
}

/// A piece of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text as it goes into the URL, already encoded.
    Literal(String),
    /// The name of a path parameter.
    Variable(String),
}

impl PathTemplate {
    /// Reads a path of the document. A fragment (`#Action=…`) only distinguishes operations and is
    /// never sent.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the path.
    pub fn parse(path: &str) -> Result<Self, String> {
        if !path.starts_with('/') {
            return Err(format!("the path `{path}` does not begin with a slash"));
        }
        let path = path.split(outside_braces('#')).next().unwrap_or(path);
        let (path, query) = path.split_once(outside_braces('?')).unwrap_or((path, ""));
        let segments = path.strip_prefix('/').unwrap_or(path);
        let segments = segments.split(outside_braces('/')).map(parse_segment);
        let segments = segments.collect::<Result<_, _>>()?;
        let (mut query_variables, mut constants) = (Vec::new(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if pair.contains(['{', '}']) {
                query_variables.push(query_variable(pair)?);
            } else {
                // `=` is the structure that the author wrote; everything else is encoded as it
                // should be.
                constants.push(percent_encode(pair, Keep::TemplateQuery));
            }
        }
        Ok(Self {
            segments,
            query: Some(constants.join("&")).filter(|query| !query.is_empty()),
            query_variables,
        })
    }

    /// Returns true if the query of the path sets that key to a constant.
    pub(crate) fn fixes(&self, key: &str) -> bool {
        let mut constants = self.query.iter().flat_map(|query| query.split('&'));
        constants.any(|pair| decoded(pair.split('=').next().unwrap_or_default()) == key)
    }

    /// The names of the variables of the segments, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments
            .iter()
            .flatten()
            .filter_map(|part| match part {
                TemplatePart::Variable(name) => Some(name.as_str()),
                TemplatePart::Literal(_) => None,
            })
    }
}

/// Returns true if `text`, read as a server might read it, is or contains a dot segment, once
/// decoded any number of times (RFC 3986 section 5.2.4 removes dot segments; WHATWG also takes
/// `%2e` and `\` for them). A text that is still encoded after 32 rounds counts as one.
pub(crate) fn has_dot_segment(text: &str) -> bool {
    const ROUNDS: usize = 32;
    if !text.contains(['.', '%']) {
        return false;
    }
    let mut current = text.to_owned();
    for _ in 0..ROUNDS {
        // WHATWG URL parsing removes tab, LF and CR anywhere.
        let cleaned: String = current
            .chars()
            .filter(|character| !matches!(character, '\t' | '\n' | '\r'))
            .collect();
        if cleaned
            .split(['/', '\\'])
            .any(|segment| matches!(segment.split(';').next().unwrap_or(segment), "." | ".."))
        {
            return true;
        }
        let decoded = percent_decode_str(&current)
            .decode_utf8_lossy()
            .into_owned();
        if decoded == current {
            return false;
        }
        current = decoded;
    }
    true
}

/// The key and the name of a pair `key={name}`.
fn query_variable(pair: &str) -> Result<(String, String), String> {
    let is_name = |text: &str| !text.is_empty() && !text.contains(['{', '}']);
    let variable = pair.split_once('=').and_then(|(key, value)| {
        let name = value.strip_prefix('{')?.strip_suffix('}')?.trim();
        (is_name(key) && is_name(name)).then(|| (decoded(key), name.to_owned()))
    });
    variable.ok_or_else(|| {
        format!(
            "`{pair}` in the query of the path is neither a constant nor of the form `key={{name}}`"
        )
    })
}

fn decoded(key: &str) -> String {
    percent_decode_str(key).decode_utf8_lossy().into_owned()
}

/// Returns a test that is true for each `separator` outside of braces. It gets the characters of a
/// text in their order.
fn outside_braces(separator: char) -> impl FnMut(char) -> bool {
    let mut depth = 0_usize;
    move |character| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == separator && depth == 0
    }
}

fn parse_segment(segment: &str) -> Result<Vec<TemplatePart>, String> {
    let wrong = |why: &str| format!("the path segment `{segment}` {why}");
    // Nearly every segment is one text or one variable, and a large API has thousands.
    let mut parts = Vec::with_capacity(1);
    let mut rest = segment;
    while !rest.is_empty() {
        let (literal, variable) = match rest.split_once('{') {
            None => (rest, None),
            Some((literal, tail)) => {
                let unclosed = || wrong("has a brace that is never closed");
                (literal, Some(tail.split_once('}').ok_or_else(unclosed)?))
            }
        };
        if literal.contains('}') {
            return Err(wrong("has a closing brace without an opening one"));
        }
        if literal.contains('\\') || literal.contains(char::is_control) {
            return Err(wrong("holds a backslash or a control character"));
        }
        if !literal.is_empty() {
            let literal = percent_encode(literal, Keep::TemplatePath);
            parts.push(TemplatePart::Literal(literal));
        }
        let Some((name, after)) = variable else { break };
        // RFC 6570 operators (`{/name}`, `{?name}`, `{name*}`) are not OpenAPI; the name inside is
        // meant.
        let name = name
            .trim()
            .trim_start_matches(['+', '#', '.', '/', ';', '?', '&'])
            .trim_end_matches('*');
        if name.is_empty() || name.contains(['{', '}']) {
            return Err(wrong("has a variable without a name"));
        }
        parts.push(TemplatePart::Variable(name.to_owned()));
        rest = after;
    }
    // A segment with variables is judged when it is filled in.
    if !segment.contains('{') && has_dot_segment(segment) {
        return Err(wrong("would climb out of the API's base path"));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(path: &str) -> Result<String, String> {
        let template = PathTemplate::parse(path)?;
        let segments: Vec<String> = template
            .segments
            .iter()
            .map(|parts| {
                parts
                    .iter()
                    .map(|part| match part {
                        TemplatePart::Literal(text) => text.clone(),
                        TemplatePart::Variable(name) => format!("<{name}>"),
                    })
                    .collect()
            })
            .collect();
        let variables = template
            .query_variables
            .iter()
            .map(|(key, name)| format!("?{key}=<{name}>"));
        let variables: String = variables.collect();
        Ok(segments.join("/")
            + &template
                .query
                .map(|query| format!("?{query}"))
                .unwrap_or_default()
            + &variables)
    }

    #[test]
    fn templates_are_read_as_segments() {
        for (path, expected) in [
            ("/", ""),
            ("/pets", "pets"),
            ("/pets/", "pets/"),
            ("/pets/{id}", "pets/<id>"),
            ("/a/{b}.{c}:cancel", "a/<b>.<c>:cancel"),
            ("/a b/ü/100%", "a%20b/%C3%BC/100%25"),
            ("/a%20b", "a%20b"),
            ("/#Action=List", ""),
            ("/?Action=List&V=1", "?Action=List&V=1"),
            ("/x#add", "x"),
            (
                "/x?lat={lat}&a=b c&filter%5Bid%5D={id}&&acl",
                "x?a=b%20c&acl?lat=<lat>?filter[id]=<id>",
            ),
            ("//openapi", "/openapi"),
            ("/{+path}/{a?b}", "<path>/<a?b>"),
            ("/files/{a/b}", "files/<a/b>"),
        ] {
            assert_eq!(show(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn templates_that_could_leave_the_base_path_are_refused() {
        for path in [
            "pets",
            "https://evil.example/x",
            "/a/../b",
            "/a/./b",
            "/..",
            "/%2e%2e/x",
            "/%252e%252e/x",
            "/a\\..\\b",
            "/a\u{0}b",
            "/{a",
            "/a}",
            "/{}",
            "/.{x}./..",
            "/a/.%2E/b",
            "/..;x=1/b",
            "/a?{x}",
            "/a?x={y}-{z}",
            "/a?x={}",
        ] {
            assert!(PathTemplate::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn dot_segments_are_seen_through_any_number_of_encodings() {
        let mut text = "..".to_owned();
        for _ in 0..40 {
            assert!(has_dot_segment(&text), "{text}");
            text = text.replace('%', "%25").replace('.', "%2e");
        }
        for harmless in ["...", "a..b", "..a", "100%", "", "a", "v1.2"] {
            assert!(!has_dot_segment(harmless), "{harmless}");
        }
    }
}
