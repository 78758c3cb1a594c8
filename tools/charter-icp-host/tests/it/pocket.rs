//! PocketIC as the second host: the error if its server is missing. With the server, every test
//! with `each_host` runs on it.
#![cfg(feature = "pocket-ic")]

use charter_icp_host::PocketHost;

#[test]
fn a_missing_server_is_reported() {
    // The test reads the variable and does not set it, because tests of one process share it.
    match std::env::var_os("POCKET_IC_BIN") {
        None => {
            let told = PocketHost::new().err().unwrap().to_string();
            assert!(told.starts_with("`POCKET_IC_BIN` is not set: it must name the program `pocket-ic`"), "{told}");
        }
        Some(path) if !std::path::Path::new(&path).is_file() => {
            let told = PocketHost::new().err().unwrap().to_string();
            assert!(told.contains("which does not exist"), "{told}");
        }
        Some(_) => assert!(PocketHost::new().is_ok()),
    }
}
