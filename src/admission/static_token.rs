//! Static bearer tokens. Only their digests are kept in memory.

use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The minimum length of a token, in characters; shorter ones can be guessed.
const MIN_TOKEN_LEN: usize = 16;

/// The SHA-256 digest of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StaticToken(pub(super) [u8; 32]);

impl std::fmt::Debug for StaticToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[token]")
    }
}

impl StaticToken {
    /// Reads a token from a variable or from a line of a file.
    ///
    /// # Errors
    /// The fault, without the text itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("is empty".into());
        }
        // RFC 6750 section 2.1 allows fewer characters; this refuses only what a header cannot
        // carry as one word.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("holds spaces or characters beyond ASCII, which no client can send".into());
        }
        if text.len() < MIN_TOKEN_LEN {
            return Err(format!(
                "is shorter than {MIN_TOKEN_LEN} characters and can be guessed; `openssl rand -hex 32` makes a good one"
            ));
        }
        Ok(Self::of(text.as_bytes()))
    }

    /// Reads tokens, one on each line; empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// All problems, each with its line number.
    pub fn in_text(text: &str) -> Result<Vec<Self>, Vec<String>> {
        let lines = text.lines().map(str::trim).enumerate();
        let (mut tokens, mut problems) = (Vec::new(), Vec::new());
        for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            match Self::parse(line) {
                Ok(token) => tokens.push(token),
                Err(problem) => problems.push(format!("the token in line {} {problem}", index + 1)),
            }
        }
        if tokens.is_empty() && problems.is_empty() {
            problems.push("there is no token".into());
        }
        if problems.is_empty() {
            Ok(tokens)
        } else {
            Err(problems)
        }
    }

    /// Reads the tokens of a file.
    ///
    /// # Errors
    /// All problems, each with the path of the file.
    pub fn in_file(path: &Path) -> Result<Vec<Self>, Vec<String>> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| vec![format!("`{}` cannot be read: {error}", path.display())])?;
        Self::in_text(&text).map_err(|problems| {
            problems
                .iter()
                .map(|problem| format!("`{}`: {problem}", path.display()))
                .collect()
        })
    }

    /// Its SHA-256.
    pub(super) fn digest(self) -> [u8; 32] {
        self.0
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_guessed_or_not_sent_is_no_token() {
        for wrong in [
            "",
            "hunter2",
            "fifteen-letters",
            "with a space in the middle",
            "ümlaut-ümlaut-ümlaut",
            "line\nbreak-and-more-of-it",
        ] {
            let problem = StaticToken::parse(wrong).unwrap_err();
            assert!(wrong.is_empty() || !problem.contains(wrong), "{problem}");
        }
        assert!(StaticToken::parse("sixteen-letters!").is_ok());
    }

    #[test]
    fn a_text_holds_one_token_a_line() {
        let tokens =
            StaticToken::in_text("# old\nfirst-token-of-mine\n\n  second-token-of-mine \r\n")
                .unwrap();
        assert_eq!(tokens.len(), 2);
        for (presented, expected) in [
            ("first-token-of-mine", true),
            ("second-token-of-mine", true),
            ("third-token-of-mine!", false),
            ("first-token-of-min", false),
            ("", false),
        ] {
            assert_eq!(
                tokens.contains(&StaticToken::of(presented.as_bytes())),
                expected,
                "{presented}"
            );
        }
        assert_eq!(StaticToken::in_text("x\ny").unwrap_err().len(), 2);
        assert_eq!(
            StaticToken::in_text("\n# only this\n").unwrap_err(),
            ["there is no token"]
        );
    }
}
