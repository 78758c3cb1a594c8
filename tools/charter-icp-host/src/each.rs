//! Runs a test on every host.

use crate::host::Host;
use crate::local::LocalHost;

/// Error for a requested host that is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoHost(pub(crate) String);

/// Runs a test on a new [`LocalHost`] and, with the feature `pocket-ic` and `POCKET_IC_BIN` set,
/// also on a new PocketIC.
///
/// ```
/// use charter_icp_host::{Principal, each_host};
/// each_host(|host| {
///     let ana = Principal::from_slice(b"ana");
///     let canister = host.create(&[ana]).unwrap();
///     assert_eq!(host.controllers(canister).unwrap(), [ana], "{}", host.name());
/// })?;
/// # Ok::<(), charter_icp_host::NoHost>(())
/// ```
///
/// # Errors
/// `POCKET_IC_BIN` is set and does not name a PocketIC server.
pub fn each_host(mut test: impl FnMut(&mut dyn Host)) -> Result<(), NoHost> {
    test(&mut LocalHost::new());
    #[cfg(feature = "pocket-ic")]
    if std::env::var_os(crate::pocket::VARIABLE).is_some() {
        test(&mut crate::PocketHost::new()?);
    }
    Ok(())
}
