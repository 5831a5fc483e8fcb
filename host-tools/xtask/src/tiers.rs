//! When each tier of the tests last passed as a whole: `tests/results/tiers.json`, of which the table in `docs/README.md` is made.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use arenite_host::{Error, Result, files};
use serde::{Deserialize, Serialize};

/// A tier's command after `cargo xtask`, and what it is.
pub const TIERS: [(&str, &str); 4] = [
    (
        "test",
        "lints, unit and end-to-end tests on the host and on boards, firmware, documents; what goes by turns by the commit's turn, as each change has it",
    ),
    ("test --all", "the same without turns"),
    ("long", "full-size networks, all int8 models on all boards, every count"),
    ("bench", "all counts measured again, results and tables rewritten"),
];

/// File in `tests/results`.
const FILE: &str = "tiers.json";

/// A whole run that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    /// The day, of UTC.
    pub date: String,
    /// Minutes that it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
    /// Minutes of processor, of all cores together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_minutes: Option<u64>,
    /// Results that it compared with independent oracles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<u64>,
}

impl Passed {
    /// A run of today, of which no more is known.
    pub fn today() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            date: date(since.as_secs() / 86_400),
            minutes: None,
            cpu_minutes: None,
            compared: None,
        }
    }
}

/// The last runs, by tier.
///
/// # Errors
/// [`arenite_host::ErrorKind::Io`], [`arenite_host::ErrorKind::Input`].
pub fn read(results: &Path) -> Result<BTreeMap<String, Passed>> {
    let path = results.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read the dates", &e))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("no dates: {e}")).in_file(&path))
}

/// Notes that `tier` has passed.
///
/// # Errors
/// As [`read`].
pub fn record(results: &Path, tier: &str, passed: Passed) -> Result<()> {
    let mut runs = read(results)?;
    runs.insert(tier.to_owned(), passed);
    let text = serde_json::to_string_pretty(&runs).unwrap_or_default() + "\n";
    files::write(&results.join(FILE), text.as_bytes())
}

/// The last runs as a table.
pub fn table(runs: &BTreeMap<String, Passed>) -> String {
    let mut text = "| `cargo xtask …` | what | last passed | minutes | CPU minutes | comparisons with oracles |\n\
                    | --- | --- | --- | --: | --: | --: |\n"
        .to_owned();
    let number = |of: Option<u64>| of.map_or("-".to_owned(), |number| number.to_string());
    for (tier, about) in TIERS {
        let run = runs.get(tier);
        let date = run.map_or("-", |run| run.date.as_str());
        let figures = run.map_or([None; 3], |run| [run.minutes, run.cpu_minutes, run.compared]);
        let [minutes, cpu, compared] = figures.map(number);
        text += &format!("| `{tier}` | {about} | {date} | {minutes} | {cpu} | {compared} |\n");
    }
    text
}

/// The Gregorian date of a day after 1970-01-01. Years begin in March here, so that the leap day ends one.
pub(crate) fn date(days: u64) -> String {
    const ERA: u64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let in_month = day - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{in_month:02}", era * 400 + year + after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_454, "2026-01-01"),
            (20_777, "2026-11-20"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn a_tier_is_recorded_and_the_others_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(FILE), "{\"long\": {\"date\": \"2000-02-29\"}}").expect("written");
        let run = Passed {
            minutes: Some(61),
            compared: Some(9000),
            ..Passed::today()
        };
        record(folder.path(), "test", run.clone()).expect("recorded");
        let runs = read(folder.path()).expect("dates");
        assert_eq!(runs["long"].date, "2000-02-29");
        assert!(run.date.as_str() > "2026");
        assert_eq!(runs["test"], run);
        let row = format!("| {} | 61 | - | 9000 |", run.date);
        assert!(table(&runs).contains(&row), "{}", table(&runs));
    }
}
