//! Loads that are refused before the first request, with what to write instead.

use crate::support::Place;
use insta::assert_snapshot;

fn refusal(words: &[&str]) -> String {
    let place = Place::new();
    let answer = place.run(["load", "--no-store"].iter().chain(words));
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    answer.stderr
}

#[test]
fn a_change_of_a_single_server_is_no_limit() {
    let of = |limit: &str| refusal(&["http://127.0.0.1:1/", "--limit", limit]);
    assert_snapshot!(of("load.p99<+3%"), @"error: the limit ‘load.p99<+3%’ is a change, and there is only one server: give the one to compare with (--against old=URL), or limit the amount (load.p99<20ms)");
    assert_snapshot!(of("load.errors<+3%"), @"error: the limit ‘load.errors<+3%’ is a change, and there is only one server: give the one to compare with (--against old=URL), or limit the amount (load.errors<1%)");
}

#[test]
fn a_duration_is_more_than_zero_and_has_a_known_unit() {
    assert_snapshot!(refusal(&["http://127.0.0.1:1/", "-d", "0s"]), @"error: ‘0s’ is not a duration: give one of more than zero in ns, us, ms, s, min or h, such as 60s or 1.5min");
    assert_snapshot!(refusal(&["http://127.0.0.1:1/", "-d", "5 weeks"]), @"error: ‘5 weeks’ is not a duration: give one of more than zero in ns, us, ms, s, min or h, such as 60s or 1.5min");
}

#[test]
fn a_text_without_its_prefix_is_no_status() {
    assert_snapshot!(refusal(&["http://127.0.0.1:1/", "--expect", "200,Hello"]), @"error: ‘Hello’ is not a status that an answer to request ‘GET /’ can have: give one such as 200 or 4xx; a text in the answer is --expect text:TEXT, or ‘contains’ in a scenario");
}

#[test]
fn a_program_that_does_not_exist_is_named_as_in_other_commands() {
    let of = |program: &str| refusal(&["unix:/nowhere/at/all.sock", "--", program]);
    assert_snapshot!(of("./nothing"), @"error: there is no server to load: there is no file ‘./nothing’");
    assert_snapshot!(of("sleep 60"), @"error: there is no server to load: there is no program ‘sleep 60’: these are several words in one pair of quotes; leave the quotes out");
    assert_snapshot!(of("no-such-program"), @"error: there is no server to load: there is no program ‘no-such-program’ on the search path: check the spelling, or give its path");
}

#[test]
fn commands_of_two_servers_have_two_addresses() {
    let words =
        ["http://127.0.0.1:1/", "--against", "old=http://127.0.0.1:1/ -- sleep 60", "--", "sleep", "60"];
    assert_snapshot!(refusal(&words), @"error: the commands of ‘old’ and ‘new’ both start a server at 127.0.0.1:1: give each an address of its own, such as another port");
}

#[test]
fn a_socket_that_does_not_exist_is_named() {
    assert_snapshot!(refusal(&["unix:/nowhere/at/all.sock"]), @"error: cannot load ‘unix:/nowhere/at/all.sock’: there is no file ‘/nowhere/at/all.sock’: start the server, or give the path of its socket");
}
