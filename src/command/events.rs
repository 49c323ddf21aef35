//! `windtunnel events`: a journal the way an operator reads it.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    thread,
    time::Duration,
};

use windtunnel_core::JobId;
use windtunnel_reports::journal::{EventFilter, Lines, Record, Records};

use crate::{args::EventsArgs, failure::Failure, session::Session};

/// How often a growing file is looked at.
const LOOK: Duration = Duration::from_millis(200);

pub fn run(args: &EventsArgs, session: &Session) -> Result<(), Failure> {
    session.only_tables("events", "prints lines; the journal itself is JSON")?;
    let input: Box<dyn Read> = if args.journal.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&args.journal).map_err(|wrong| Failure::file("open", &args.journal, &wrong))?)
    };
    if args.follow {
        show(BufReader::new(Growing { input, session }), args, session)
    } else {
        show(BufReader::new(input), args, session)
    }
}

fn show(input: impl BufRead, args: &EventsArgs, session: &Session) -> Result<(), Failure> {
    let filter = EventFilter { job: args.job.map(JobId), model: args.model.clone() };
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    let mut lines = Lines::new();
    let mut records = Records::new(input);
    let mut begun = false;
    for record in records.by_ref() {
        let record = record?;
        begun |= matches!(record, Record::Header(_));
        if !begun {
            let message = format!("{}: a journal begins with a header, found another record", args.journal.display());
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
