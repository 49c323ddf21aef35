//! The marginal standard error rule for the length of a warm-up.

/// How many leading values to drop so that the standard error of the mean of the rest, as if they were independent, is
/// least: the d that minimises sum((x - mean)^2) / (n - d)^2 over the values from d on (White 1997, MSER; on means of five,
/// MSER-5). At least five values are kept, since a handful can agree by chance.
pub fn mser_cut(values: &[f64]) -> usize {
    const KEPT: usize = 5;
    let mut best = (f64::INFINITY, 0);
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (dropped, &value) in values.iter().enumerate().rev() {
        // Welford 1962: running mean and sum of squared deviations.
        count += 1.0;
        let off = value - mean;
        mean += off / count;
        squares += off * (value - mean);
        let statistic = squares / (count * count);
        if count >= KEPT as f64 && statistic <= best.0 {
            best = (statistic, dropped);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_definition(values: &[f64]) -> usize {
        let statistic = |d: usize| {
            let rest = &values[d..];
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            rest.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
        };
        (0..=values.len() - 5).min_by(|&a, &b| statistic(a).total_cmp(&statistic(b))).unwrap()
    }

    #[test]
    fn it_minimises_what_it_is_defined_by() {
        let noise = |i: u64| ((i * 2_654_435_761) % 1_000) as f64 / 1_000.0;
        for start in [0.0, 3.0, 50.0] {
            let values: Vec<f64> = (0..200u64).map(|i| start * (-(i as f64) / 15.0).exp() + noise(i)).collect();
            assert_eq!(mser_cut(&values), by_definition(&values), "start {start}");
        }
    }

    #[test]
    fn equal_values_lose_nothing() {
        assert_eq!(mser_cut(&[4.0; 50]), 0);
        assert_eq!(mser_cut(&[]), 0);
    }
}
