use super::super::Take;
use super::*;

fn read(text: &str) -> Result<RequestFileContent, String> {
    scenario(text, Path::new("/"))
}

fn wrong(text: &str) -> String {
    read(text).expect_err("must be refused")
}

#[test]
fn requests_alone_need_no_users() {
    let text = r#"
        headers = { Accept = "text/html", "X-All" = "1" }
        [[request]]
        path = "/"
        weight = 3
        [[request]]
        name = "save"
        method = "POST"
        path = "/items"
        headers = { accept = "application/json" }
        body = "{}"
        check = { status = [201, "3xx"], contains = "id", headers = { Location = "/items" }, json = { "/ok" = true } }
    "#;
    let plain = read(text).expect("valid");
    assert_eq!(plain.order, RequestOrder::Weighted);
    assert!(plain.scenario.is_none());
    assert_eq!(read(&format!("order = 'in-turn'\n{text}")).expect("valid").order, RequestOrder::InTurn);
    assert_eq!((plain.requests[0].name.as_str(), plain.requests[0].weight), ("GET /", 3.0));
    assert_eq!(plain.requests[1].headers.len(), 2);
    assert_eq!(plain.requests[1].check.status, ["201", "3xx"]);
    let sent = String::from_utf8(plain.requests[1].http1("h:1", true)).expect("text");
    assert_eq!(
        sent,
        "POST /items HTTP/1.1\r\nHost: h:1\r\naccept: application/json\r\nX-All: 1\r\nContent-Length: 2\r\n\r\n{}"
    );
}

const SHOP: &str = r#"
model = "closed"
redirects = 3
think = "1s"

[[stage]]
duration = "10s"
users = [0, 50]

[[stage]]
duration = "1m"
users = 50

[[session]]
name = "buy"

[[session.request]]
name = "login"
method = "POST"
path = "/login"
body = "user=a"
capture = { token = { json = "/token" }, page = { regex = 'href="(/[^"]+)"' } }

[[session.request]]
name = "item"
path = "${page}"
group = "shop"
headers = { Authorization = "Bearer ${token}" }
think = ["100ms", "300ms"]

[limits]
login = ["p99<200ms"]
shop = ["errors<1%"]
"*" = ["p99<1s"]

[abort]
errors = "20%"
over = "2s"
"#;

#[test]
fn sessions_stages_and_limits_are_read() {
    let shop = read(SHOP).expect("valid");
    let scenario = shop.scenario.as_ref().expect("sessions");
    assert_eq!((scenario.model, scenario.duration()), (Some(Model::Closed), Some(Duration::from_secs(70))));
    assert_eq!((scenario.most_users(), scenario.cookies, scenario.redirects), (50, true, 3));
    let steps = &scenario.sessions[0].steps;
    assert_eq!((steps.len(), steps[0].captures.len(), steps[0].template.is_none()), (2, 2, true));
    assert_eq!(steps[0].think, (Duration::from_secs(1), Duration::from_secs(1)));
    assert_eq!(steps[1].think, (Duration::from_millis(100), Duration::from_millis(300)));
    let item = shop.requests.iter().find(|request| request.name == "item").expect("there");
    assert_eq!((item.path.as_str(), item.group.as_deref(), item.keep), ("/x", Some("shop"), true));
    assert_eq!(shop.limits.len(), 3);
    assert_eq!(scenario.abort.as_ref().and_then(|abort| abort.errors), Some(0.2));
}

#[test]
fn mistakes_are_named_with_their_line() {
    assert!(wrong("[[request]]\npath = '/'\nwieght = 2").contains("wieght"));
    assert!(wrong("[[request]]\npath = '/a b'").contains("space"));
    assert!(wrong("[[request]]\npath = '/'\nweight = 0").contains("weight"));
    assert!(wrong("[[request]]\npath = '/'\nbody_file = 'no-such-file'").contains("no-such-file"));
    assert!(wrong("request = []").contains("no [[request]]"));
    let unknown = wrong(&SHOP.replace("Bearer ${token}", "Bearer ${tokn}"));
    assert!(
        unknown.starts_with("line 24: there is no value ‘${tokn}’: known here are ${page}, ${token}"),
        "{unknown}"
    );
    let early = wrong(&SHOP.replace("user=a", "${token}"));
    assert!(early.contains("no value is known here"), "{early}");
    let mixed = wrong(&SHOP.replace("users = 50\n", "rate = 50\n"));
    assert!(mixed.starts_with("line 10: the closed model has users"), "{mixed}");
    let twice = wrong(&SHOP.replace("name = \"item\"", "name = \"login\""));
    assert!(twice.contains("‘login’ is the name of two"), "{twice}");
    let limit = wrong(&SHOP.replace("shop = [", "shoop = ["));
    assert!(limit.contains("‘shoop’") && limit.contains("‘shop’") && limit.starts_with("line "), "{limit}");
    assert!(wrong(&SHOP.replace("errors = \"20%\"\n", "")).contains("has no limit"));
    let check = r#"check = { json = { "/token" = "${token}" } }"#;
    let item = r#"path = "${page}""#;
    let text = wrong(&SHOP.replace(item, &format!("{item}\n{check}")));
    assert!(text.contains("‘${token}’ would not be replaced by the value"), "{text}");
    assert!(read(&SHOP.replace(item, &format!("{item}\n{}", check.replace("token}", "other}")))).is_ok());
    assert!(wrong(&SHOP.replace("\"/token\"", "\"token\"")).contains("begins with ‘/’"));
    assert!(wrong(&SHOP.replace("(/[^\"]+)", "(/[^")).contains("not a regular expression"));
    assert!(wrong(&SHOP.replace("\"1m\"", "\"1 fortnight\"")).contains("not a time"));
    assert!(wrong(&SHOP.replace("users = [0, 50]", "users = 'many'")).contains("two for a ramp"));
}

#[test]
fn data_are_known_by_their_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("u.csv"), "name,id\nAda,1\n").expect("written");
    let text =
        "[[data]]\nname = 'users'\nfile = 'u.csv'\ntake = 'once'\n\n[[request]]\npath = '/${users.id}'\n";
    let read = |text: &str| scenario(text, folder.path());
    let scenario = read(text).expect("valid").scenario.expect("placeholders");
    assert_eq!((scenario.sessions[0].sources.as_slice(), scenario.slots), (&[0][..], 2));
    let of_all = format!("headers = {{ X = '${{users.id}}' }}\n{}", text.replace("${users.id}", ""));
    let of_all = read(&of_all).expect("valid").scenario.expect("placeholders");
    assert_eq!(of_all.sessions[0].sources, [0], "a header of all requests takes a row too");
    let wrong = read(&text.replace("users.id", "users.no")).expect_err("refused");
    assert!(wrong.contains("known here are ${users.name}, ${users.id}"), "{wrong}");
    let missing = read(&text.replace("u.csv", "v.csv")).expect_err("refused");
    assert!(missing.starts_with("line 1: cannot read the data"), "{missing}");
    assert_eq!(Take::default(), Take::InTurn);
}
