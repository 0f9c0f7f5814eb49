//! Any path template and any value: a URL that is made never leaves the base.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openapi_mcp::internals::{BaseUrl, Keep, PathTemplate, PathValue, percent_encode};
use url::Url;

fuzz_target!(|input: (String, String, String, bool)| {
    let (path, value, query, reserved) = input;
    let keep = if reserved { Keep::Segment } else { Keep::Unreserved };
    let Ok(template) = PathTemplate::parse(&path) else { return };
    let base = BaseUrl::new(Url::parse("https://host.example:8443/base/v1").expect("a URL"));
    let values: Vec<PathValue> = template
        .variables()
        .map(|name| PathValue { name: name.to_owned(), encoded: percent_encode(&value, keep), plain: vec![value.clone()], segments: 1, may_be_empty: false })
        .collect();
    let pairs = [(percent_encode(&query, Keep::Unreserved), percent_encode(&value, Keep::Reserved))];
    let Ok(url) = base.target(&template, &values, &pairs) else { return };
    assert_eq!((url.scheme(), url.host_str(), url.port()), ("https", Some("host.example"), Some(8443)));
    let segments: Vec<&str> = url.path_segments().expect("segments").collect();
    assert_eq!(segments.get(..2), Some(&["base", "v1"][..]));
    assert_eq!(segments.len(), 2 + template.segments.len());
    assert!(url.fragment().is_none() && url.username().is_empty());
});
