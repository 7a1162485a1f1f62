//! Which versions of a history are listed, and what becomes of those that are not.

use crate::repository::Repository;
use crate::support::Place;

#[test]
fn a_listed_version_stands_in_for_one_with_the_same_binary_that_is_not_listed_any_more() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([100, 200]);
    repository.write("README", "documents");
    repository.commit("documents");
    let take = |words: &[&str]| {
        let answer = place.history(&[&["--rounds", "3"], words].concat());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        (answer.stdout, place.recorded())
    };
    // The last one is built first, and so it stands for the one in the middle.
    take(&["--commits", "HEAD~2,HEAD"]);
    let (_, recorded) = take(&[]);
    assert_eq!(recorded.states(), ["built", "same-binary", "built"]);
    let (report, recorded) = take(&["HEAD~1"]);
    assert_eq!(recorded.states(), ["built"; 2]);
    assert_eq!(recorded.readings("version 1", "malloc.bytes"), [200.0; 2]);
    assert_eq!(recorded.readings("version 1", "time.wall").len(), 3);
    assert!(report.contains("2 versions: 2 weighed\n"), "{report}");
    // Where both are listed again, one of them is enough.
    let (report, recorded) = take(&[]);
    assert_eq!(recorded.states(), ["built", "built", "same-binary"]);
    assert_eq!(recorded.version("documents")["same_as"], recorded.version("version 1")["commit"]);
    assert!(report.contains("3 versions: 2 weighed, 1 with the same binary as another\n"), "{report}");
}
