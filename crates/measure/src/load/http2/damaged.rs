//! Tests that damaged answers give an error or what was read, however the bytes are divided.

use super::*;
use crate::load::exchange::NO_USER;
use scruple_fuzz::Corpus;

#[test]
fn damaged_answers_are_survived_in_portions_of_any_size() {
    let (target, _) = Target::parse("http://127.0.0.1:1/").expect("a target");
    let post =
        Request { method: "POST".to_owned(), body: vec![b'x'; 100_000], keep: true, ..Request::get("/a") };
    let requests = [Request::get("/"), post];
    let encoded = requests.each_ref().map(|request| encode(request, &target).expect("a request"));
    Corpus::named("http2").is_survived_by(|bytes| {
        for step in [1, 7, bytes.len().max(1)] {
            let mut connection = Http2::new(3);
            for (number, encoded) in encoded.iter().enumerate() {
                let exchange = Exchange {
                    request: number as u32,
                    part: 1,
                    intended: 0,
                    sent: 0,
                    late: 0,
                    carried: 0,
                    user: NO_USER,
                    repeats: 0,
                };
                connection.start(encoded, exchange).expect("it is free");
            }
            let mut done = Vec::new();
            for part in bytes.chunks(step) {
                if connection.receive(part, &mut done).is_err() {
                    break;
                }
                let sent = connection.take_outgoing();
                connection.give_back(sent);
            }
            assert!(done.len() + connection.exchanges().count() == requests.len());
            connection.give_up(0, &mut done);
            assert_eq!((done.len(), connection.exchanges().count()), (2, 0));
        }
    });
}
