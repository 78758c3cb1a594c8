//! Options of `git` and of its commands; others are not known.

use super::options::Options;

/// Options in front of a command.
pub(super) const GLOBAL: Options = Options {
    flags: "pP",
    valued: "C",
    long: "no-pager paginate no-optional-locks literal-pathspecs no-replace-objects version help",
    long_valued: "",
};

/// Options of commands that show something.
pub(super) const SHOW: Options = Options {
    flags: "abcdefghilmnpqrstuvwxzABCDEFHLMPRSTVWXYZ0123456789",
    valued: "GSUn",
    long: "all stat shortstat numstat name-only name-status oneline graph decorate no-decorate cached staged word-diff color \
           no-color patch no-patch summary short long branch branches tags remotes porcelain show-toplevel git-dir is-inside-work-tree \
           abbrev-ref abbrev-commit symbolic-full-name verify quiet merges no-merges first-parent reverse follow no-renames \
           find-renames relative others modified deleted exclude-standard count is-ancestor ignored untracked-files show-stash \
           column no-column raw minimal patience histogram ignore-all-space ignore-space-change ignore-blank-lines full-index \
           binary check exit-code left-right cherry-pick topo-order date-order simplify-by-decoration dirty always exact-match \
           contains merged no-merged list verbose ignore-case no-ext-diff no-textconv unified dirstat ahead-behind renames \
           error-unmatch stage unmerged full-name line-number show-function extended-regexp fixed-strings perl-regexp \
           files-with-matches is-bare-repository show-prefix show-cdup absolute-git-dir no-index name-rev function-context \
           show-signature cc root full-history ancestry-path children parents left-only right-only boundary pretty abbrev \
           walk-reflogs",
    long_valued: "format max-count since until after before author committer grep diff-filter date points-at sort skip",
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

/// Options of `git tag` that create one.
pub(super) const TAG: Options =
    Options { flags: "asf", valued: "mFu", long: "annotate sign force", long_valued: "message file local-user" };
