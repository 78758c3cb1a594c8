//! System calls that a confined command does not make: those by which it could reach other
//! processes, or get around the confinement of its files.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule,
};

use crate::confine::Unconfined;

/// Refused whatever their arguments are. Without `socket` there is nobody to connect to. What is
/// done by `io_uring` passes no filter.
const REFUSED: [i64; 25] = [
    libc::SYS_socket,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_acct,
];

/// Requests to a terminal that type into it.
const TYPES: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */];

/// From now on, this thread and the processes that it starts do not make these calls; they fail
/// with `EPERM`.
pub(crate) fn forbid() -> Result<(), Unconfined> {
    let lacking = |error: &dyn std::fmt::Display| Unconfined(format!("seccomp is needed: {error}"));
    let program = program().map_err(|e| lacking(&e))?;
    seccompiler::apply_filter(&program).map_err(|e| lacking(&e))
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<Rule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let of = |argument, mask, value| Condition::new(argument, Length::Dword, Compare::MaskedEq(mask), value);
    let mut types = Vec::new();
    for request in TYPES {
        types.push(Rule::new(vec![of(1, 0xffff_ffff, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, types);
    // A pair of sockets without connection could still be connected to somebody.
    let datagrams = Rule::new(vec![of(1, 0xf, 2)?])?;
    let raw = Rule::new(vec![of(1, 0xf, 3)?])?;
    rules.insert(libc::SYS_socketpair, vec![datagrams, raw]);
    // The same calls with 32-bit pointers have numbers of their own.
    #[cfg(target_arch = "x86_64")]
    {
        const X32: i64 = 0x4000_0000;
        let mut others: BTreeMap<i64, Vec<Rule>> =
            rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        for (call, of) in [(514, libc::SYS_ioctl), (521, 0), (528, 0), (539, 0), (540, 0)] {
            others.insert(call | X32, rules.get(&of).cloned().unwrap_or_default());
        }
        rules.extend(others);
    }
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?;
    filter.try_into()
}
