//! One small destination as a process of its own, so that a test can kill it without a warning.
//!
//! `patient ADDRESS NAME`: answers every request with 200, `x-served-by: NAME` and a short body in one write; `/health`
//! likewise. Counts requests per path and prints one line `GET /path` each to standard output when `--print` is given.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let name = arguments.next().unwrap_or_else(|| "patient".to_owned());
    let print = arguments.next().is_some_and(|word| word == "--print");
    let listener = TcpListener::bind(address)?;
    println!("listening {}", listener.local_addr()?);
    for stream in listener.incoming() {
        let (stream, name) = (stream?, name.clone());
        std::thread::spawn(move || serve(stream, &name, print));
    }
    Ok(())
}

/// Answers until the peer closes or sends what is not a request.
fn serve(mut stream: TcpStream, name: &str, print: bool) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut buffer = Vec::new();
    let mut chunk = [0u8; 16 * 1024];
    loop {
        let head_end = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            let n = stream.read(&mut chunk).ok().filter(|&n| n > 0)?;
            buffer.extend_from_slice(&chunk[..n]);
        };
        let head = String::from_utf8_lossy(&buffer[..head_end]).to_ascii_lowercase();
        let length: usize =
            head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
        while buffer.len() < head_end + length {
            let n = stream.read(&mut chunk).ok().filter(|&n| n > 0)?;
            buffer.extend_from_slice(&chunk[..n]);
        }
        if print {
            println!("{}", head.lines().next().unwrap_or_default().trim_end_matches(" http/1.1"));
        }
        buffer.drain(..head_end + length);
        let body = format!("{name}\n");
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Served-By: {name}\r\nContent-Length: {}\r\n\r\n{}",
            body.len(),
            if head.starts_with("head ") { "" } else { &body }
        );
        stream.write_all(answer.as_bytes()).ok()?;
    }
}
