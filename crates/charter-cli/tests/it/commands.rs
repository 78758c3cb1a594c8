//! Golden files of the output of the binary. `TRYCMD=overwrite` rewrites them; read the diff as a
//! user would.

#[test]
fn commands_print_what_the_golden_files_say() {
    trycmd::TestCases::new().case("tests/it/cmd/*.trycmd");
}
