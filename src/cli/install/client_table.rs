//! The table of clients of the book: where each keeps its entry, how it refers to variables, and
//! how lists and results suit it.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::clients::{CLIENTS, installable};
    use super::super::entry::placeholder;
    use super::super::place::{InstallScope, Surroundings, place_of};
    use crate::annotate::{ClientProfile, KnownClient};
    use crate::check::cost::client_costs;
    use crate::cli::operating_system::OperatingSystem;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/clients.md");
    const BEGIN: &str = "<!-- The tables of clients are generated: `UPDATE=1 cargo test --locked --lib` writes them. -->\n";
    const END: &str = "<!-- The end of the tables. -->";

    /// The clients of the table: those that `install` knows, and those that only `--client` does.
    fn listed() -> Vec<KnownClient> {
        let others = [KnownClient::Openai, KnownClient::Generic];
        CLIENTS.iter().map(|row| row.client).chain(others).collect()
    }

    fn file_of(client: KnownClient) -> String {
        let variable = |name: &str| (name == "HOME").then(|| "~".to_owned());
        let at = Surroundings {
            system: OperatingSystem::Linux,
            variable: &variable,
            project: Path::new(""),
        };
        let place = |scope| place_of(installable(client).ok()?, scope, &at).ok();
        let Some(user) = place(InstallScope::User) else {
            return "–".into();
        };
        let file = match client {
            KnownClient::ClaudeCode => "written by `claude mcp add-json`".to_owned(),
            KnownClient::ClaudeDesktop => "`claude_desktop_config.json`".to_owned(),
            KnownClient::Goose | KnownClient::Continue => {
                format!("printed, for `{}`", user.file.display())
            }
            _ => format!("`{}`", user.file.display()),
        };
        match place(InstallScope::Project) {
            Some(project) => format!("{file}; project: `{}`", project.file.display()),
            None => file,
        }
    }

    /// The form of a variable `NAME` in an entry.
    fn variable_of(client: KnownClient) -> String {
        match client {
            KnownClient::Vscode => "a question, whose answer VS Code keeps encrypted".into(),
            KnownClient::Codex => {
                "`env_vars = [\"NAME\"]`, and `bearer_token_env_var` for `--url`".into()
            }
            KnownClient::Goose => "`env_keys`".into(),
            KnownClient::Openai | KnownClient::Generic => "–".into(),
            _ => placeholder(installable(client).unwrap(), "name", "NAME")
                .map_or("none".into(), |form| format!("`{form}`")),
        }
    }

    /// The advice of `check` for a list that is too long for any client.
    fn list_of(client: KnownClient) -> String {
        let costs = client_costs(usize::MAX, usize::MAX);
        let profile = client.profile();
        let any = KnownClient::Generic.profile();
        let of = |name: &str| {
            costs
                .iter()
                .find(|cost| cost.client == name)
                .map(|cost| cost.setting.to_owned())
        };
        let advice = of(profile.name)
            .or_else(|| of(any.name))
            .unwrap_or_default();
        let flags = [
            "--tools all".to_owned(),
            "--tools auto".to_owned(),
            format!("--client {client}"),
        ];
        let advice = flags.iter().fold(advice, |advice, flag| {
            advice.replace(flag, &format!("`{flag}`"))
        });
        match profile.max_tools {
            Some(most) => format!("{advice} (it takes {most} tools)"),
            None => advice,
        }
    }

    fn results_of(profile: &ClientProfile) -> String {
        let mut facts = vec![format!("{} tokens", profile.result_tokens)];
        if let Some(form) = profile.shows {
            facts.insert(0, form.to_owned());
        }
        facts.extend((profile.shows_images == Some(false)).then(|| "no images".into()));
        facts.extend((profile.asks == Some(false)).then(|| "cannot ask its user".into()));
        facts.join(", ")
    }

    fn name_of(client: KnownClient) -> &'static str {
        client.profile().name
    }

    #[test]
    fn the_book_has_the_tables_of_clients() {
        let text = std::fs::read_to_string(PAGE).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let mut tables = "| client | entry | a variable in it | list of tools | result |\n|---|---|---|---|---|\n".to_owned();
        for client in listed() {
            tables.push_str(&format!(
                "| {}, `{client}` | {} | {} | {} | {} |\n",
                name_of(client),
                file_of(client),
                variable_of(client),
                list_of(client),
                results_of(&client.profile())
            ));
        }
        tables.push_str("\nSources of what is said of results:\n\n");
        for client in listed() {
            let profile = client.profile();
            if !profile.source.is_empty() {
                tables.push_str(&format!(
                    "- {}: {} ({})\n",
                    profile.name, profile.source, profile.checked
                ));
            }
        }
        let fresh = format!("{before}{BEGIN}{tables}{END}{after}");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(PAGE, &fresh).unwrap();
        }
        assert!(
            text == fresh || std::env::var_os("UPDATE").is_some(),
            "docs/reference/clients.md is stale: run the tests once with UPDATE=1"
        );
    }
}
