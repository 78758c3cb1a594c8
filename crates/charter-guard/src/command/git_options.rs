//! Options of `git` and of its commands; others are not known.

use super::options::Options;

/// Options in front of a command.
pub(super) const GLOBAL: Options = Options {
    flags: "pP",
    valued: "C",
    long: "no-pager paginate no-optional-locks literal-pathspecs no-replace-objects version help",
    long_valued: "",
};

/// Options of `git commit`.
pub(super) const COMMIT: Options = Options {
    flags: "asqvnze",
    valued: "mFtcC",
    long: "all amend no-edit signoff no-verify verify quiet verbose allow-empty allow-empty-message no-gpg-sign only no-status no-signoff reset-author short porcelain dry-run",
    long_valued: "message file author date trailer cleanup reuse-message template fixup",
};

/// Those with which it commits the whole index.
pub(super) const WHOLE_COMMIT: &[&str] = &[
    "a",
    "s",
    "q",
    "v",
    "n",
    "m",
    "F",
    "C",
    "all",
    "amend",
    "no-edit",
    "signoff",
    "no-signoff",
    "no-verify",
    "verify",
    "quiet",
    "verbose",
    "allow-empty",
    "allow-empty-message",
    "no-gpg-sign",
    "no-status",
    "reset-author",
    "message",
    "file",
    "author",
    "date",
    "trailer",
    "cleanup",
    "reuse-message",
];

/// Options of `git add`.
pub(super) const ADD: Options = Options {
    flags: "AunvfN",
    valued: "",
    long: "all update dry-run verbose force intent-to-add no-all ignore-removal renormalize ignore-errors refresh",
    long_valued: "chmod",
};

/// Options of `git checkout`, `git switch`, `git restore`, `git reset` and `git clean`.
pub(super) const CHECKOUT: Options = Options {
    flags: "fqt",
    valued: "bB",
    long: "force quiet track no-track detach progress no-progress guess no-guess",
    long_valued: "orphan",
};
pub(super) const SWITCH: Options = Options {
    flags: "fqtd",
    valued: "cC",
    long: "force discard-changes quiet track no-track detach progress no-progress guess no-guess",
    long_valued: "create force-create orphan",
};
pub(super) const RESTORE: Options = Options {
    flags: "qSW",
    valued: "s",
    long: "quiet progress no-progress staged worktree overlay no-overlay ignore-unmerged",
    long_valued: "source",
};
pub(super) const RESET: Options =
    Options { flags: "qN", valued: "", long: "quiet hard soft mixed merge keep intent-to-add", long_valued: "" };
pub(super) const CLEAN: Options =
    Options { flags: "dfqxXn", valued: "e", long: "force quiet dry-run", long_valued: "exclude" };

/// Options of `git push`, `git ls-remote` and `git clone`: without those that name a program.
pub(super) const PUSH: Options = Options {
    flags: "vqdnfu46",
    valued: "o",
    long: "verbose quiet all branches mirror delete tags dry-run porcelain force force-with-lease force-if-includes no-force-with-lease \
           thin no-thin set-upstream progress no-progress prune no-verify verify follow-tags no-follow-tags atomic ipv4 ipv6",
    long_valued: "repo push-option",
};
pub(super) const LS_REMOTE: Options = Options {
    flags: "qtbh",
    valued: "o",
    long: "quiet tags branches heads refs get-url exit-code symref",
    long_valued: "sort server-option",
};

/// Options of `git remote` in front of its command, and of those of its commands that read.
pub(super) const REMOTE: Options = Options { flags: "v", valued: "", long: "verbose", long_valued: "" };
pub(super) const REMOTE_READ: Options =
    Options { flags: "np", valued: "", long: "push all prune dry-run", long_valued: "" };

/// Options of `git config` with which it reads.
pub(super) const CONFIG: Options = Options {
    flags: "lz",
    valued: "f",
    long: "list get get-all get-regexp local global system worktree null name-only show-origin show-scope all regexp bool int path \
           includes no-includes",
    long_valued: "file type default value url",
};

/// Options of `git tag` that create one.
pub(super) const TAG: Options =
    Options { flags: "asf", valued: "mFu", long: "annotate sign force", long_valued: "message file local-user" };

/// Options of `git fetch` that change no branch of this repository.
pub(super) const FETCHING: &[&str] = &[
    "-a",
    "-p",
    "-q",
    "-t",
    "-v",
    "--all",
    "--no-tags",
    "--prune",
    "--quiet",
    "--tags",
    "--unshallow",
    "--verbose",
    "--dry-run",
];
