//! Recognises printed results and summaries of the tools. These lack the readings and cannot be imported.

use super::Format;

/// The number of lines that are searched.
const SEARCHED: usize = 10_000;

/// Returns the tool that wrote this text.
pub(super) fn tool_of(text: &str) -> Option<Format> {
    text.lines().take(SEARCHED).find_map(of_line).or_else(|| {
        // In AsciiDoc each cell has a line.
        (text.starts_with("[cols=") && text.contains("| Command")).then_some(Format::Hyperfine)
    })
}

fn of_line(line: &str) -> Option<Format> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let joined = words.join(" ");
    let starts = |beginning: &str| joined.starts_with(beginning);
    let any = |beginnings: &[&str]| beginnings.iter().any(|beginning| starts(beginning));
    if any(&["command,mean,stddev", "| Command | Mean", "Time (mean ± σ):", "Time (abs ≡):"]) {
        Some(Format::Hyperfine)
    } else if any(&["Benchmark Time CPU", "name,iterations,real_time,cpu_time,"]) {
        Some(Format::GoogleBenchmark)
    } else if starts("Name (time in ") || joined.contains("min,max,mean,stddev,median,iqr,outliers") {
        Some(Format::PytestBenchmark)
    } else if any(&["# JMH version:", "\"Benchmark\",\"Mode\",\"Threads\""])
        || (starts("Benchmark ") && joined.contains(" Mode Cnt Score "))
    {
        Some(Format::Jmh)
    } else if words.windows(2).any(|pair| pair[0] == "time:" && pair[1].starts_with('[')) {
        Some(Format::CriterionRs)
    } else if starts("time ") && joined.contains(" (") && joined.contains(" .. ") {
        Some(Format::Criterion)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_prints_names_the_tool() {
        // The beginnings of outputs of hyperfine 1.15, google-benchmark 1.7, pytest-benchmark 5.3, JMH 1.37,
        // criterion.rs 0.5 and criterion 1.5.
        let outputs = [
            (
                Format::Hyperfine,
                "command,mean,stddev,median,user,system,min,max\ntrue,0.001,0.001,0.0006,0.0005,0,0.0005,0.003\n",
            ),
            (
                Format::Hyperfine,
                "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|---:|---:|---:|\n",
            ),
            (
                Format::Hyperfine,
                "| Command  |  Mean [ms] |  Min [ms] |  Max [ms] |  Relative |\n|--+--+--+--+--|\n",
            ),
            (Format::Hyperfine, "[cols=\"<,>,>,>,>\"]\n|===\n| Command \n| Mean [ms] \n"),
            (
                Format::Hyperfine,
                "Benchmark 1: true\n  Time (mean ± σ):       1.2 ms ±   1.2 ms    [User: 0.6 ms, System: 0.0 ms]\n",
            ),
            (
                Format::GoogleBenchmark,
                "Run on (2 X 2000 MHz CPU s)\n----\nBenchmark           Time             CPU   Iterations\n----\n",
            ),
            (Format::GoogleBenchmark, "name,iterations,real_time,cpu_time,time_unit,bytes_per_second\n"),
            (
                Format::PytestBenchmark,
                "--- benchmark: 2 tests ---\nName (time in ns)       Min          Max     Mean\n",
            ),
            (
                Format::PytestBenchmark,
                "name,param:n,min,max,mean,stddev,median,iqr,outliers,ops,rounds,iterations\n",
            ),
            (Format::Jmh, "# JMH version: 1.37\n# VM version: JDK 17.0.15\n"),
            (
                Format::Jmh,
                "Benchmark                    (n)       (s)    Mode    Cnt         Score          Error   Units\n",
            ),
            (Format::Jmh, "\"Benchmark\",\"Mode\",\"Threads\",\"Samples\",\"Score\"\n"),
            (Format::CriterionRs, "plain                   time:   [666.16 ps 815.57 ps 932.36 ps]\n"),
            (
                Format::Criterion,
                "benchmarking fib/9\ntime                 197.4 ns   (196.4 ns .. 198.6 ns)\n",
            ),
        ];
        for (tool, output) in outputs {
            assert_eq!(super::super::recognise(output), None, "{output}");
            assert_eq!(tool_of(output), Some(tool), "{output}");
        }
        assert_eq!(tool_of("Dear all,\nthe time of the talk is 10:00 (room 3).\n"), None);
    }
}
