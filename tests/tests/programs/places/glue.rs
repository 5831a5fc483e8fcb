//! Code compiled in each place, against stand-ins for its build system: compiled, linked, and run on a board. The real ones are not here.

use std::fs;
use std::path::Path;
use std::process::Command;

use arenite_host::board::Board;
use arenite_xtask::places::{Core, Libraries};

use super::bare::{
    board, built, can_build, configured, files, has_newlib, here, library, output, run, said, script, written,
};

/// The core that stands for all.
fn core() -> &'static Core {
    Core::named("cortex-m4f").unwrap_or_else(|error| panic!("{error}"))
}

fn prepared(test: &str) -> Option<&'static Board> {
    (can_build(test, core()) && has_newlib(test))
        .then(|| board(test, core()))
        .flatten()
}

/// A project against a stand-in; what the program prints.
fn printed(
    board: &Board,
    source: &Path,
    folder: &Path,
    program: &str,
    mut defines: Vec<String>,
    root: Option<&Path>,
) -> String {
    defines.push(format!("SCRIPT={}", script(board, folder).display()));
    defines.push(format!("BARE={}", here().join("bare").display()));
    defines.push("CMAKE_CXX_COMPILER=arm-none-eabi-g++".to_owned());
    let mut cmake = configured(core(), core().options, source, folder, &defines);
    if let Some(root) = root {
        cmake.env("IDF_PATH", root);
    }
    let done = cmake.output().expect("cmake starts");
    assert!(done.status.success(), "{}", said(&done));
    built(folder);
    run(board, &folder.join("build").join(program))
}

#[test]
fn a_zephyr_application_links_the_module() {
    let Some(board) = prepared("a_zephyr_application_links_the_module") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let module = folder.path().join("arenite");
    written(
        &files("zephyr", &Libraries::from([(core().name, library(core()))])),
        &module,
    );
    let with = |name: &str| {
        vec![
            format!("Zephyr_DIR={}", here().join("zephyr").display()),
            format!("MODULE={}", module.display()),
            format!("CONFIG_ARENITE_CORE={name}"),
        ]
    };
    let sample = module.join("samples/digit");
    let text = printed(board, &sample, folder.path(), "zephyr.elf", with(core().name), None);
    assert_eq!(text, "this is a 7\n");
    // A core without a library is said.
    let other = tempfile::tempdir().expect("a folder");
    let done = configured(core(), core().options, &sample, other.path(), &with("cortex-m3")).output();
    let done = done.expect("cmake starts");
    assert!(
        !done.status.success()
            && said(&done)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains("this module has no library for the core"),
        "{}",
        said(&done)
    );
}

/// The library of the stand-in's chip is that of a core that a compiler is here for.
#[test]
fn an_esp_idf_project_links_the_component() {
    let Some(board) = prepared("an_esp_idf_project_links_the_component") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let component = folder.path().join("arenite");
    written(
        &files("esp-idf", &Libraries::from([("riscv32imc", library(core()))])),
        &component,
    );
    let defines = vec![format!("COMPONENT={}", component.display())];
    let example = component.join("examples/digit");
    let text = printed(
        board,
        &example,
        folder.path(),
        "arenite_digit.elf",
        defines,
        Some(&here().join("esp-idf")),
    );
    assert_eq!(text, "this is a 7\n");
}

#[test]
fn an_arduino_sketch_links_the_library() {
    let Some(board) = prepared("an_arduino_sketch_links_the_library") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, place) = (folder.path(), folder.path().join("Arenite"));
    written(
        &files("arduino", &Libraries::from([(core().name, library(core()))])),
        &place,
    );
    let properties = fs::read_to_string(place.join("library.properties")).expect("readable");
    let flags = properties
        .lines()
        .find_map(|line| line.strip_prefix("ldflags="))
        .expect("flags");
    let sketch = place.join("examples/Digit");
    let compiled = |compiler: &str, source: &Path, options: &[&str]| {
        let object = folder.join(source.file_name().expect("a name")).with_extension("o");
        let mut command = Command::new(compiler);
        command
            .args(core().options)
            .args(["-Os", "-Wall", "-Werror", "-ffunction-sections", "-c"])
            .args(options);
        command
            .arg("-I")
            .arg(place.join("src"))
            .arg("-I")
            .arg(&sketch)
            .arg("-I")
            .arg(here().join("arduino"));
        output(command.arg(source).arg("-o").arg(&object));
        object
    };
    // The prototypes and the include that the builder of Arduino adds; `main` calls the sketch.
    let text = fs::read_to_string(sketch.join("Digit.ino")).expect("readable");
    let main = folder.join("sketch.cpp");
    fs::write(
        &main,
        format!("#include <Arduino.h>\n{text}\nint main() {{ setup(); loop(); return 0; }}\n"),
    )
    .expect("written");
    let cpp = [
        "-std=gnu++17",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-threadsafe-statics",
    ];
    let objects = [
        compiled("arm-none-eabi-g++", &main, &cpp),
        compiled("arm-none-eabi-gcc", &sketch.join("digit.c"), &[]),
        compiled(
            "arm-none-eabi-gcc",
            &here().join("bare/start.c"),
            &["-DHAS_LIBC", "-Wno-unused-function"],
        ),
    ];
    let program = folder.join("sketch.elf");
    let mut link = Command::new("arm-none-eabi-gcc");
    link.args(core().options)
        .args(["-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections", "-T"]);
    link.arg(script(board, folder)).args(&objects);
    // As arduino-cli does for `-mfpu=fpv4-sp-d16 -mfloat-abi=hard` and `build.mcu=cortex-m4`.
    link.arg("-L")
        .arg(place.join("src/cortex-m4/fpv4-sp-d16-hard"))
        .arg(flags);
    output(link.arg("-o").arg(&program));
    assert_eq!(run(board, &program), "this is a 7\n");
}
