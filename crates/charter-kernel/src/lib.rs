//! charter-kernel
