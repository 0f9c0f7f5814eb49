//! The text that Prometheus reads: `OpenMetrics` 1.0.0 as the library writes it, or the classic
//! text format 0.0.4.

use super::Metrics;

/// A format of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    OpenMetrics,
    Classic,
}

impl TextFormat {
    /// Returns the format that an `Accept` header asks for: `OpenMetrics` if it is named with a
    /// quality above 0.
    pub(crate) fn accepted(accept: &str) -> Self {
        let names_it = accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_named = parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
            let is_refused = parts.any(|part| {
                let quality = part
                    .strip_prefix("q=")
                    .and_then(|quality| quality.parse::<f32>().ok());
                quality.is_some_and(|quality| quality <= 0.0)
            });
            is_named && !is_refused
        });
        if names_it {
            Self::OpenMetrics
        } else {
            Self::Classic
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Metrics {
    /// The whole page.
    pub(crate) fn exposition(&self, format: TextFormat) -> String {
        let mut text = String::new();
        // A `String` takes everything.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        // A metric that has labels only if there are several APIs.
        let text = text.replace("{} ", " ");
        match format {
            TextFormat::OpenMetrics => text,
            TextFormat::Classic => to_classic(&text),
        }
    }
}

/// The same in the classic format, whose `HELP` and `TYPE` name the samples: with `_total` and
/// `_info`. It knows neither the type `info` nor `# UNIT` and `# EOF`.
fn to_classic(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take().filter(|(helped, _)| *helped == name) {
                out.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            out.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_for_those_who_name_it() {
        for (accept, expected) in [
            ("", TextFormat::Classic),
            ("*/*", TextFormat::Classic),
            ("text/plain;version=0.0.4", TextFormat::Classic),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
                TextFormat::OpenMetrics,
            ),
            (
                "text/plain, Application/OpenMetrics-Text; q=0.4",
                TextFormat::OpenMetrics,
            ),
            (
                "application/openmetrics-text;q=0, text/plain",
                TextFormat::Classic,
            ),
        ] {
            assert_eq!(TextFormat::accepted(accept), expected, "{accept}");
        }
    }

    #[test]
    fn the_classic_text_names_samples_in_its_help() {
        let text = "# HELP a Things.\n# TYPE a counter\na_total 1\n# HELP b B.\n# TYPE b info\nb_info{v=\"1\"} 1\n# UNIT c seconds\n# EOF\n";
        let expected = "# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n# HELP b_info B.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n";
        assert_eq!(to_classic(text), expected);
    }
}
