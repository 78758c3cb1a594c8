//! Options of the commands of `git` that only show something, each with its own: a letter of one is
//! a program or a file of another. Not in these lists is what starts a program (`-O` of `grep`,
//! `--ext-diff`), reads a file (`-f`, `-S` of `blame`, `-X` of `ls-files`) or writes one
//! (`--output`).

use super::options::Options;

const fn options(flags: &'static str, valued: &'static str, long: &'static str, long_valued: &'static str) -> Options {
    Options { flags, valued, long, long_valued }
}

/// Options of `log`, `show`, `diff` and what else walks commits or compares them.
const LOG: Options = options(
    "abcghimpqrstuvwzDEFPRW0123456789",
    "GSnlU?M?C?B?X?",
    "all stat shortstat numstat name-only name-status oneline graph decorate no-decorate cached staged word-diff color no-color \
     color-words patch no-patch summary branches tags remotes abbrev-commit no-abbrev-commit no-abbrev quiet merges no-merges \
     first-parent reverse follow no-renames find-renames find-copies find-copies-harder break-rewrites relative no-relative \
     ignored raw minimal patience histogram ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines \
     full-index binary check exit-code left-right cherry-pick cherry-mark cherry topo-order date-order author-date-order \
     simplify-by-decoration simplify-merges regexp-ignore-case all-match invert-grep basic-regexp extended-regexp fixed-strings \
     perl-regexp no-ext-diff no-textconv unified dirstat no-index function-context show-signature cc root full-history dense sparse \
     ancestry-path children parents left-only right-only boundary pretty format abbrev walk-reflogs compact-summary no-prefix \
     color-moved no-color-moved merge-base source notes no-notes mailmap use-mailmap no-mailmap ignore-missing objects count \
     no-walk no-commit-id always no-dual-color text ignore-submodules show-pulls date-order exclude-first-parent-only \
     no-diff-merges glob exclude line-prefix src-prefix dst-prefix inter-hunk-context diff-algorithm word-diff-regex stat-width \
     stat-name-width stat-count min-parents max-parents no-min-parents no-max-parents encoding relative-date",
    "max-count since until after before author committer grep diff-filter date skip creation-factor decorate-refs \
     decorate-refs-exclude",
);

/// The options of a command that shows something.
pub(super) fn of(command: &str) -> Options {
    match command {
        "grep" => options(
            "viwaIrEGFPnhHlLzocpWq0123456789",
            "eABCm",
            "cached no-index index untracked exclude-standard no-exclude-standard invert-match ignore-case word-regexp text \
             recursive no-recursive extended-regexp basic-regexp fixed-strings perl-regexp line-number column full-name \
             files-with-matches name-only files-without-match null only-matching count color no-color break heading \
             show-function function-context and or not all-match quiet no-textconv",
            "max-depth context before-context after-context threads max-count",
        ),
        "blame" | "annotate" => options(
            "bfnpctlsew",
            "LC?M?",
            "incremental root show-stats progress no-progress score-debug show-name show-number porcelain line-porcelain show-email \
             color-lines color-by-age minimal abbrev first-parent reverse no-textconv",
            "since until date ignore-rev",
        ),
        "status" => options(
            "vsbz",
            "u?M?",
            "verbose short branch show-stash no-show-stash ahead-behind no-ahead-behind porcelain long null untracked-files \
             ignored ignore-submodules column no-column no-renames renames find-renames",
            "",
        ),
        "shortlog" => options(
            "cnse",
            "w?",
            "committer numbered summary email all no-merges merges branches tags remotes first-parent format",
            "group since until after before author grep max-count",
        ),
        "rev-parse" => options(
            "q",
            "",
            "verify quiet short abbrev-ref symbolic symbolic-full-name all branches tags remotes glob show-toplevel git-dir \
             absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository \
             show-prefix show-cdup show-superproject-working-tree show-object-format path-format shared-index-path local-env-vars revs-only \
             no-revs flags no-flags default",
            "git-path",
        ),
        "describe" => options(
            "",
            "",
            "contains all tags long first-parent abbrev exact-match always dirty broken debug",
            "candidates match exclude",
        ),
        "ls-files" => options(
            "ztvfcdmoisku",
            "x",
            "cached deleted modified others ignored stage killed directory eol no-empty-directory unmerged resolve-undo \
             exclude-standard full-name error-unmatch abbrev deduplicate sparse debug",
            "exclude with-tree format",
        ),
        "ls-tree" => {
            options("drtzl", "", "long name-only name-status object-only full-name full-tree abbrev", "format")
        }
        "merge-base" => options("a", "", "all octopus independent is-ancestor fork-point", ""),
        "name-rev" => options("", "", "tags name-only all always no-undefined", "refs exclude"),
        "count-objects" => options("vH", "", "verbose human-readable", ""),
        "check-ignore" => options("qvnz", "", "quiet verbose non-matching no-index", ""),
        "check-attr" => options("az", "", "all cached", "source"),
        "for-each-ref" => options(
            "",
            "",
            "color ignore-case omit-empty contains no-contains merged no-merged",
            "count sort format points-at exclude",
        ),
        "show-ref" => options("qds", "", "heads branches tags verify head dereference hash abbrev quiet exists", ""),
        "cherry" => options("v", "", "verbose abbrev", ""),
        "cat-file" => options("epts", "", "", ""),
        "version" => options("", "", "build-options", ""),
        "help" => options("ag", "", "all guides", ""),
        "var" => options("l", "", "", ""),
        _ => LOG,
    }
}
