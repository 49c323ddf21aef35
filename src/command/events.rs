//! `windtunnel events`: a journal the way an operator reads it.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
    thread,
    time::Duration,
};

use windtunnel_core::JobId;
use windtunnel_reports::journal::{EventFilter, Lines, Record, Records, in_order, left_out};

use crate::{args::EventsArgs, failure::Failure, session::Session};

/// How often a growing file is looked at.
const LOOK: Duration = Duration::from_millis(200);

pub fn run(args: &EventsArgs, session: &Session) -> Result<(), Failure> {
    session.only_tables("events", "prints lines; the journal itself is JSON")?;
    let journals = in_order(&args.journals);
    let mut page = Page { lines: Lines::new(), begun: false };
    for (number, path) in (1..).zip(&journals) {
        let input = open(path)?;
        let input: Box<dyn Read> = match args.follow && number == journals.len() {
            true => Box::new(Growing { input, session }),
            false => input,
        };
        show(&mut page, path, BufReader::new(input), args, session)?;
    }
    left_out(&journals).iter().for_each(|remark| session.remark(remark));
    Ok(())
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path).map_err(|wrong| Failure::file("open", path, &wrong))?))
}

/// What is printed, over all files.
struct Page {
    lines: Lines,
    begun: bool,
}

fn show(
    Page { lines, begun }: &mut Page,
    path: &Path,
    input: impl BufRead,
    args: &EventsArgs,
    session: &Session,
) -> Result<(), Failure> {
    let filter = EventFilter { job: args.job.map(JobId), model: args.model.clone() };
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    let mut records = Records::new(input);
    for record in records.by_ref() {
        let record = record?;
        *begun |= matches!(record, Record::Header(_));
        if !*begun {
            let message = format!("{}: a journal begins with a header, found another record", path.display());
            return Err(Failure::BadInput(message));
        }
        let mut wanted = Vec::new();
        lines.record(&record, &mut |line| {
            if filter.takes(&line) {
                wanted.push(line);
            }
        });
        for line in wanted {
            writeln!(out, "{}", lines.print(&line))?;
        }
        if args.follow {
            out.flush()?;
        }
        if session.control.is_interrupted() {
            break;
        }
    }
    out.flush()?;
    for warning in records.warnings() {
        session.remark(&warning.to_string());
    }
    Ok(())
}

/// A file that is read on as it grows, until Ctrl-C.
struct Growing<'a> {
    input: Box<dyn Read>,
    session: &'a Session,
}

impl Read for Growing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.input.read(buffer)?;
            if count > 0 || self.session.control.is_interrupted() {
                return Ok(count);
            }
            thread::sleep(LOOK);
        }
    }
}
