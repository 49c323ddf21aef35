//! Results as JUnit XML, which every CI system shows.

use std::path::Path;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::Verdict;
use crate::{
    failure::Failure,
    output::{Readers, replace},
};

/// Writes the results of a test run.
pub fn write(path: &Path, verdicts: &[Verdict]) -> Result<(), Failure> {
    let mut suite = TestSuite::new("scenarios");
    suite.add_test_cases(verdicts.iter().map(case));
    let mut report = Report::new("windtunnel");
    report.add_test_suite(suite);
    let text = report.to_string().map_err(|wrong| Failure::BadInput(format!("write JUnit XML: {wrong}")))?;
    replace(path, &text, Readers::All)
}

fn case(verdict: &Verdict) -> TestCase {
    let mut status = TestCaseStatus::success();
    if !verdict.passed() {
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(verdict.failures.join("\n"));
    }
    let mut case = TestCase::new(verdict.name.clone(), status);
    case.set_classname(verdict.file.display().to_string());
    case.set_time(verdict.took);
    case
}
