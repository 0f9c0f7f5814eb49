//! Every document of `OPENAPI_MCP_CORPUS`, read as `serve` would: how many tools, what is lost, and
//! a digest of names and hints, compared with `tests/snapshots/corpus.tsv`. Skipped, with a
//! message, if the variable is not set.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use openapi_mcp::{
    AnnotateOptions, Api, ApiOptions, Document, ExternalReferences, Hint, Hints, OutboundOptions,
    OutputSchemas, Policy, Reason, Severity, Source, SourceReader, complete_document, http_client,
};
use sha2::{Digest as _, Sha256};

use crate::support::project;

fn listed(corpus: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    manifest
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('\t').next().map(str::to_owned))
        .collect()
}

/// `tools, operations lost, digest of names and hints`, with a check of what every tool list must
/// be.
async fn row(path: PathBuf) -> String {
    let source = Source::Path(path);
    let client = http_client(&OutboundOptions {
        tls: false,
        ..OutboundOptions::default()
    })
    .unwrap();
    let reader = SourceReader::new(client.clone(), http::HeaderMap::new());
    let bytes = reader.read(&source).await.unwrap().bytes;
    let mut document = match Document::parse(bytes, None) {
        Ok(document) => document,
        Err(error) => return format!("-\t-\t{error}"),
    };
    complete_document(&mut document, &source, ExternalReferences::Local, &reader).await;
    let (api, diagnostics) = Api::build(document, ApiOptions::default(), client).unwrap();
    let mut digest = Sha256::new();
    for tool in api.tools() {
        assert!(!tool.title.is_empty(), "{} {}", source, tool.name);
        digest.update(format!(
            "{} {}\n",
            tool.name,
            serde_json::to_string(&tool.annotations()).unwrap()
        ));
    }
    let list: usize = api.tools().iter().map(|tool| tool.text().len()).sum();
    assert!(list < 10 << 20, "{source}: the list takes {list} bytes");
    let lost = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    let hex: String = digest
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{}\t{lost}\t{hex}", api.tools().len())
}

#[test]
fn every_real_document_becomes_the_tools_it_became_before() {
    let Some(corpus) = std::env::var_os("OPENAPI_MCP_CORPUS").map(PathBuf::from) else {
        println!("skipped: OPENAPI_MCP_CORPUS is not set");
        return;
    };
    let files = listed(&corpus);
    let rows: Mutex<Vec<(usize, String)>> = Mutex::default();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(file) = files.get(index) else { return };
                    let row = runtime.block_on(row(corpus.join(file)));
                    rows.lock()
                        .unwrap()
                        .push((index, format!("{file}\t{row}\n")));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort();
    let table: String =
        std::iter::once("# document\ttools\tlost\tdigest of names and hints\n".to_owned())
            .chain(rows.into_iter().map(|(_, row)| row))
            .collect();
    let path = project("tests/snapshots/corpus.tsv");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    for (now, before) in table.lines().zip(known.lines()) {
        assert_eq!(
            now, before,
            "run the tests once with UPDATE=1 if that is meant"
        );
    }
    assert_eq!(table.lines().count(), known.lines().count());
}

/// For every document and every policy, a tool looks less careful than its method only for the
/// reasons that the policy is there for.
#[test]
fn p35_no_tool_of_a_real_document_looks_more_harmless_than_its_method() {
    let Some(corpus) = std::env::var_os("OPENAPI_MCP_CORPUS").map(PathBuf::from) else {
        println!("skipped: OPENAPI_MCP_CORPUS is not set");
        return;
    };
    let client = http_client(&OutboundOptions {
        tls: false,
        ..OutboundOptions::default()
    })
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reader = SourceReader::new(client.clone(), http::HeaderMap::new());
    // The number of tools that each policy marks differently, printed with --nocapture.
    let mut differing = [0_usize; 3];
    for file in listed(&corpus) {
        let source = Source::Path(corpus.join(&file));
        let bytes = runtime.block_on(reader.read(&source)).unwrap().bytes;
        let Ok(document) = Document::parse(bytes, None) else {
            continue;
        };
        let document = Arc::new(document);
        for (index, policy) in [Policy::Method, Policy::Spec, Policy::Infer]
            .into_iter()
            .enumerate()
        {
            let mut annotate = AnnotateOptions::default();
            annotate.layers.policy = Some(policy);
            annotate.output = OutputSchemas::Off;
            let options = ApiOptions {
                annotate,
                ..ApiOptions::default()
            };
            let (api, _) = Api::build(Arc::clone(&document), options, client.clone()).unwrap();
            for offered in api.tools() {
                let method = Hints::of_method(&offered.operation.method);
                let label = format!(
                    "{file}: {} {:?}",
                    offered.operation.label(),
                    offered.operation.id
                );
                let differs =
                    |hint: &Hint| offered.hints.effective(*hint) != method.effective(*hint);
                differing[index] += usize::from(Hint::ALL.iter().any(differs));
                for hint in Hint::ALL {
                    let Some(told) = offered.hints.get(hint) else {
                        continue;
                    };
                    if !method.would_loosen(hint, told.value) {
                        continue;
                    }
                    match (policy, told.reason, hint) {
                        (Policy::Spec | Policy::Infer, Reason::Evidence(_), Hint::Idempotent) => {}
                        (Policy::Infer, Reason::Word(_), Hint::OpenWorld) => {}
                        (Policy::Infer, Reason::Word(_), Hint::ReadOnly) => {
                            assert_eq!(offered.operation.method, "POST", "{label}");
                        }
                        (Policy::Infer, Reason::Word(_), Hint::Idempotent) => {
                            assert!(
                                matches!(offered.operation.method.as_str(), "POST" | "PATCH"),
                                "{label}"
                            );
                        }
                        _ => panic!(
                            "{label} is told to be more harmless than its method: {hint:?} {told:?}"
                        ),
                    }
                }
            }
        }
    }
    println!("tools that each policy marks differently from their method: {differing:?}");
    assert_eq!(differing[0], 0);
}
