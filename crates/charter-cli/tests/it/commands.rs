//! Golden files of what the binary prints. `TRYCMD=overwrite` rewrites them; read the difference as
//! a user would.

#[test]
fn commands_print_what_the_golden_files_say() {
    trycmd::TestCases::new().case("tests/it/cmd/*.trycmd");
}
