//! `charter test`: runs scenarios, and reports what they do not cover.

use std::path::{Path, PathBuf};

use charter_format::scenario::{ScenarioFile, is_scenario_file, read_scenarios};
use charter_format::{Diagnostic, Severity, Span};
use serde_json::{Value as Json, json};

use crate::bundled;
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::text::count;
use crate::load::{Loaded, Source, compile, find, plain, read, text_of};
use charter_scenario::runner::{
    Cover, ScenarioResult, check_roles, compile_expressions, gaps, run as run_scenario, unseen_codes,
};

/// Runs the scenarios of charters.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Charters (with the folder `scenarios` next to them), folders of charters, scenario files, or
    /// names of bundled charters
    #[arg(required = true, value_name = "CHARTER")]
    what: Vec<String>,
    /// Show what no scenario covers, with skeletons of scenarios for it
    #[arg(long)]
    cover: bool,
}

/// A charter and the scenario files that test it.
struct Suite {
    charter: Source,
    files: Vec<Source>,
}

/// Runs the command.
///
/// # Errors
/// A charter or a scenario file cannot be read.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut suites: Vec<Suite> = Vec::new();
    for what in &args.what {
        for suite in suites_of(what)? {
            // Several scenario files of one charter form one suite.
            match suites.iter_mut().find(|s| s.charter.name == suite.charter.name) {
                Some(known) => known.files.extend(suite.files),
                None => suites.push(suite),
            }
        }
    }
    let mut report = Report::new(machine_output, Paint(io.color_out));
    for suite in suites {
        report.suite(suite, args.cover, io)?;
    }
    report.end(io)
}

fn suites_of(what: &str) -> Result<Vec<Suite>, Failure> {
    let path = Path::new(what);
    if path.is_dir() {
        if path.join("charter.yaml").is_file() {
            return Ok(vec![beside(&path.join("charter.yaml"))?]);
        }
        let charter = path.parent().map(|above| above.join("charter.yaml"));
        if path.file_name().is_some_and(|name| name == "scenarios")
            && let Some(charter) = charter.filter(|c| c.is_file())
        {
            return Ok(vec![beside(&charter)?]);
        }
        let charters: Vec<PathBuf> = entries(path)?
            .into_iter()
            .map(|entry| entry.join("charter.yaml"))
            .filter(|charter| charter.is_file())
            .collect();
        if !charters.is_empty() {
            return charters.iter().map(|charter| beside(charter)).collect();
        }
    }
    if path.is_file() {
        let source = find(what)?;
        if is_scenario_file(&source.text, &source.name) {
            return Ok(vec![of_file(source, path)?]);
        }
        return Ok(vec![beside(path)?]);
    }
    // The name is a bundled charter, or an error.
    let charter = find(what)?;
    let bundled = bundled::find(what).map(|b| b.scenarios).unwrap_or_default();
    let files = bundled.iter().map(|(name, text)| Source {
        name: format!("charters/{what}/scenarios/{name}"),
        path: None,
        text: (*text).to_owned(),
    });
    Ok(vec![Suite { charter, files: files.collect() }])
}

/// Returns a charter with the scenarios in the folder next to it.
fn beside(charter: &Path) -> Result<Suite, Failure> {
    let folder = charter.with_file_name("scenarios");
    let mut files = Vec::new();
    if folder.is_dir() {
        for path in entries(&folder)? {
            let known = |e: &std::ffi::OsStr| ["yaml", "yml", "json"].iter().any(|k| e == *k);
            if path.is_file() && path.extension().is_some_and(known) {
                files.push(source(&path)?);
            }
        }
    }
    Ok(Suite { charter: source(charter)?, files })
}

/// Returns a scenario file with the charter that it names, or with the charter next to its folder.
fn of_file(file: Source, path: &Path) -> Result<Suite, Failure> {
    let read = read_scenarios(&file.text, &file.name);
    let named = read.map_err(|e| Failure::Source(Box::new(e)))?.charter;
    let folder = path.parent().unwrap_or(Path::new("."));
    let charter = match named {
        Some(named) if folder.join(&named).exists() => find(&folder.join(&named).display().to_string())?,
        Some(named) => find(&named)?,
        None => {
            let above = folder.parent().filter(|p| !p.as_os_str().is_empty());
            let above = above.map_or_else(|| folder.join(".."), Path::to_owned);
            let places = [above.join("charter.yaml"), folder.join("charter.yaml")];
            match places.iter().find(|place| place.is_file()) {
                Some(place) => source(place)?,
                None => {
                    return Err(Failure::with_help(
                        format!("`{}` does not name the charter that it tests", file.name),
                        "add the key `charter`: a path relative to this file, or the name of a bundled charter",
                    ));
                }
            }
        }
    };
    Ok(Suite { charter, files: vec![file] })
}

fn source(path: &Path) -> Result<Source, Failure> {
    Ok(Source { name: path.display().to_string(), path: Some(path.to_owned()), text: text_of(path)? })
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read `{}`: {}", folder.display(), plain(&e)));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        paths.push(entry.map_err(cannot)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The results so far.
struct Report {
    machine_output: bool,
    paint: Paint,
    passed: usize,
    failed: usize,
    scenarios: Vec<Json>,
    covers: Vec<Json>,
}

impl Report {
    fn new(machine_output: bool, paint: Paint) -> Report {
        Report { machine_output, paint, passed: 0, failed: 0, scenarios: Vec::new(), covers: Vec::new() }
    }

    fn suite(&mut self, suite: Suite, show_cover: bool, io: &mut Io<'_>) -> Result<(), Failure> {
        let loaded = compile(read(suite.charter)?)?;
        if !self.machine_output {
            writeln!(io.out, "{}", self.paint.strong(&loaded.name))?;
        }
        let mut cover = Cover::default();
        for source in suite.files {
            let file = read_scenarios(&source.text, &source.name).map_err(|e| Failure::Source(Box::new(e)))?;
            self.file(&file, &loaded, &mut cover, io)?;
        }
        if show_cover {
            self.cover(&loaded, &cover, io)?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        file: &ScenarioFile,
        loaded: &Loaded,
        cover: &mut Cover,
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        check_roles(file, &loaded.document.definition).map_err(Failure::Source)?;
        let expressions = compile_expressions(file).map_err(Failure::Source)?;
        for scenario in &file.scenarios {
            let result = run_scenario(file, scenario, &expressions, &loaded.machine, cover);
            match result.failure {
                None => self.passed += 1,
                Some(_) => self.failed += 1,
            }
            if self.machine_output {
                let mut line = json!({
                    "charter": loaded.machine.definition().id,
                    "file": file.name,
                    "name": scenario.name,
                    "passed": result.failure.is_none(),
                    "steps": result.steps,
                });
                if let (Some(failure), Json::Object(line)) = (&result.failure, &mut line) {
                    let failure = serde_json::to_value(failure).unwrap_or_default();
                    line.insert("failure".into(), failure);
                }
                self.scenarios.push(line);
            } else {
                self.show(file, &scenario.name, &result, io)?;
            }
        }
        Ok(())
    }

    fn show(&self, file: &ScenarioFile, name: &str, result: &ScenarioResult, io: &mut Io<'_>) -> Result<(), Failure> {
        match &result.failure {
            None => writeln!(
                io.out,
                "  {}   {name} {}",
                self.paint.good("ok"),
                self.paint.faint(&format!("({})", count(result.steps as u64, "step")))
            )?,
            Some(failure) => {
                writeln!(io.out, "  {} {name}", self.paint.error("FAIL"))?;
                let text = failure.render(&file.source, &file.name, self.paint.0);
                writeln!(io.out, "{text}\n")?;
            }
        }
        Ok(())
    }

    fn cover(&mut self, loaded: &Loaded, cover: &Cover, io: &mut Io<'_>) -> Result<(), Failure> {
        let definition = loaded.machine.definition();
        let all = loaded.machine.transitions().count();
        let gaps = gaps(&loaded.machine, cover);
        let codes = unseen_codes(definition, cover);
        let interlocks = definition.interlocks.iter().map(|lock| lock.id.as_str());
        let interlocks: Vec<&str> = interlocks.filter(|id| !cover.has_interlocked(id)).collect();
        if self.machine_output {
            let line = |at: &str| place(loaded, at).line;
            let open: Vec<Json> = gaps
                .iter()
                .map(|gap| {
                    json!({
                        "machine": gap.machine,
                        "transition": gap.transition,
                        "line": line(&gap.at),
                        "proposal": gap.proposal,
                    })
                })
                .collect();
            self.covers.push(json!({
                "charter": definition.id,
                "transitions": all,
                "taken": all - gaps.len(),
                "uncovered": open,
                "codes": codes,
                "interlocks": interlocks,
            }));
            return Ok(());
        }
        let taken = all - gaps.len();
        writeln!(io.out, "  {taken} of {all} transitions taken")?;
        if !codes.is_empty() {
            writeln!(io.out, "  refusal codes never seen: {}", codes.join(", "))?;
        }
        if !interlocks.is_empty() {
            let list = interlocks.join(", ");
            writeln!(io.out, "  interlocks that never refused an event: {list}")?;
        }
        for gap in gaps {
            let of = match gap.machine.as_str() {
                "root" => String::new(),
                machine => format!(" of `{machine}`"),
            };
            let place = place(loaded, &gap.at);
            let file = place.file.as_ref().map_or(&loaded.name, |file| &file.name);
            let name = self.paint.warning(&gap.transition);
            writeln!(io.out, "\n  never taken: {name}{of} ({file}:{})", place.line)?;
            for line in gap.proposal.lines() {
                writeln!(io.out, "    {line}")?;
            }
        }
        Ok(())
    }

    fn end(self, io: &mut Io<'_>) -> Result<Exit, Failure> {
        // Without scenarios, nothing was tested.
        let exit = match (self.failed, self.passed) {
            (0, 1..) => Exit::Yes,
            _ => Exit::No,
        };
        if self.machine_output {
            let mut all = json!({
                "scenarios": self.scenarios,
                "passed": self.passed,
                "failed": self.failed,
            });
            if let (false, Json::Object(all)) = (self.covers.is_empty(), &mut all) {
                all.insert("cover".into(), Json::Array(self.covers));
            }
            writeln!(io.out, "{all}")?;
            return Ok(exit);
        }
        let count = self.passed + self.failed;
        let scenarios = if count == 1 { "scenario" } else { "scenarios" };
        match self.failed {
            0 if count == 0 => {
                writeln!(io.out, "no scenarios found: put them in a folder `scenarios` next to the charter")?
            }
            0 => writeln!(io.out, "{count} {scenarios}, {}", self.paint.good("all passed"))?,
            failed => {
                let failed = self.paint.error(&format!("{failed} failed"));
                writeln!(io.out, "{count} {scenarios}, {failed}")?;
            }
        }
        Ok(exit)
    }
}

/// Finds where the value at JSON pointer `at` of the core form is written in the charter's source.
fn place(loaded: &Loaded, at: &str) -> Diagnostic {
    let found = Diagnostic::new(Severity::Warning, "uncovered", Span::default(), String::new());
    loaded.document.placed(at, None, found)
}
