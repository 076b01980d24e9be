//! pgbouncer in front of a PostgreSQL server: what many teams have in between.

use std::fs;
use std::net::TcpStream;
use std::process::Child;

use super::{Server, free_port, postgres, until};

/// A running pooler. It ends with the value, or with the server whose folder it works in.
pub struct Pooler {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a pooler in front of this PostgreSQL server; `mode` is its `pool_mode`.
    pub fn pooler(&self, mode: &str) -> Pooler {
        let port = free_port();
        let config = self.home.join(format!("pgbouncer-{port}.ini"));
        let server = self.port;
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={server} user=permitq\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\nignore_startup_parameters = extra_float_digits\npool_mode = {mode}\n"
        );
        fs::write(&config, text).unwrap();
        let mut command = self.account.command("pgbouncer");
        let process = self.at_home(command.arg(&config)).spawn().unwrap();
        until("the pooler's start", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Pooler { process, port }
    }
}

impl Pooler {
    /// The URL of this database of its server, through the pooler.
    pub fn url(&self, database: &str) -> String {
        postgres::url(self.port, database)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}
