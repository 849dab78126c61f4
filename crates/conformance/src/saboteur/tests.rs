use super::*;

#[test]
fn every_fault_has_a_name_that_is_read_back() {
    for &fault in Fault::ALL {
        assert_eq!(fault.to_string().parse(), Ok(fault));
        assert!(fault.sentence().ends_with('.'), "{fault}");
    }
    let error = "off-by-one".parse::<Fault>().expect_err("no such fault");
    assert!(error.starts_with("no fault is called \"off-by-one\"; there are off-by-ten-tolerances, "), "{error}");
}

#[cfg(feature = "suite")]
mod suite {
    use super::*;
    use crate::suite::{self, Options};

    #[test]
    fn without_a_fault_the_wrapper_is_as_good_as_what_it_wraps() -> Result<(), String> {
        let cpu = backend_cpu::device();
        let options = Options { cases: 1500, ..Options::default() };
        let failed = |device: &Device| -> Result<Vec<String>, String> {
            let report = suite::run(device, &options, |_, _| {})?;
            Ok(report.failures.iter().map(|failure| failure.case.clone()).collect())
        };
        assert_eq!(failed(&wrapped(&cpu, None))?, failed(&cpu)?);
        Ok(())
    }

    #[test]
    fn the_suite_notices_every_fault() -> Result<(), String> {
        let cpu = backend_cpu::device();
        let start = std::time::Instant::now();
        let kills = run(&cpu, &Options::default(), |kill| {
            let by = kill.killed_by.as_ref().map_or("nothing".to_string(), |f| format!("{}: {f}", f.check));
            println!("{:24} {:6} cases {:.1?} {by}", kill.fault.name(), kill.cases, start.elapsed());
        })?;
        let alive: Vec<Fault> = kills.iter().filter(|kill| kill.killed_by.is_none()).map(|kill| kill.fault).collect();
        assert!(alive.is_empty(), "the suite does not notice {alive:?}");
        Ok(())
    }
}
