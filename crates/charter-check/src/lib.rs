//! charter-check
