//! charter-expr
