//! `deploy/`: what is checked in names metrics and flags that exist, and Prometheus' own tool
//! accepts it.

use std::process::Command;

use serde_json::Value;

use crate::support::{project, run, stdout};

fn read_yaml(path: &str) -> Vec<Value> {
    use serde::Deserialize as _;

    let text = std::fs::read_to_string(project(path)).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text);
    documents
        .map(|document| {
            Value::deserialize(document).unwrap_or_else(|error| panic!("{path}: {error}"))
        })
        .collect()
}

/// Every name in a query that looks like one of ours.
fn metrics_of(query: &str) -> Vec<&str> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = query.split(|character| !is_name(character));
    let ours = ["openapi_mcp_", "mcp_server_", "http_client_"];
    words
        .filter(|word| ours.iter().any(|prefix| word.starts_with(prefix)))
        .collect()
}

fn assert_documented(query: &str) {
    let documented = std::fs::read_to_string(project("docs/reference/metrics.md")).unwrap();
    let names = metrics_of(query);
    assert!(!names.is_empty(), "{query}");
    for name in names {
        let family = ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
        assert!(
            documented.contains(&format!("| `{family}` |")),
            "{name} of {query} is not a metric of ours"
        );
    }
}

#[test]
fn every_query_of_the_dashboard_and_of_the_alerts_names_a_metric_that_exists() {
    let text = std::fs::read_to_string(project("deploy/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut shown = String::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            assert_documented(query);
            shown.push_str(query);
        }
    }
    for rule in read_yaml("deploy/monitoring/alerts.yaml")[0]["groups"][0]["rules"]
        .as_array()
        .unwrap()
    {
        let query = rule["expr"].as_str().unwrap();
        if !query.starts_with("up{") {
            assert_documented(query);
        }
    }
    // What is exported is shown.
    let documented = std::fs::read_to_string(project("docs/reference/metrics.md")).unwrap();
    let names = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for name in names.filter(|name| !metrics_of(name).is_empty()) {
        assert!(shown.contains(name), "{name} is on no panel");
    }
}

#[test]
fn haproxy_accepts_its_configuration() {
    let file = project("deploy/haproxy.cfg").display().to_string();
    let Ok(output) = Command::new("haproxy").args(["-c", "-f", &file]).output() else {
        println!("skipped: haproxy is not installed (Debian package haproxy)");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn promtool_accepts_the_settings_the_alerts_and_every_query() {
    let check = |args: &[&str]| Command::new("promtool").args(args).output();
    let alerts = project("deploy/monitoring/alerts.yaml")
        .display()
        .to_string();
    let Ok(output) = check(&["check", "rules", &alerts]) else {
        println!("skipped: promtool is not installed (Debian package prometheus)");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let settings = project("deploy/monitoring/prometheus.yaml")
        .display()
        .to_string();
    let output = check(&["check", "config", "--syntax-only", &settings]).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(project("deploy/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let targets = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let rules: Vec<Value> = targets
        .enumerate()
        .map(|(index, target)| {
            let query = target["expr"]
                .as_str()
                .unwrap()
                .replace("$__rate_interval", "5m");
            serde_json::json!({"record": format!("panel_{index}"), "expr": query})
        })
        .collect();
    let rules = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let file = folder.path().join("rules.yaml");
    std::fs::write(&file, rules.to_string()).unwrap();
    let output = check(&["check", "rules", file.to_str().unwrap()]).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_manifests_use_flags_that_exist_and_probe_the_right_pages() {
    let help = stdout(&run(&["serve", "--help"]));
    let is_flag = |argument: &str| {
        let flag = argument.split('=').next().unwrap();
        assert!(
            !flag.starts_with("--")
                || help.contains(&format!("{flag} "))
                || help.contains(&format!("{flag}["))
                || help.contains(&format!("{flag}\n")),
            "{argument}"
        );
    };
    let manifests = read_yaml("deploy/kubernetes.yaml");
    let of_kind = |kind: &str| {
        manifests
            .iter()
            .find(|manifest| manifest["kind"] == kind)
            .unwrap_or_else(|| panic!("no {kind}"))
    };
    let pod = &of_kind("Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for argument in container["args"].as_array().unwrap() {
        is_flag(argument.as_str().unwrap());
    }
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    let delay = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|argument| argument.as_str()?.strip_prefix("--drain-delay="));
    let delay: u64 = delay.unwrap().parse().unwrap();
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= delay + 45);
    assert!(
        of_kind("Deployment")["spec"]["replicas"].is_null(),
        "the autoscaler sets it"
    );
    assert!(
        of_kind("HorizontalPodAutoscaler")["spec"]["minReplicas"]
            .as_u64()
            .unwrap()
            > of_kind("PodDisruptionBudget")["spec"]["minAvailable"]
                .as_u64()
                .unwrap()
    );
    let guarded = &of_kind("NetworkPolicy")["spec"]["ingress"];
    assert!(guarded.to_string().contains("metrics"), "{guarded}");
    for compose in [
        "deploy/compose.yaml",
        "deploy/compose-monitoring.yaml",
        "deploy/compose-replicas.yaml",
    ] {
        let compose = read_yaml(compose).remove(0);
        for argument in compose["services"]["openapi-mcp"]["command"]
            .as_array()
            .unwrap()
        {
            is_flag(argument.as_str().unwrap());
        }
    }
}

#[test]
fn the_ingress_and_the_gateway_lead_to_the_service() {
    let manifests = read_yaml("deploy/kubernetes.yaml");
    let service = manifests
        .iter()
        .find(|manifest| manifest["kind"] == "Service")
        .unwrap();
    let (name, port) = (&service["metadata"]["name"], &service["spec"]["ports"][0]);
    let ingress = read_yaml("deploy/ingress.yaml").remove(0);
    let backend = &ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"];
    assert_eq!(
        (&backend["name"], &backend["port"]["name"]),
        (name, &port["name"])
    );
    let gateway = read_yaml("deploy/gateway.yaml");
    let [gateway, route] = gateway.as_slice() else {
        panic!("{gateway:?}")
    };
    assert_eq!(
        route["spec"]["parentRefs"][0]["name"],
        gateway["metadata"]["name"]
    );
    let backend = &route["spec"]["rules"][0]["backendRefs"][0];
    assert_eq!((&backend["name"], &backend["port"]), (name, &port["port"]));
}

#[test]
fn what_is_deployed_may_do_and_take_no_more_than_it_needs() {
    let deployment = read_yaml("deploy/kubernetes.yaml").remove(0);
    let pod = &deployment["spec"]["template"]["spec"];
    let image = pod["containers"][0]["image"].as_str().unwrap();
    assert_eq!(
        image.split(':').nth(1),
        Some(env!("CARGO_PKG_VERSION")),
        "{image}"
    );
    assert_eq!(
        pod["containers"][0]["resources"]["limits"]["memory"],
        "512Mi"
    );
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert!(
            pod["containers"][0][probe]["timeoutSeconds"].as_u64() > Some(1),
            "{probe}"
        );
    }
    assert_eq!(
        pod["topologySpreadConstraints"].as_array().unwrap().len(),
        2
    );
    let secret = &pod["volumes"][1]["secret"];
    assert_eq!(
        secret["items"].as_array().unwrap().len(),
        1,
        "no key is mounted that nobody asked for"
    );
    assert!(
        std::fs::read_to_string(project("deploy/kubernetes.yaml"))
            .unwrap()
            .contains("defaultMode: 0440")
    );
    for file in ["deploy/compose.yaml", "deploy/compose-replicas.yaml"] {
        let compose = read_yaml(file).remove(0);
        for (name, service) in compose["services"].as_object().unwrap() {
            for key in ["mem_limit", "pids_limit", "read_only", "security_opt"] {
                assert!(!service[key].is_null(), "{file}: {name} has no {key}");
            }
            assert_eq!(
                service["cap_drop"],
                serde_json::json!(["ALL"]),
                "{file}: {name}"
            );
        }
    }
    let replicas = std::fs::read_to_string(project("deploy/compose-replicas.yaml")).unwrap();
    assert!(replicas.contains("--maxmemory-policy noeviction"));
    let proxy = std::fs::read_to_string(project("deploy/haproxy.cfg")).unwrap();
    assert!(proxy.contains("timeout http-request"));
}

#[test]
fn the_chart_is_for_this_version_of_the_program() {
    let chart = read_yaml("deploy/helm/Chart.yaml").remove(0);
    for version in ["version", "appVersion"] {
        assert_eq!(chart[version], env!("CARGO_PKG_VERSION"), "{version}");
    }
}

/// The steps of the workflow that makes a release, each with the name of its job.
fn release_steps() -> Vec<(String, Value)> {
    let workflow = read_yaml(".github/workflows/release.yml").remove(0);
    let jobs = workflow["jobs"].as_object().unwrap().iter();
    jobs.flat_map(|(job, definition)| {
        let steps = definition["steps"].as_array().cloned().unwrap_or_default();
        steps.into_iter().map(move |step| (job.clone(), step))
    })
    .collect()
}

#[test]
fn the_scripts_of_a_release_are_valid_and_its_archives_are_where_the_packages_look() {
    let steps = release_steps();
    let scripts: Vec<(&str, &str)> = steps
        .iter()
        .filter_map(|(job, step)| Some((job.as_str(), step["run"].as_str()?)))
        .collect();
    assert!(scripts.len() >= 8, "{scripts:?}");
    for (job, script) in &scripts {
        let Ok(output) = Command::new("bash").args(["-n", "-c", script]).output() else {
            return;
        };
        assert!(
            output.status.success(),
            "{job}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let script_of = |wanted: &str, words: &str| {
        let found = scripts
            .iter()
            .find(|(job, script)| *job == wanted && script.contains(words));
        found
            .unwrap_or_else(|| panic!("{wanted}: no step has {words}"))
            .1
    };
    // The formula takes an archive by this name.
    script_of("binary", "name=openapi-mcp-$GITHUB_REF_NAME-$TARGET");
    let formula = std::fs::read_to_string(project("packaging/formula.py")).unwrap();
    assert!(formula.contains("openapi-mcp-v{version}-{target}.tar.gz"));
    let pack = std::fs::read_to_string(project("packaging/pack.py")).unwrap();
    let workflow = read_yaml(".github/workflows/release.yml").remove(0);
    let built = workflow["jobs"]["binary"]["strategy"]["matrix"]["include"]
        .as_array()
        .unwrap();
    for target in built {
        let target = target["target"].as_str().unwrap();
        assert!(
            pack.contains(&format!("\"{target}\": (")),
            "{target} has no package"
        );
        assert!(
            target.contains("windows") || formula.contains(target),
            "{target} is not in the formula"
        );
    }
    // One name in the registry for all.
    for (job, words) in [
        ("image", "io.modelcontextprotocol.server.name=$MCP_NAME"),
        ("packages", "--mcp-name \"$MCP_NAME\""),
        ("packages", "registry.py --name \"$MCP_NAME\""),
    ] {
        script_of(job, words);
    }
    let signed = steps.iter().filter(|(_, step)| {
        step["uses"]
            .as_str()
            .is_some_and(|action| action.contains("actions/attest-"))
    });
    assert_eq!(signed.count(), 3);
}
