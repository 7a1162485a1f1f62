//! Links to the difference of two commits, derived from the URL of the remote.

/// Returns the host and path of a remote, without user, password, port and `.git`.
fn place(remote: &str) -> Option<(String, String)> {
    let remote = remote.trim();
    let (authority, path) = match remote.split_once("://") {
        Some((scheme, rest)) => {
            if !["https", "http", "ssh", "git", "git+ssh"].contains(&scheme) {
                return None;
            }
            rest.split_once('/')?
        }
        // This is the scp form. A local path differs from it by a slash before the colon.
        None => remote.split_once(':').filter(|(host, _)| !host.contains('/') && host.len() > 1)?,
    };
    let host = authority.rsplit('@').next()?.split(':').next()?.to_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let tame =
        |text: &str, others: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    let fits = host.contains('.') && tame(&host, ".-") && path.contains('/') && tame(path, "._-~/+");
    fits.then(|| (host, path.to_owned()))
}

/// Returns the URL of the remote without the user name and the password that it may contain.
pub(crate) fn without_user(remote: &str) -> String {
    match remote.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => remote.to_owned(),
    }
}

/// Returns the URL of the page that compares two commits, or `None` for an unknown kind of remote.
///
/// Self-hosted servers are recognised by the start of their name, such as `gitlab.` or `gitea.`. Sourcehut has no page
/// that compares two commits; its log from the later commit is linked instead.
pub(crate) fn compare_link(remote: Option<&str>, from: &str, to: &str) -> Option<String> {
    let (kind, base) = kind(remote?)?;
    Some(match kind {
        Forge::GitHub => format!("{base}/compare/{from}...{to}"),
        Forge::GitLab => format!("{base}/-/compare/{from}...{to}"),
        Forge::Bitbucket => format!("{base}/branches/compare/{to}%0D{from}"),
        Forge::Sourcehut => format!("{base}/log/{to}"),
    })
}

/// Returns the URL of the page of one commit.
pub(crate) fn commit_link(remote: Option<&str>, commit: &str) -> Option<String> {
    let (kind, base) = kind(remote?)?;
    Some(match kind {
        Forge::GitHub | Forge::Sourcehut => format!("{base}/commit/{commit}"),
        Forge::GitLab => format!("{base}/-/commit/{commit}"),
        Forge::Bitbucket => format!("{base}/commits/{commit}"),
    })
}

/// The kinds of servers, which differ in their URLs. Codeberg, Gitea and Forgejo use the URLs of GitHub.
enum Forge {
    GitHub,
    GitLab,
    Bitbucket,
    Sourcehut,
}

fn kind(remote: &str) -> Option<(Forge, String)> {
    let (host, path) = place(remote)?;
    let first = host.split('.').next().unwrap_or_default();
    let kind = match (host.as_str(), first) {
        ("codeberg.org", _) | (_, "github" | "gitea" | "forgejo") => Forge::GitHub,
        (_, "gitlab") => Forge::GitLab,
        ("bitbucket.org", _) => Forge::Bitbucket,
        ("git.sr.ht", _) => Forge::Sourcehut,
        _ => return None,
    };
    Some((kind, format!("https://{host}/{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_remote_has_its_own_page() {
        let link = |remote| compare_link(Some(remote), "aa", "bb").unwrap_or_default();
        for remote in [
            "https://github.com/some/winter.git",
            "https://user:secret@github.com/some/winter",
            "git@github.com:some/winter.git",
            "ssh://git@github.com:22/some/winter.git/",
            "git://github.com/some/winter.git",
        ] {
            assert_eq!(link(remote), "https://github.com/some/winter/compare/aa...bb", "{remote}");
        }
        assert_eq!(
            link("git@gitlab.com:group/inner/tool.git"),
            "https://gitlab.com/group/inner/tool/-/compare/aa...bb"
        );
        assert_eq!(
            link("https://gitlab.example.org/a/b"),
            "https://gitlab.example.org/a/b/-/compare/aa...bb"
        );
        assert_eq!(link("https://codeberg.org/a/b.git"), "https://codeberg.org/a/b/compare/aa...bb");
        assert_eq!(link("git@gitea.example.org:a/b.git"), "https://gitea.example.org/a/b/compare/aa...bb");
        assert_eq!(link("git@bitbucket.org:a/b.git"), "https://bitbucket.org/a/b/branches/compare/bb%0Daa");
        assert_eq!(link("git@git.sr.ht:~a/b"), "https://git.sr.ht/~a/b/log/bb");
        let commit = |remote| commit_link(Some(remote), "aa").unwrap_or_default();
        assert_eq!(commit("git@github.com:a/b.git"), "https://github.com/a/b/commit/aa");
        assert_eq!(commit("git@gitlab.com:a/b.git"), "https://gitlab.com/a/b/-/commit/aa");
        assert_eq!(commit("git@bitbucket.org:a/b.git"), "https://bitbucket.org/a/b/commits/aa");
        assert_eq!(commit("https://git.sr.ht/~a/b"), "https://git.sr.ht/~a/b/commit/aa");
    }

    #[test]
    fn secrets_stay_behind() {
        assert_eq!(without_user("https://me:secret@github.com/a/b.git"), "https://github.com/a/b.git");
        assert_eq!(without_user("git@github.com:a/b.git"), "git@github.com:a/b.git");
    }

    #[test]
    fn unknown_remotes_have_no_page() {
        for remote in [
            "/srv/git/tool.git",
            "../tool",
            "file:///srv/git/github.com/tool",
            "https://example.org/a/b",
            "C:/git/tool",
            "https://github.com/a/b\" onclick=\"x",
            "https://github.com/a)(b/c",
            "https://github.com/alone",
            "",
        ] {
            assert_eq!(compare_link(Some(remote), "aa", "bb"), None, "{remote}");
        }
        assert_eq!(compare_link(None, "aa", "bb"), None);
    }
}
