//! Variables of the environment that change what programs do.

/// Variables that may stand in front of a command: none of them names a program, a file or a
/// server.
const HARMLESS: &[&str] = &[
    "CI",
    "TZ",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLUMNS",
    "LINES",
    "DEBUG",
    "VERBOSE",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "NODE_ENV",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "DJANGO_DEBUG",
    "GIT_TERMINAL_PROMPT",
    "DEBIAN_FRONTEND",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "FORCE",
    "SEED",
    "PORT",
];

/// Variables that decide what is run, or where, and that may be part of the environment already.
const DECIDING: &[&str] = &[
    "PATH",
    "IFS",
    "HOME",
    "PWD",
    "OLDPWD",
    "CDPATH",
    "SHELL",
    "ENV",
    "TMPDIR",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "CC",
    "CXX",
    "LD",
    "AR",
    "PS4",
    "PROMPT_COMMAND",
    "FPATH",
    "ZDOTDIR",
    "DIRSTACK",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "UID",
    "EUID",
    "HISTFILE",
    "INPUTRC",
    "TERMINFO",
    "MANPAGER",
    "POSIXLY_CORRECT",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "MAKEFILES",
    "MAKEFLAGS",
    "REPORTTIME",
    "MODULE_PATH",
    "NULLCMD",
    "READNULLCMD",
    "GLOBIGNORE",
    "EXECIGNORE",
];

const DECIDING_STARTS: &[&str] = &[
    "BASH", "ZSH", "LD_", "DYLD_", "GIT_", "SSH_", "NODE_", "NPM_", "npm_", "PYTHON", "CARGO_", "RUST", "GO", "PIP_",
    "UV_", "XDG_", "CURL_", "WGET", "GREP_", "RIPGREP_", "LESS", "JAVA_", "MAVEN_", "GRADLE_", "DOCKER_", "GCC_",
    "SUDO_",
];

const DECIDING_ENDS: &[&str] = &[
    "PATH", "FLAGS", "_OPTIONS", "_OPTS", "_COMMAND", "_EDITOR", "_PAGER", "_PROXY", "_proxy", "_CONFIG", "_PRELOAD",
    "PATH_",
];

/// Whether the shell evaluates the value of a variable as a number.
pub(super) fn is_number(name: &str) -> bool {
    const NUMBERS: [&str; 12] = [
        "OPTIND",
        "OPTERR",
        "HISTSIZE",
        "HISTFILESIZE",
        "HISTCMD",
        "SRANDOM",
        "EPOCHSECONDS",
        "COLUMNS",
        "LINES",
        "TMOUT",
        "IGNOREEOF",
        "SHLVL",
    ];
    NUMBERS.contains(&name)
}

/// Whether a variable may stand in front of a command without changing what the command is.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("LC_")
}

/// Whether setting a variable of the shell may change what is run, because programs or the shell
/// itself read it.
pub(super) fn decides(name: &str) -> bool {
    // Other shells tie `path` and `PATH`.
    let upper = name.to_ascii_uppercase();
    !is_harmless(name)
        && (DECIDING.contains(&upper.as_str())
            || DECIDING_STARTS.iter().any(|start| name.starts_with(start))
            || DECIDING_ENDS.iter().any(|end| name.ends_with(end)))
}

/// Whether the name of a variable says that its value is a secret: `AWS_SECRET_ACCESS_KEY`,
/// `GITHUB_TOKEN`, `PGPASSWORD`, `DATABASE_URL`.
pub(super) fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 12] =
        ["KEY", "KEYS", "PASS", "PAT", "PRIVATE", "AUTH", "DSN", "COOKIE", "PWD", "JWT", "BEARER", "SIGNATURE"];
    const PARTS: [&str; 7] = ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY"];
    const ADDRESSES: [&str; 9] =
        ["DATABASE", "DB", "REDIS", "MONGO", "MONGODB", "AMQP", "RABBITMQ", "POSTGRES", "MYSQL"];
    let upper = name.to_ascii_uppercase();
    let words = || upper.split('_');
    let address = words().any(|word| matches!(word, "URL" | "URI")) && words().any(|word| ADDRESSES.contains(&word));
    !matches!(upper.as_str(), "PWD" | "OLDPWD")
        && (address || PARTS.iter().any(|part| upper.contains(part)) || words().any(|word| WORDS.contains(&word)))
}
