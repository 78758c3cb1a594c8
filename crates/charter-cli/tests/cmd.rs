//! Golden files of what the binary prints: `tests/cmd/*.trycmd`. Run with `TRYCMD=overwrite` to take over what it prints now, and
//! read it as a stranger would.

#[test]
fn commands_print_what_the_golden_files_say() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
