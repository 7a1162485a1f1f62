//! Tests of the reader on whole answers.

use super::*;

/// Feeds a text whole and in small steps, and checks that the answer is the same.
fn read(text: &str, expect: Expect) -> Result<(Head, usize), Garbage> {
    let run = |step: usize| {
        let mut reader = ResponseReader::default();
        let mut used = 0;
        for part in text.as_bytes().chunks(step) {
            let (taken, head) = reader.feed(part, expect)?;
            used += taken;
            if let Some(head) = head {
                assert_eq!(reader.end(), AtEnd::Nothing);
                return Ok((head, used));
            }
        }
        match reader.end() {
            AtEnd::Complete(head) => Ok((head, used)),
            other => panic!("{other:?} after {text:?}"),
        }
    };
    let whole = run(text.len());
    for step in [1, 2, 3, 7] {
        assert_eq!(run(step), whole, "in steps of {step}: {text:?}");
    }
    whole
}

fn plain(text: &str) -> Result<(Head, usize), Garbage> {
    read(text, Expect::default())
}

#[test]
fn lengths_chunks_and_closing_frame_the_content() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1";
    assert_eq!(plain(text), Ok((Head { status: 200, body: 5, keep_alive: true }, text.len() - 8)));
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n\r\n4;x=y\r\nWiki\r\n\
                5\r\npedia\r\n0\r\nExpires: never\r\n\r\n";
    assert_eq!(plain(text), Ok((Head { status: 200, body: 9, keep_alive: true }, text.len())));
    let text = "HTTP/1.0 404 Not Found\r\nServer: old\r\n\r\nuntil the end";
    assert_eq!(plain(text), Ok((Head { status: 404, body: 13, keep_alive: false }, text.len())));
}

#[test]
fn a_length_may_be_repeated_if_it_is_the_same() {
    let head = Head { status: 200, body: 5, keep_alive: true };
    for length in ["5, 5", "5,5 ,5", "5\r\nContent-Length: 5"] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello");
        assert_eq!(plain(&text), Ok((head, text.len())), "{length}");
    }
    for length in ["5, 6", "5,", ",5"] {
        assert!(
            plain(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello")).is_err(),
            "{length}"
        );
    }
}

#[test]
fn a_header_line_may_be_continued() {
    let text = "HTTP/1.1 200 OK\r\nX-Long: one\r\n  two\n\tthree\r\nContent-Length:\r\n 5\r\n\r\nhello";
    assert_eq!(plain(text), Ok((Head { status: 200, body: 5, keep_alive: true }, text.len())));
    let mut reader = ResponseReader::default();
    reader.feed(text.as_bytes(), Expect { no_body: false, keep: true }).expect("valid");
    assert_eq!(header(&reader.kept_head, "x-long"), Some(&b"one    two \tthree"[..]));
    assert_eq!(header(&reader.kept_head, "content-length"), Some(&b"5"[..]));
}

#[test]
fn an_answer_that_only_the_end_of_the_connection_ends_is_known_as_such() {
    // RFC 9112, section 6.3: without chunks as the last coding, the length that is stated does not count.
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello, world";
    assert_eq!(plain(text), Ok((Head { status: 200, body: 12, keep_alive: false }, text.len())));
    let mut reader = ResponseReader::default();
    assert_eq!(reader.lacks(), None);
    assert_eq!(reader.feed(text.as_bytes(), Expect::default()), Ok((text.len(), None)));
    assert!(reader.lacks().is_some_and(|lacks| lacks.contains("stayed open")));
    reader.reset();
    assert_eq!(reader.feed(&text.as_bytes()[..20], Expect::default()), Ok((20, None)));
    assert_eq!(reader.lacks(), Some("the answer had begun"));
}

#[test]
fn some_responses_have_no_content_whatever_they_say() {
    for status in [204, 304] {
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(plain(&text).map(|(head, _)| head.body), Ok(0));
    }
    let expect = Expect { no_body: true, keep: false };
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(read(text, expect).map(|(head, used)| (head.body, used)), Ok((0, text.len())));
}

#[test]
fn interim_responses_are_passed_over() {
    let text = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(plain(text), Ok((Head { status: 200, body: 1, keep_alive: true }, text.len())));
    let mut reader = ResponseReader::default();
    let fed = reader.feed(b"HTTP/1.1 100 Continue\r\n\r\n", Expect::default());
    assert_eq!((fed, reader.end()), (Ok((25, None)), AtEnd::Half));
    assert_eq!(reader.lacks(), Some("the answer had begun"));
    reader.reset();
    assert_eq!(reader.end(), AtEnd::Nothing);
}

#[test]
fn a_head_that_comes_again_says_the_same_and_one_that_differs_does_not() {
    let mut reader = ResponseReader::default();
    let mut feed = |text: &str| reader.feed(text.as_bytes(), Expect::default());
    let head = |body| Some(Head { status: 200, body, keep_alive: true });
    for text in
        ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny"]
    {
        assert_eq!(feed(text), Ok((text.len(), head(1))));
    }
    // The same head in two portions, then one with another length, then a head without its content.
    assert_eq!(feed("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"), Ok((36, None)));
    assert_eq!(feed("\r\nz"), Ok((3, head(1))));
    assert_eq!(feed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nzz"), Ok((40, head(2))));
    assert_eq!(feed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), Ok((38, None)));
    assert_eq!(feed("zz"), Ok((2, head(2))));
}

#[test]
fn connections_stay_or_close_as_the_response_says() {
    let keep =
        |head: &str| plain(&format!("{head}\r\nContent-Length: 0\r\n\r\n")).map(|(head, _)| head.keep_alive);
    assert_eq!(keep("HTTP/1.1 200 OK"), Ok(true));
    assert_eq!(keep("HTTP/1.1 200 OK\r\nConnection: x, Close"), Ok(false));
    assert_eq!(keep("HTTP/1.0 200 OK"), Ok(false));
    assert_eq!(keep("HTTP/1.0 200 OK\r\nconnection: Keep-Alive"), Ok(true));
}

#[test]
fn an_answer_that_is_not_http_is_named() {
    for text in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 two hundred\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    ] {
        assert!(plain(text).is_err(), "{text:?}");
    }
}

#[test]
fn an_early_end_is_nothing_or_half() {
    let mut reader = ResponseReader::default();
    assert_eq!(reader.end(), AtEnd::Nothing);
    for half in ["HTTP/1.1 20", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"] {
        reader.reset();
        assert_eq!(reader.feed(half.as_bytes(), Expect::default()), Ok((half.len(), None)));
        assert_eq!(reader.end(), AtEnd::Half);
    }
}

#[test]
fn a_check_sees_head_and_content() {
    let mut reader = ResponseReader::default();
    let text = "HTTP/1.1 200 OK\r\nX-Version:  3 \r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    for part in text.as_bytes().chunks(5) {
        reader.feed(part, Expect { no_body: false, keep: true }).expect("valid");
    }
    assert_eq!(header(&reader.kept_head, "x-version"), Some(&b"3"[..]));
    assert_eq!(reader.kept_body, b"abc");
}
