//! Breaches that are noted while the program goes on.

use super::*;

#[test]
fn recording_goes_on_with_the_candidates_result() -> Result<()> {
    let (device, log, folder) = watched(&spoilt_op("exp"), true);
    let x = ramp(&[3], &device)?;
    let right = ramp(&[3], &cpu())?.exp()?.to_vec::<f32>()?;
    for _ in 0..4 {
        let y = x.exp()?.to_vec::<f32>()?;
        assert_eq!(y, [right[0], right[1], right[2] + 0.25]);
    }
    // What follows is judged from what the candidate has: not wrong again.
    x.exp()?.mul(2.0)?;
    ramp(&[2, 2], &device)?.exp()?;
    let findings = log.findings();
    assert_eq!(findings.iter().map(|f| (&*f.op, f.n)).collect::<Vec<_>>(), [("exp", 5), ("exp", 1)]);
    assert!(findings[1].text.contains("element [1, 1] is ") && findings[1].inputs.len() == 1);
    let exp = log.ops()["exp"];
    assert_eq!((exp.n, exp.n_breaches, exp.n_identical), (6, 6, 0));
    assert_eq!((log.ops()["mul"].n_breaches, log.total().n_breaches), (0, 6));
    // One file for each kind of breach, however often.
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
    assert!(log.to_string().contains("breach, 5 times: exp: sim:0 breaks the contract: element [2]"), "{log}");
    Ok(())
}

#[test]
fn a_log_is_shared_and_outlives_its_device() -> Result<()> {
    let (device, log, _folder) = watched(&spoilt_op("exp"), true);
    let clone = log.clone();
    ramp(&[3], &device)?.exp()?;
    drop((device, log));
    assert_eq!(clone.total().n_breaches, 1);
    Ok(())
}
