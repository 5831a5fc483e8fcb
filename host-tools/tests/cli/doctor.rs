//! `arenite doctor`: what is there, what is missing, and what installs it.

use std::fs;
use std::process::Command;

use crate::common::{ARENITE, Bench, run};

#[test]
fn doctor_names_every_board() {
    let output = run(ARENITE, &["doctor"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let missing = text.lines().any(|line| line.starts_with("missing  "));
    let advised = String::from_utf8_lossy(&output.stderr).contains("`arenite doctor --fix` installs what is missing");
    for board in &arenite_host::board::BOARDS {
        assert!(text.contains(board.triple), "{}: {text}", board.name);
    }
    assert_eq!(
        (output.status.code(), advised),
        (Some(i32::from(missing)), missing),
        "{text}"
    );
}

/// A machine on which nothing is installed, of shell scripts: `rustup` and `apt-get` note how they were called and bring what they are asked for.
#[cfg(target_os = "linux")]
fn bare_machine(bench: &Bench) -> Command {
    let scripts = r#"
        set -e
        cd "$0"
        mkdir -p path checkout/firmware
        : > checkout/firmware/Cargo.toml
        here=$PWD
        write() { { echo '#!/bin/sh'; cat; } > "path/$1"; chmod 755 "path/$1"; }
        echo "echo 0" | write id
        echo 'echo cargo 1.95.0' | write cargo
        echo "case \$* in --version) echo rustc 1.95.0;; *) echo $here/lib;; esac" | write rustc
        echo "case \$1 in --version) ;; *) echo \"rustup \$*\" >> $here/notes; /bin/mkdir $here/lib; echo noise;; esac" | write rustup
        {
            echo "case \$* in --version) exit;; esac"
            echo "echo \"apt-get \$*\" >> $here/notes"
            echo "case \$* in"
            echo "*--no-remove*--simulate*) test ! -e $here/taken;;"
            echo "*--simulate*) echo 'Inst qemu-system-arm (9 Debian:12/stable [amd64])';;"
            echo "download*) : > all.deb;;"
            echo "*--yes*)"
            echo "for name in arm aarch64 riscv32 riscv64; do"
            echo "printf '#!/bin/sh\\necho QEMU 9\\n' > $here/path/qemu-system-\$name; /bin/chmod 755 $here/path/qemu-system-\$name"
            echo "done;; esac"
        } | write apt-get
        {
            echo "case \$1 in --version) exit;; esac"
            echo "echo \"dpkg-deb \$1\" >> $here/notes; /bin/mkdir -p \$3/usr/bin"
            echo "for name in arm aarch64 riscv32 riscv64; do"
            echo "printf '#!/bin/sh\\necho QEMU 9\\n' > \$3/usr/bin/qemu-system-\$name; /bin/chmod 755 \$3/usr/bin/qemu-system-\$name"
            echo "done"
        } | write dpkg-deb
        for name in dirname basename; do printf '#!/bin/sh\nexec /usr/bin/%s "$@"\n' $name | { cat > path/$name; chmod 755 path/$name; }; done
    "#;
    let made = Command::new("sh").args(["-c", scripts]).arg(bench.path("")).status();
    assert!(made.expect("sh starts").success());
    let mut doctor = Command::new(ARENITE);
    doctor
        .env("PATH", bench.path("path"))
        .env("ARENITE_ROOT", bench.path("checkout"))
        .env("ARENITE_CACHE", bench.path("cache"))
        .env_remove("RUSTC");
    doctor
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_installs_what_is_missing_in_steps_that_it_names_first() {
    let bench = Bench::new();
    let notes = || fs::read_to_string(bench.path("notes")).unwrap_or_default();
    let before = bare_machine(&bench).arg("doctor").output().expect("it starts");
    let text = String::from_utf8_lossy(&before.stdout).into_owned();
    assert_eq!(before.status.code(), Some(1), "{text}");
    let install = "apt-get install --no-remove --no-install-recommends";
    assert!(text.contains(&format!("{install} qemu-system-arm\n")), "{text}");
    assert!(text.contains("rustup target add thumbv6m-none-eabi"), "{text}");
    assert_eq!(notes(), "", "without --fix nothing is installed");

    let fixed = bare_machine(&bench)
        .args(["doctor", "--fix"])
        .output()
        .expect("it starts");
    let (text, said) = (
        String::from_utf8_lossy(&fixed.stdout),
        String::from_utf8_lossy(&fixed.stderr),
    );
    assert_eq!(fixed.status.code(), Some(0), "{text}{said}");
    assert!(!text.contains("missing") && !text.contains("noise"), "{text}");
    let packages = "qemu-system-arm qemu-system-misc";
    let mut triples: Vec<_> = arenite_host::board::BOARDS.iter().map(|board| board.triple).collect();
    triples.sort_unstable();
    triples.dedup();
    let steps = [
        format!("rustup target add {}", triples.join(" ")),
        "apt-get update".into(),
        format!("{install} --simulate {packages}"),
        format!("{install} --yes {packages}"),
    ];
    assert_eq!(notes().lines().collect::<Vec<_>>(), steps);
    // All of them are named before the first is taken.
    let plan: Vec<_> = said
        .lines()
        .skip_while(|line| *line != "steps:")
        .skip(1)
        .take(4)
        .collect();
    assert_eq!(plan, steps.each_ref().map(|step| format!("  {step}")));
    let after: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert_eq!(after, steps);

    // Where all is there, nothing is done.
    let again = bare_machine(&bench)
        .args(["doctor", "--fix"])
        .output()
        .expect("it starts");
    assert_eq!((again.status.code(), &again.stderr[..]), (Some(0), &b""[..]));
}

/// As `cargo xtask setup` does: by the same steps.
#[cfg(target_os = "linux")]
#[test]
fn doctor_unpacks_a_qemu_that_apt_may_not_install() {
    let bench = Bench::new();
    let mut doctor = bare_machine(&bench);
    fs::write(bench.path("taken"), "").expect("written");
    let fixed = doctor.args(["doctor", "--fix"]).output().expect("it starts");
    let (text, said) = (
        String::from_utf8_lossy(&fixed.stdout),
        String::from_utf8_lossy(&fixed.stderr),
    );
    assert_eq!(fixed.status.code(), Some(0), "{text}{said}");
    assert!(!text.contains("missing"), "{text}");
    assert!(
        said.contains("unpacks them into ") && said.contains(".qemu instead"),
        "{said}"
    );
    let notes = fs::read_to_string(bench.path("notes")).expect("notes");
    assert!(
        !notes.contains("--yes") && notes.contains("apt-get download --quiet qemu-system-arm=9"),
        "{notes}"
    );
    let starters = fs::read_dir(bench.path("checkout/.qemu/bin")).expect("unpacked");
    assert_eq!(starters.count(), 4);
}
