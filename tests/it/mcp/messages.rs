//! Messages and requests, well and ill formed.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::servers::TOKEN;

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..1000_i64).prop_map(|id| id.to_string()),
        2 => Just("\"an id\"".to_owned()),
        4 => proptest::sample::select(vec![
            "-1", "-0", "01", "1.0", "1e1", "null", "true", "[]", "\"\\u0041\"", "\"é\"", "\"\"", "9223372036854775807", "9223372036854775808",
        ]).prop_map(str::to_owned),
    ]
}

fn any_arguments() -> impl Strategy<Value = String> {
    let id = proptest::sample::select(vec![
        "1", "pretty", "twice", "escapes", "half", "secret", "list", "number", "broken",
        "reserved", "more", "long", "deep", "text", "image", "none", "missing", "bad", "redirect",
        "..", "", "a b/c",
    ]);
    let inner = id.clone();
    prop_oneof![
        12 => id.prop_map(|id| format!("{{\"id\":\"{id}\"}}")),
        4 => inner.prop_map(|id| format!("{{\"operation\":\"get_item\",\"arguments\":{{\"id\":\"{id}\"}}}}")),
        2 => proptest::sample::select(vec![
            r#"{"operation":"delete_item","arguments":{"id":"x"}}"#, r#"{"operation":"add_item","arguments":{"body":{"n":1}}}"#,
            r#"{"operation":"get_item","id":"x"}"#, r#"{"operation":"get_item","arguments":"{\"id\":\"x\"}"}"#, r#"{"operation":7}"#,
            r#"{"operation":"get_item","operation":"add_item","arguments":{"id":"x"}}"#, r#"{"operation":"nothing","arguments":{}}"#,
            r#"{"operation":"get_item","arguments":{"id":"x"},"arguments":{"id":"y"}}"#, r#"{"query":"an item"}"#,
        ]).prop_map(str::to_owned),
        6 => proptest::sample::select(vec![
            r#"{"id":"x","page":3,"q":["a","b"]}"#, r#"{"id":"x","page":"3"}"#, r#"{"id":7}"#, r#"{"id":"x","id":"y"}"#,
            r#"{"\u0069d":"x"}"#, r#"{"id":"\ud800"}"#, r#"{"id":"\u00e9"}"#, r#"{"id":null}"#, "{}", "null", "[]", "\"x\"", r#"{"id":"x",}"#,
            r#"{"body":{"n":1e400,"s":"x"}}"#, r#"{"body":{"n":12345678901234567890123,"s":"\n"}}"#, r#"{"body":{"s":1}}"#,
            r#"{"id":"x","$serde_json::private::Number":"1"}"#, r#"{"id":"x","y":{"z":[1,{}]}}"#,
        ]).prop_map(str::to_owned),
    ]
}

fn any_meta() -> impl Strategy<Value = String> {
    let modern = modern_meta();
    prop_oneof![
        6 => Just(String::new()),
        6 => Just(modern.clone()),
        5 => proptest::sample::select(vec![
            "{}".to_owned(), "null".to_owned(), "[]".to_owned(),
            r#"{"host/key":{"a":[1,"x"]}}"#.to_owned(),
            r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"}"#.to_owned(),
            modern.replace(",\"io.modelcontextprotocol/clientCapabilities\":{}", ""),
            modern.replace("2026-07-28", "2025-11-25"),
            modern.replace("2026-07-28", "2099-01-01"),
            modern.replace(":{}}", ":{\"roots\":{\"listChanged\":true},\"x\":1}}"),
            modern.replace(":{}}", ":{\"roots\":1}}"),
            modern.replace(":{}}", ":[]}"),
            modern.replace("{\"name\":\"t\",\"version\":\"1\"}", "7"),
            modern.replacen('{', "{\"host\":\"\\ud800\",", 1),
            modern.replacen('{', "{\"io.modelcontextprotocol/logLevel\":\"info\",", 1),
        ]),
    ]
}

fn any_params() -> impl Strategy<Value = (String, &'static str)> {
    let name = prop_oneof![
        8 => Just(("\"get_item\"", "get_item")),
        3 => Just(("\"add_item\"", "add_item")),
        2 => Just(("\"delete_item\"", "delete_item")),
        2 => Just(("\"call_read\"", "call_read")),
        1 => Just(("\"call_destructive\"", "call_destructive")),
        1 => Just(("\"search_operations\"", "search_operations")),
        1 => Just(("\"get_itm\"", "get_itm")),
        1 => Just(("\"get\\u005fitem\"", "get_item")),
        1 => Just(("7", "get_item")),
        1 => Just(("\"get_item\",\"name\":\"add_item\"", "get_item")),
    ];
    let extra = prop_oneof![
        20 => Just(""),
        1 => Just(",\"task\":{\"ttl\":1}"),
        1 => Just(",\"requestState\":\"x\""),
        1 => Just(",\"inputResponses\":{}"),
        1 => Just(",\"unknown\":null"),
        1 => Just(",\"arguments\":{\"id\":\"last\"}"),
    ];
    (name, any_arguments(), any_meta(), extra).prop_map(
        |((name, plain), arguments, meta, extra)| {
            let meta = if meta.is_empty() {
                meta
            } else {
                format!(",\"_meta\":{meta}")
            };
            (
                format!("{{\"name\":{name},\"arguments\":{arguments}{meta}{extra}}}"),
                plain,
            )
        },
    )
}

/// Half of them are calls in plain form.
pub(super) fn any_message() -> impl Strategy<Value = (String, &'static str)> {
    prop_oneof![plain_message(), odd_message()]
}

fn plain_message() -> impl Strategy<Value = (String, &'static str)> {
    let id = prop_oneof![
        (0..1000_i64).prop_map(|id| id.to_string()),
        Just("\"an id\"".to_owned())
    ];
    let name = proptest::sample::select(vec![
        "get_item",
        "get_item",
        "get_item",
        "get_item",
        "add_item",
        "delete_item",
        "call_read",
        "call_write",
    ]);
    let meta = proptest::sample::select(vec![
        String::new(),
        ",\"_meta\":{\"host/key\":[1.5,{\"a\":\"b\"}]}".to_owned(),
        format!(",\"_meta\":{}", modern_meta()),
        format!(
            ",\"_meta\":{}",
            modern_meta().replace(":{}}", ":{\"roots\":{\"listChanged\":true},\"x\":1}}")
        ),
    ]);
    (id, name, any_arguments(), meta).prop_map(|(id, name, arguments, meta)| {
        let params = format!("{{\"name\":\"{name}\",\"arguments\":{arguments}{meta}}}");
        (
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}"
            ),
            name,
        )
    })
}

fn modern_meta() -> String {
    let key = "io.modelcontextprotocol/";
    format!(
        r#"{{"{key}protocolVersion":"2026-07-28","{key}clientInfo":{{"name":"t","version":"1"}},"{key}clientCapabilities":{{}}}}"#
    )
}

fn odd_message() -> impl Strategy<Value = (String, &'static str)> {
    let method = prop_oneof![
        16 => Just("\"tools/call\""),
        1 => Just("\"tools\\/call\""),
        1 => Just("\"tools/list\""),
        1 => Just("\"ping\""),
        1 => Just("\"nothing\""),
    ];
    let around = proptest::sample::select(vec![
        ("", ""),
        ("", ""),
        ("", ""),
        ("", ""),
        ("", ""),
        (" ", " "),
        ("[", "]"),
        ("", "x"),
        ("", "{}"),
        ("\u{feff}", ""),
    ]);
    let version = proptest::sample::select(vec![
        "\"2.0\"",
        "\"2.0\"",
        "\"2.0\"",
        "\"2.0\"",
        "\"2.0\"",
        "\"1.0\"",
        "2.0",
        "\"2.0\",\"more\":1",
        "\"2.0\",\"jsonrpc\":\"2.0\"",
    ]);
    let cut = prop_oneof![12 => Just(None), 1 => (0..200_usize).prop_map(Some)];
    (any_id(), method, any_params(), version, around, cut).prop_map(|(id, method, (params, name), version, (before, after), cut)| {
        let message = format!("{before}{{\"jsonrpc\":{version},\"id\":{id},\"method\":{method},\"params\":{params}}}{after}");
        let end = cut.map_or(message.len(), |cut| message.floor_char_boundary(cut.min(message.len())));
        (message.get(..end).unwrap_or_default().to_owned(), name)
    })
}

/// Headers that fit the message, and those of which one or two do not.
pub(super) fn any_request() -> impl Strategy<Value = String> {
    let odd = proptest::sample::select(vec![
        "Mcp-Method: tools/list\r\n",
        "Mcp-Method: tools/call\r\n",
        "Mcp-Name: get_item\r\n",
        "Mcp-Name: other\r\n",
        "Mcp-Name: =?base64?Z2V0X2l0ZW0=?=\r\n",
        "Mcp-Param-Id: 1\r\n",
        "Mcp-Session-Id: x\r\n",
        "Last-Event-ID: 1\r\n",
        "MCP-Protocol-Version: 2025-11-25\r\n",
        "MCP-Protocol-Version: 2099-01-01\r\n",
        "MCP-Protocol-Version: \u{e9}\r\n",
        "Origin: http://localhost:3000\r\n",
        "Origin: https://evil.example\r\n",
        "Accept: */*\r\n",
        "Content-Type: text/plain\r\n",
        "Host: evil.example\r\n",
        "Authorization: Bearer wrong-wrong-wrong-wrong\r\n",
        "X-Other: y\r\n",
    ]);
    let removed = proptest::sample::select(vec![
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        "Accept",
        "Content-Type",
        "MCP-Protocol-Version",
        "Mcp-Method",
        "Mcp-Name",
        "Authorization",
    ]);
    let line = prop_oneof![
        20 => Just("POST /mcp HTTP/1.1"),
        5 => Just("POST /mcp/readonly HTTP/1.1"),
        1 => Just("POST /mcp?x=y HTTP/1.1"),
        1 => Just("POST /mcp/ HTTP/1.1"),
        1 => Just("PUT /mcp HTTP/1.1"),
        1 => Just("POST /mcp HTTP/1.0"),
    ];
    let kind = proptest::sample::select(vec![
        "application/json",
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
    ]);
    let odd = prop_oneof![4 => Just(Vec::new()), 2 => proptest::collection::vec(odd, 1..3)];
    let is_chunked = proptest::bool::weighted(0.1);
    (any_message(), any::<bool>(), line, kind, odd, removed, is_chunked).prop_map(
        |((message, name), lies, line, kind, odd, removed, chunked)| {
            let is_modern = message.contains("2026-07-28") != (lies && odd.len() == 1);
            let mut headers = format!(
                "Host: HOST\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: {kind}\r\nAccept: application/json, text/event-stream\r\n"
            );
            if is_modern {
                let _ = write!(
                    headers,
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
                );
            } else {
                headers.push_str("MCP-Protocol-Version: 2025-06-18\r\n");
            }
            let mut headers: String = headers
                .split_inclusive("\r\n")
                .filter(|line| removed.is_empty() || !line.starts_with(removed))
                .collect();
            odd.iter().for_each(|odd| headers.push_str(odd));
            if chunked {
                format!(
                    "{line}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{message}\r\n0\r\n\r\n",
                    message.len()
                )
            } else {
                format!("{line}\r\n{headers}Content-Length: {}\r\n\r\n{message}", message.len())
            }
        },
    )
}
