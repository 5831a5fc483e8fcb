//! How programs that run models answer their request, and what they record when they end early; each gives the exit status.

use core::fmt::{Debug, Display};

use arenite_protocol::{Command, During, PROTOCOL_VERSION, Record, Request, Text, exit};

use crate::exchange::{Exchange, ExchangeError};
use crate::memory::OutOfMemory;

/// Does the one request of a program, if it is one that the program serves; an error is the exit status of what has been recorded.
pub fn answer<R>(
    exchange: &mut Exchange,
    served: impl FnOnce(Command) -> Option<R>,
    work: impl FnOnce(&mut Exchange, &R) -> Result<(), i32>,
) -> i32 {
    let request = match exchange.request() {
        Ok(Request {
            version: PROTOCOL_VERSION,
            command,
        }) => served(command),
        Ok(_) => None,
        Err(error) => return file_failed(exchange, error),
    };
    let Some(request) = request else {
        exchange.record(&Record::BadRequest {
            version: PROTOCOL_VERSION,
        });
        return exit::REFUSED;
    };
    match work(exchange, &request) {
        Ok(()) => exit::DONE,
        Err(status) => status,
    }
}

/// Records what the runtime refused, and why.
pub fn refused(exchange: &mut Exchange, during: During, error: &(impl Debug + Display)) -> i32 {
    let (name, text) = (Text::of(format_args!("{error:?}")), Text::of(error));
    let name = name.as_str().split([' ', '{', '(']).next().unwrap_or_default();
    exchange.record(&Record::Refused {
        during,
        name,
        text: text.as_str(),
    });
    exit::REFUSED
}

/// Records that there is no room.
pub fn out_of_memory(
    exchange: &mut Exchange,
    OutOfMemory {
        needed,
        available,
        purpose,
    }: OutOfMemory,
) -> i32 {
    exchange.record(&Record::OutOfMemory {
        needed,
        available,
        purpose,
    });
    exit::REFUSED
}

/// Records a file that could not serve.
pub fn file_failed(exchange: &mut Exchange, error: ExchangeError) -> i32 {
    defmt::error!("exchange: {}", error);
    exchange.record(&Record::Io {
        file: error.file,
        wanted: error.wanted as u64,
        got: error.got as u64,
    });
    exit::IO
}
