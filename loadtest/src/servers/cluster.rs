//! Databases of several servers, for the tests of fail-over.

use super::{Kind, Server, free_port, install, mariadb, postgres};

/// A PostgreSQL server and its synchronous standby. Commits wait for both.
pub struct Pair {
    pub primary: Server,
    pub standby: Server,
}

impl Pair {
    pub fn start() -> Self {
        let primary = Server::postgres(true);
        // It may ask before the primary has the next record; by default it would wait for 5 s then.
        let options = ["-c", "wal_retrieve_retry_interval=50ms"];
        let mut standby = Server::install(Kind::Postgres, true, &options, |account, home| {
            postgres::copy(account, home, primary.port)
        });
        standby.restart();
        // After the copy was made, so that the standby waits for nobody once it is promoted.
        primary.set("synchronous_standby_names", "standby");
        primary.wait_for("select 1 from pg_stat_replication where sync_state = 'sync'");
        Self { primary, standby }
    }

    /// Creates a database and tells its URLs, on the primary and on the standby.
    pub fn database(&self, name: &str) -> (String, String) {
        let primary = self.primary.database(name);
        // A commit is kept by the standby before it can be seen there.
        self.standby.wait_for(&format!("select 1 from pg_database where datname = '{name}'"));
        (primary, self.standby.url(name))
    }

    /// Makes the standby accept writes. Nothing stops the primary from accepting them too: kill or freeze it first.
    pub fn promote(&mut self) {
        self.standby.execute("select pg_promote()");
        self.standby.wait_for("select 1 where not pg_is_in_recovery()");
    }
}

/// Three MariaDB servers that are one database: any two go on without the third.
pub struct Galera {
    pub nodes: [Server; 3],
}

impl Galera {
    pub fn start() -> Self {
        let provider = install::galera();
        let ports = [(); 3].map(|()| [(); 3].map(|()| free_port()));
        let members = ports.map(|[group, ..]| format!("127.0.0.1:{group}")).join(",");
        let mut nodes = ports.map(|[group, increment, snapshot]| {
            let options = [
                "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2",
                "--log-bin-trust-function-creators=ON",
                "--wsrep-on=ON",
                &format!("--wsrep-provider={}", provider.display()),
                "--wsrep-sst-method=rsync",
                &format!("--wsrep-cluster-address=gcomm://{members}"),
                &format!("--wsrep-node-address=127.0.0.1:{group}"),
                &format!("--wsrep-sst-receive-address=127.0.0.1:{snapshot}"),
                &format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{increment}"
                ),
            ];
            Server::install(Kind::MariaDb, false, &options, mariadb::install)
        });
        let [first, second, third] = &mut nodes;
        first.start(&["--wsrep-new-cluster"]);
        first.create_user();
        second.restart();
        third.restart();
        let cluster = Self { nodes };
        cluster.wait_for_members(3);
        cluster
    }

    /// Waits until that many nodes agree that they are that many, and in step.
    pub fn wait_for_members(&self, count: usize) {
        for node in self.nodes.iter().filter(|node| node.process.is_some()) {
            node.wait_for(&format!(
                "select 1 from information_schema.global_status where variable_name = 'wsrep_cluster_size'
                 and variable_value = '{count}' and exists (select 1 from information_schema.global_status
                 where variable_name = 'wsrep_local_state_comment' and variable_value = 'Synced')"
            ));
        }
    }

    /// Creates a database and tells its URL on each node.
    pub fn database(&self, name: &str) -> [String; 3] {
        let [first, second, third] = &self.nodes;
        let urls = [first.database(name), second.url(name), third.url(name)];
        for node in [second, third] {
            node.execute("set session wsrep_sync_wait = 1; select 1");
        }
        urls
    }
}
