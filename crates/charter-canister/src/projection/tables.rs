//! The definitions of the tables.

use charter_kernel::Definition;
use charter_kernel::definition::Projection as Declared;

pub(super) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS transitions(
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  transition TEXT NOT NULL,
  PRIMARY KEY(seq, idx)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refusals(
  run TEXT NOT NULL,
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  type TEXT NOT NULL,
  by TEXT NOT NULL,
  code TEXT NOT NULL,
  rule TEXT
);
";

/// A table for a projection of the charter.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) of: String,
    /// Name of each column, and its JSON pointer into the data.
    pub(super) columns: Vec<(String, String)>,
    pub(super) insert: String,
}

/// Returns the tables that a charter declares. Only names that the kernel accepts get into SQL.
pub(super) fn tables(definition: &Definition) -> Vec<Table> {
    let usable = |(name, view): &(&String, &Declared)| {
        Declared::is_name(name)
            && view.columns.iter().all(|(column, path)| Declared::is_name(column) && Declared::is_path(path))
    };
    let table = |(name, view): (&String, &Declared)| {
        let columns: Vec<(String, String)> = view
            .columns
            .iter()
            .map(|(column, path)| (column.clone(), format!("/{}", path.replace('.', "/"))))
            .collect();
        let places = vec!["?"; columns.len().saturating_add(3)].join(", ");
        Table {
            name: name.clone(),
            of: view.of.clone(),
            insert: format!("INSERT INTO \"{name}\" VALUES({places})"),
            columns,
        }
    };
    definition.projections.iter().filter(usable).map(table).collect()
}

pub(super) fn create(table: &Table) -> String {
    let columns: String = table.columns.iter().map(|(name, _)| format!(", \"{name}\"")).collect();
    let name = &table.name;
    format!(
        "CREATE TABLE IF NOT EXISTS {name}(run TEXT NOT NULL, seq INTEGER PRIMARY KEY, at TEXT NOT NULL{columns});\n"
    )
}
