//! Where a redirect leads to (RFC 3986, section 5).

/// What a redirect to the same server may name.
pub(in super::super) struct Server<'a> {
    pub(in super::super) encrypted: bool,
    /// The host under load, and the one that the request names.
    pub(in super::super) hosts: [&'a str; 2],
}

impl Server<'_> {
    /// The path that a redirect leads to from the path `from`; `None` if it leads to another server.
    pub(super) fn path(&self, place: &[u8], from: &str) -> Option<String> {
        let place = std::str::from_utf8(place).ok()?;
        let place = place.split('#').next().unwrap_or(place);
        if !place.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        // An empty place, or one with a fragment alone, keeps the query.
        if place.is_empty() {
            return Some(without_dots(from));
        }
        let from = from.split('?').next().unwrap_or(from);
        let (scheme, port) = if self.encrypted { ("https", ":443") } else { ("http", ":80") };
        // A colon after a slash or a question mark is part of a path or a query, as in /login?next=http://…
        let (given, rest) = match place.split_once(':').filter(|(given, _)| !given.contains(['/', '?'])) {
            Some((given, rest)) => (Some(given), rest),
            None => (None, place),
        };
        if given.is_some_and(|given| !given.eq_ignore_ascii_case(scheme)) {
            return None;
        }
        let path = match rest.strip_prefix("//") {
            Some(rest) => {
                let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                let bare = |host: &str| host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
                if !self.hosts.iter().any(|own| bare(host) == bare(own)) {
                    return None;
                }
                path.to_owned()
            }
            None if given.is_some() => return None,
            None if rest.starts_with('/') => rest.to_owned(),
            None if rest.starts_with('?') => format!("{from}{rest}"),
            None => format!("{}/{rest}", from.rsplit_once('/').map_or("", |(folder, _)| folder)),
        };
        Some(without_dots(&path))
    }
}

/// Resolves the segments `.` and `..` of a path.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut segments: Vec<&str> = Vec::new();
    let mut rest = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = rest.next() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    segments.pop();
                }
                if rest.peek().is_none() {
                    segments.push("");
                }
            }
            _ => segments.push(segment),
        }
    }
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(place: &str) -> Option<String> {
        Server { encrypted: false, hosts: ["h:1", "app.local:80"] }.path(place.as_bytes(), "/a/b?c=d")
    }

    #[test]
    fn redirects_lead_to_paths_of_the_same_server() {
        for (place, path) in [
            ("/x?y#z", "/x?y"),
            ("c", "/a/c"),
            ("http://H:1/x", "/x"),
            ("http://h:1?q", "/?q"),
            ("http://h:1", "/"),
            ("//h:1/x", "/x"),
            ("http://app.local:80/x", "/x"),
            ("http://App.local/x", "/x"),
            ("/login?next=http://other/x", "/login?next=http://other/x"),
            ("login?next=//other/x", "/a/login?next=//other/x"),
            ("?page=2", "/a/b?page=2"),
            ("", "/a/b?c=d"),
            ("#top", "/a/b?c=d"),
            ("../c/./d", "/c/d"),
            ("../../../c/..", "/"),
            ("/x/.?../y", "/x/?../y"),
            ("/a//b/", "/a//b/"),
        ] {
            assert_eq!(to(place).as_deref(), Some(path), "{place}");
        }
    }

    #[test]
    fn redirects_to_other_servers_have_no_path() {
        for place in
            ["http://other/x", "//other/x", "https://h:1/x", "mailto:h:1", "http:x", "/a b", "/a\r\nX: y"]
        {
            assert_eq!(to(place), None, "{place}");
        }
    }
}
