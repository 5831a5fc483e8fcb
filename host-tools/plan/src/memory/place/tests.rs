//! Bodies of no program in small regions: where each goes, and what is said where one goes nowhere.

use proptest::prelude::*;

use super::*;
use crate::memory::plan::Buffer;
use crate::stage::unwatched;

/// Bodies as life, bytes and traffic.
fn made_up(bodies: &[(u64, u64, u64, u64)], relations: Vec<Relation>) -> Bodies {
    let buffer = |(index, &(lower, upper, bytes, _)): (usize, &(u64, u64, u64, u64))| {
        Buffer::new(format!("b{index}"), lower, upper, bytes).aligned(4)
    };
    let buffers = bodies.iter().enumerate().map(buffer).collect();
    Bodies::made_up(Problem { buffers, relations }, bodies.iter().map(|b| b.3).collect())
}

fn request(sizes: &[Option<u64>]) -> Request {
    let region = |(index, &size): (usize, &Option<u64>)| Region {
        name: format!("r{index}"),
        size,
    };
    Request {
        regions: sizes.iter().enumerate().map(region).collect(),
        in_place: true,
        nodes: 1000,
        max_step: None,
    }
}

/// Two bodies in use at once, and the regions of bodies and their offsets.
fn placed(bodies: &Bodies, sizes: &[Option<u64>]) -> Result<(Vec<usize>, Vec<u64>, Placed)> {
    place(bodies.clone(), &request(sizes), &mut unwatched).map(|p| (p.region.clone(), p.offsets.clone(), p))
}

#[test]
fn a_region_takes_what_fits_to_the_last_word() {
    // In use at once, of 8 and 10 bytes; arenas are whole words.
    let bodies = made_up(&[(0, 2, 8, 8), (1, 3, 10, 40)], Vec::new());
    for (size, fits) in [
        (0, false),
        (17, false),
        (18, false),
        (19, false),
        (20, true),
        (21, true),
    ] {
        let found = placed(&bodies, &[Some(size)]);
        assert_eq!(found.is_ok(), fits, "{size}");
        let error = match found {
            Ok((region, _, placed)) => {
                assert_eq!((region, placed.arena_bytes()), (vec![0, 0], 20));
                assert_eq!((placed.lower_bound(), placed.proven_optimal()), (20, true));
                continue;
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::DoesNotFit);
        let text = error.to_string();
        for part in [
            "20 bytes",
            "no plan of these steps is smaller",
            "region r0",
            "the peak is at step 1",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.contains(&format!("at most {size}")), "{text}");
    }
    assert_eq!(placed(&bodies, &[None]).expect("no limit").2.arena_bytes(), 20);
    // The hotter one alone where both do not fit: by traffic for each byte, not by traffic.
    for (sizes, expected) in [
        ([Some(20), Some(8)], Some([0, 0])),
        ([Some(19), Some(8)], Some([1, 0])),
        ([Some(12), Some(8)], Some([1, 0])),
        ([Some(11), Some(20)], Some([0, 1])),
        ([Some(11), None], Some([0, 1])),
        ([Some(7), Some(20)], Some([1, 1])),
        ([Some(12), Some(7)], None),
        ([Some(7), Some(19)], None),
    ] {
        let found = placed(&bodies, &sizes).ok().map(|(region, ..)| region);
        assert_eq!(found, expected.map(Vec::from), "{sizes:?}");
    }
}

#[test]
fn the_hotter_body_goes_first_then_the_smaller_then_the_earlier() {
    let sizes = [Some(16), Some(64)];
    for (bodies, expected) in [
        // As much traffic for each byte.
        ([(0, 1, 16, 32), (0, 1, 8, 16)], [1, 0]),
        ([(0, 1, 8, 16), (0, 1, 16, 32)], [0, 1]),
        ([(0, 1, 16, 16), (0, 1, 16, 16)], [0, 1]),
        // More of it, though less in all.
        ([(0, 1, 16, 32), (0, 1, 8, 17)], [1, 0]),
        ([(0, 1, 16, 33), (0, 1, 8, 16)], [0, 1]),
        // Nothing to keep.
        ([(0, 1, 0, 0), (0, 1, 20, 1)], [0, 1]),
    ] {
        let found = placed(&made_up(&bodies, Vec::new()), &sizes).expect("there is room");
        assert_eq!(found.0, expected, "{bodies:?}");
    }
}

#[test]
fn one_to_all_regions_may_be_given() {
    let bodies = made_up(&[(0, 1, 4, 4)], Vec::new());
    for count in 0..MAX_REGIONS + 3 {
        let found = placed(&bodies, &vec![Some(4); count]);
        match found {
            Ok((_, _, placed)) => {
                assert!((1..=MAX_REGIONS).contains(&count));
                let mut bytes = [0; MAX_REGIONS];
                bytes[0] = 4;
                assert_eq!(placed.region_bytes(), bytes);
            }
            Err(error) => {
                assert!(count == 0 || count > MAX_REGIONS);
                assert_eq!(error.kind(), ErrorKind::Usage);
                assert!(error.to_string().contains(&format!("1 to {MAX_REGIONS}")), "{error}");
            }
        }
    }
    let big = made_up(&[(0, 1, 40, 4)], Vec::new());
    let text = placed(&big, &[Some(8), Some(12)]).expect_err("no room").to_string();
    for part in ["`b0` (40 bytes) fits in no region", "r0=8 r1=12"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Leave to overlap is kept for two bodies in one region, whatever their numbers there are.
#[test]
fn relations_hold_within_each_region() {
    let relation = |below, above, distance| Relation { below, above, distance };
    for (distance, bytes) in [(0, 40), (8, 48), (40, 80)] {
        // The first body fills the first region; of the others each is 40 bytes, and alive together.
        let bodies = made_up(
            &[(0, 2, 8, 1000), (0, 1, 40, 1), (0, 1, 40, 1)],
            vec![relation(1, 2, distance), relation(0, 1, 0)],
        );
        let (region, offsets, found) = placed(&bodies, &[Some(8), Some(100)]).expect("there is room");
        assert_eq!(region, [0, 1, 1]);
        assert_eq!(found.region_bytes()[..2], [8, bytes], "{distance}");
        assert_eq!(offsets[2] - offsets[1], distance as u64);
    }
}

/// The regions by their definition, `fits` being the planner's estimate.
fn defined(bodies: &Bodies, sizes: &[Option<u64>]) -> Option<Vec<usize>> {
    let buffers = &bodies.problem.buffers;
    let fits = |members: &[usize], size: Option<u64>| {
        let problem = Problem {
            buffers: members.iter().map(|&m| buffers[m].clone()).collect(),
            relations: Vec::new(),
        };
        let height = plan::estimate(&problem).expect("a plan").height;
        size.is_none_or(|size| height.div_ceil(4) * 4 <= size)
    };
    let all: Vec<usize> = (0..buffers.len()).collect();
    if sizes.len() == 1 || fits(&all, sizes[0]) {
        return Some(vec![0; buffers.len()]);
    }
    let mut members = vec![Vec::new(); sizes.len()];
    let mut left = all;
    while !left.is_empty() {
        // Traffic for each byte is small enough to be exact.
        let heat = |body: usize| bodies.traffic[body] as f64 / buffers[body].bytes().max(1) as f64;
        let first = left.iter().copied().reduce(|a, b| {
            let (cold, size) = (
                heat(b) < heat(a),
                buffers[b].bytes().max(1) >= buffers[a].bytes().max(1),
            );
            if cold || heat(a) == heat(b) && size { a } else { b }
        })?;
        left.retain(|&body| body != first);
        let region = (0..sizes.len()).find(|&region| {
            let mut with: Vec<usize> = members[region].clone();
            with.push(first);
            with.sort();
            fits(&with, sizes[region])
        })?;
        members[region].push(first);
    }
    let of = |body| members.iter().position(|members| members.contains(&body));
    (0..buffers.len()).map(of).collect()
}

proptest! {
    #[test]
    fn bodies_lie_apart_in_the_regions_of_their_heat(
        bodies in prop::collection::vec((0u64..5, 1u64..4, 0u64..40, 0u64..200), 1..7),
        sizes in prop::collection::vec(prop_oneof![4 => (0u64..90).prop_map(Some), 1 => Just(None)], 1..=MAX_REGIONS),
    ) {
        let bodies: Vec<_> = bodies.into_iter().map(|(lower, length, bytes, traffic)| (lower, lower + length, bytes, traffic)).collect();
        let of = made_up(&bodies, Vec::new());
        let found = placed(&of, &sizes);
        let expected = defined(&of, &sizes);
        let Ok((region, offsets, found)) = found else {
            prop_assert!(sizes.len() == 1 || expected.is_none());
            return Ok(());
        };
        prop_assert_eq!(Some(&region), expected.as_ref());
        let mut ends = vec![0; sizes.len()];
        for (a, &(lower, upper, bytes, _)) in bodies.iter().enumerate() {
            let end = offsets[a] + bytes;
            if bytes > 0 {
                ends[region[a]] = end.max(ends[region[a]]);
            }
            for (b, &(from, to, other, _)) in bodies.iter().enumerate().skip(a + 1) {
                let apart = region[a] != region[b] || upper <= from || to <= lower || bytes == 0 || other == 0
                    || end <= offsets[b] || offsets[b] + other <= offsets[a];
                prop_assert!(apart, "{a} and {b} in {offsets:?}");
            }
        }
        let mut whole = [0; MAX_REGIONS];
        for (at, end) in ends.iter().enumerate() {
            whole[at] = end.div_ceil(4) * 4;
            prop_assert!(sizes[at].is_none_or(|size| whole[at] <= size));
        }
        prop_assert_eq!(found.region_bytes(), whole);
        prop_assert_eq!(found.arena_bytes(), whole.iter().sum::<u64>());
        prop_assert!(found.lower_bound() <= found.arena_bytes());
        prop_assert_eq!(found.plans.len(), sizes.len());
        let proven = found.plans.iter().all(|(_, plan)| plan.height == plan.lower_bound);
        prop_assert_eq!(found.proven_optimal(), proven);
    }
}
