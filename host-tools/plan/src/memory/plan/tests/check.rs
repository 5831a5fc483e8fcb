//! The checker, and the command.

use super::*;
use crate::stage::unwatched;

#[test]
fn the_checker_finds_every_kind_of_fault() {
    let problem = Problem {
        buffers: vec![
            Buffer::new("a", 0, 4, 8).aligned(4),
            Buffer::new("b", 2, 6, 8),
            Buffer::new("c", 4, 8, 8),
        ],
        relations: vec![],
    };
    let good = solve(&problem, &Options::default()).unwrap();
    check(&problem, &good).unwrap();
    let fault = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        check(&problem, &plan).expect_err("must be found")
    };
    assert!(matches!(
        fault(&|p| p.offsets = vec![0, 7, 0]),
        CheckError::Height { .. }
    ));
    assert!(matches!(
        fault(&|p| { (p.offsets, p.height, p.proven_optimal) = (vec![0, 7, 15], 23, false) }),
        CheckError::Overlap { step: 2, .. }
    ));
    assert!(matches!(
        fault(&|p| p.offsets = vec![0, 8, 9]),
        CheckError::AboveHeight { .. }
    ));
    assert!(matches!(
        fault(&|p| p.offsets = vec![2, 8, 0]),
        CheckError::Misaligned { .. }
    ));
    assert!(matches!(fault(&|p| p.offsets = vec![0, 8]), CheckError::Count { .. }));
    assert!(matches!(fault(&|p| p.height = 17), CheckError::Height { .. }));
    assert!(matches!(fault(&|p| p.lower_bound = 17), CheckError::Bound { .. }));
    assert!(matches!(fault(&|p| p.proven_optimal = false), CheckError::Bound { .. }));
    let mut fixed = problem.clone();
    fixed.buffers[0].fixed = Some(16);
    assert!(matches!(check(&fixed, &good), Err(CheckError::Moved { .. })));
    // A relation allows exactly its distance.
    let related = |distance| Problem {
        relations: vec![Relation {
            below: 0,
            above: 1,
            distance,
        }],
        ..problem.clone()
    };
    let plan = Plan {
        offsets: vec![0, 4, 12],
        height: 20,
        lower_bound: 16,
        proven_optimal: false,
        ..good.clone()
    };
    check(&related(4), &plan).unwrap();
    assert!(matches!(
        check(&related(5), &plan),
        Err(CheckError::Overlap {
            first: 0,
            second: 1,
            ..
        })
    ));
    // One byte that they share is found at either end.
    for offsets in [vec![8, 1, 9], vec![0, 7, 15]] {
        let height = offsets[2] + 8;
        let touching = Plan {
            offsets,
            height,
            ..plan.clone()
        };
        let found = check(&related(8), &touching);
        assert!(matches!(found, Err(CheckError::Overlap { step: 2, .. })), "{found:?}");
    }
}

#[test]
fn a_command_writes_whole_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.csv"), folder.path().join("out.csv"));
    std::fs::write(&input, "id,lower,upper,size\na,0,2,4\nb,1,3,4\n").unwrap();
    std::fs::write(&output, "before").unwrap();
    let mut args = PlanArgs {
        file: input.clone(),
        capacity: Some(7),
        output: Some(output.clone()),
        json: false,
        plan_nodes: 1000,
    };
    let error = command(&args, &mut unwatched).unwrap_err();
    assert!(
        matches!(
            error,
            CommandError::DoesNotFit {
                capacity: 7,
                height: 8,
                lower_bound: 8,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "before");
    args.capacity = None;
    let (report, draft) = command(&args, &mut unwatched).unwrap();
    draft.expect("asked for").publish().unwrap();
    assert_eq!((report.height, report.lower_bound, report.proven_optimal), (8, 8, true));
    assert!(
        std::fs::read_to_string(&output)
            .unwrap()
            .starts_with("id,lower,upper,size,offset\na,0,2,4,")
    );
    std::fs::write(&input, "id,lower,upper,size\na,0,2,x\n").unwrap();
    assert!(matches!(command(&args, &mut unwatched), Err(CommandError::Csv { .. })));
    args.file = folder.path().join("absent.csv");
    assert!(matches!(command(&args, &mut unwatched), Err(CommandError::File(_))));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no temporary file is left"
    );
}
