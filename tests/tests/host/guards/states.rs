//! Statements of a file about a state that is stored as runs.

use super::*;

#[test]
fn runs_of_a_state_are_as_long_as_it_is() {
    let stateful = Blob {
        state: vec![7; 40],
        ..small()
    };
    assert_eq!(load(&stateful.file()), Ok(()), "a state of one run");
    assert_eq!(
        arenite::Header::parse(&stateful.file()).expect("a header").state_runs,
        1
    );
    let refused = |what: &str, change: fn(&mut arenite::Header)| {
        assert_eq!(load(&stateful.file_with(change)), Err(LoadError::Header), "{what}");
    };
    refused("a state longer than its runs", |h| h.state_init.len += 1);
    refused("a state shorter than its runs", |h| h.state_init.len -= 1);
    refused("a run of nothing too many", |h| h.state_runs = 2);
    refused("runs past the end", |h| h.state_init.offset = h.total - 3);
    refused("runs in the header", |h| h.state_init.offset = 124);
    refused("a state as it is past the end", |h| {
        (h.state_runs, h.state_init.offset) = (0, h.total - 39)
    });
}

/// The header of a file of any version is read where there is one with the magic number, and nowhere else.
#[test]
fn what_is_no_model_file_states_nothing() {
    let file = small().file();
    let stated = Stated::of(&file).expect("a model file");
    assert_eq!(stated.intact(&file), Some(&file[..]));
    assert_eq!(stated.total as usize, file.len());
    // The place of the metadata is the last that every version has.
    for len in 0..52 {
        assert_eq!(Stated::of(&file[..len]), None, "{len} bytes");
    }
    assert!(Stated::of(&file[..52]).is_some());
    assert_eq!(stated.intact(&file[..file.len() - 1]), None);
    for at in 0..4 {
        let mut other = file.clone();
        other[at] ^= 0x20;
        assert_eq!(Stated::of(&other), None, "byte {at}");
        let mut damaged = file.clone();
        damaged[HEADER_BYTES + at] ^= 1;
        assert_eq!(stated.intact(&damaged), None);
    }
}
